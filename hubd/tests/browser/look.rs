//! The theme that a person chooses, reduced motion, and paper.

use serde_json::json;

use crate::fleet::Fleet;
use crate::site::Site;
use crate::tab::{Device, Tab};

fn ground(tab: &Tab) -> String {
    tab.text("getComputedStyle(document.body).backgroundColor")
}

const LIGHT: &str = "rgb(251, 251, 250)";
const DARK: &str = "rgb(22, 24, 26)";

#[tokio::test(flavor = "multi_thread")]
async fn a_theme_is_chosen_without_a_script_before_and_after_the_sign_in() {
    let Some(site) = Site::start().await else { return };
    let _fleet = Fleet::start(&site).await;
    let tab = site.tab();
    tab.call("Emulation.setScriptExecutionDisabled", &json!({ "value": true }));
    tab.prefers(Device::Light, "screen");
    tab.goto("/sign-in");
    assert_eq!(ground(&tab), LIGHT);
    tab.loads(|| tab.click(".theme button[value=dark]"));
    assert_eq!((tab.path().as_str(), ground(&tab).as_str()), ("/sign-in", DARK));
    let (_, cookie) = site.signed_in("vera", "viewer", json!({ "kind": "everything" })).await;
    tab.set_cookie(&cookie);
    tab.goto("/guests?filter=%25web%25");
    assert_eq!(ground(&tab), DARK, "it is the browser's, whoever has signed in");
    tab.loads(|| tab.click(".theme button[value=light]"));
    assert_eq!(tab.path(), "/guests?filter=%25web%25", "and leads back to the page, with its filter");
    tab.prefers(Device::Dark, "screen");
    assert_eq!(ground(&tab), LIGHT, "it is stronger than the device");
    tab.loads(|| tab.click(".theme button[value=system]"));
    assert_eq!(ground(&tab), DARK, "the device decides again");
    assert!(tab.cookies().iter().all(|one| one["name"] != "__Host-holdfast-theme"));
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_moves_where_that_is_unwanted_and_paper_is_white_with_all_of_a_table() {
    let Some(site) = Site::start().await else { return };
    let _fleet = Fleet::start(&site).await;
    let (_, cookie) = site.signed_in("vera", "viewer", json!({ "kind": "everything" })).await;
    let tab = site.tab_of(&cookie);
    tab.prefers(Device::Dark, "screen");
    let moves = "document.getAnimations().length + [...document.querySelectorAll('*')].filter((one) => { \
                 const style = getComputedStyle(one); \
                 return style.animationName !== 'none' || parseFloat(style.transitionDuration) > 0 \
                 || style.scrollBehavior === 'smooth'; }).length";
    for path in ["/", "/guests", "/hosts/fra-1"] {
        tab.goto(path);
        assert_eq!(tab.eval(moves), json!(0), "{path}");
    }
    tab.loads(|| tab.click(".theme button[value=dark]"));
    tab.prefers(Device::Dark, "print");
    tab.goto("/guests");
    assert_eq!(ground(&tab), "rgb(255, 255, 255)");
    let shown = |selector: &str| {
        tab.eval(&format!(
            "[...document.querySelectorAll({})].some((one) => one.checkVisibility())",
            json!(selector)
        ))
    };
    for selector in ["nav", ".filter", ".person", ".theme", ".skip"] {
        assert_eq!(shown(selector), json!(false), "{selector} is of no use on paper");
    }
    // Dark text on white: what the theme would have made light is dark.
    let light = "[...document.querySelectorAll('main *, footer *')].filter((one) => one.checkVisibility() && \
                 getComputedStyle(one).color.match(/\\d+/g).slice(0, 3).every((part) => Number(part) > 150)) \
                 .map((one) => one.outerHTML.slice(0, 100)).slice(0, 3)";
    assert_eq!(tab.eval(light), json!([]));
    let cut = "[...document.querySelectorAll('.scroll')].filter((one) => getComputedStyle(one).overflowX !== 'visible').length";
    assert_eq!(tab.eval(cut), json!(0), "no column is cut off");
}
