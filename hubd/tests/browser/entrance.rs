//! Signing in and out by hand, and forms with bad input.

use serde_json::json;

use crate::fleet::Fleet;
use crate::site::{PASSWORD, Site, code};
use crate::tab::{Key, Tab};

fn sign_in(tab: &Tab, name: &str, password: &str, code: &str) {
    tab.fill("#name", name);
    tab.fill("#password", password);
    tab.fill("#code", code);
    tab.loads(|| tab.press(Key::Enter));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_admin_comes_by_a_link_sets_up_signs_in_with_a_code_and_signs_out() {
    let Some(site) = Site::start().await else { return };
    let link = site.person("ada", "admin", json!({ "kind": "everything" })).await;
    let tab = site.tab();
    tab.goto(link.strip_prefix(&site.url).unwrap());
    // The script of the page sends the form with what is behind the `#`.
    tab.until(
        "signed in by the link",
        "location.pathname === '/account' && document.readyState === 'complete'",
    );
    assert!(!tab.text("location.href").contains("hfl_"), "the link's secret stays in no address");
    assert_eq!(tab.complaints(), Vec::<String>::new());

    tab.fill("#new", PASSWORD);
    tab.loads(|| tab.press(Key::Enter));
    tab.until_text("The password was set");
    tab.loads(|| tab.click("form[action='/account/authenticator'] button"));
    assert!(tab.has("svg[role=img] path"), "the secret is shown as a picture too");
    tab.fill("#code", "000000");
    tab.loads(|| tab.press(Key::Enter));
    assert!(tab.has("[role=alert]"), "{}", tab.contents());
    // The browser logs the answer's status; the page has nothing to complain about.
    tab.complaints();
    tab.loads(|| tab.click("form[action='/account/authenticator'] button"));
    let secret = tab.text("document.querySelector('main code').innerText");
    tab.fill("#code", &code(secret.trim(), 0));
    tab.loads(|| tab.press(Key::Enter));
    tab.until_text("Recovery codes");
    assert_eq!(tab.eval("document.querySelectorAll('.codes li').length"), json!(10));

    tab.goto("/sign-in");
    sign_in(&tab, "ada", "another password", "");
    assert_eq!(tab.path(), "/sign-in");
    assert!(tab.has("[role=alert]"), "{}", tab.contents());
    // The code of before counted once; the next one counts already.
    sign_in(&tab, "ada", PASSWORD, &code(secret.trim(), 1));
    assert_eq!(tab.path(), "/", "{}", tab.contents());
    let cookies = tab.cookies();
    let session = cookies.iter().find(|one| one["name"] == "__Host-holdfast-session").unwrap();
    assert!(session["httpOnly"] == true && session["secure"] == true && session["sameSite"] == "Strict");
    assert_eq!(tab.text("document.cookie"), "", "no script reads the session");

    tab.complaints();
    tab.loads(|| tab.click("form[action='/sign-out'] button"));
    assert_eq!(tab.path(), "/sign-in");
    assert_eq!(tab.complaints(), Vec::<String>::new());
    tab.goto("/hosts");
    assert_eq!(tab.path(), "/sign-in", "a session that has ended opens nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_filter_that_cannot_be_read_is_named_and_stays_in_the_field() {
    let Some(site) = Site::start().await else { return };
    let _fleet = Fleet::start(&site).await;
    let (_, cookie) = site.signed_in("vera", "viewer", json!({ "kind": "everything" })).await;
    let tab = site.tab_of(&cookie);
    tab.goto("/hosts");
    tab.press(Key::Slash);
    assert_eq!(tab.text("document.activeElement.id"), "filter", "`/` leads to the filter");
    tab.fill("#filter", "@nonsense");
    tab.loads(|| tab.press(Key::Enter));
    assert_eq!(tab.text("document.getElementById('filter').value"), "@nonsense");
    let announced =
        "document.getElementById(document.getElementById('filter').getAttribute('aria-describedby')).role";
    assert_eq!(tab.text(announced), "alert");
    tab.fill("#filter", "@label-site=hel");
    tab.loads(|| tab.press(Key::Enter));
    assert_eq!(tab.path(), "/hosts?filter=%40label-site%3Dhel");
    assert!(tab.contents().contains("hel-1") && !tab.contents().contains("fra-1"), "{}", tab.contents());

    // The browser itself holds back what no hub needs to see.
    tab.goto("/account");
    tab.fill("#new", "short");
    tab.press(Key::Enter);
    assert_eq!(tab.eval("document.getElementById('new').validity.valid"), json!(false));
    assert_eq!(tab.path(), "/account");
}
