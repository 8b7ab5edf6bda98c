//! A page that is open while something happens.

use serde_json::json;

use crate::fleet::{Fleet, complain};
use crate::site::Site;

/// However the page hears of a change, it is the same page afterwards: what a person opened is open, and the focus stays.
#[tokio::test(flavor = "multi_thread")]
async fn a_change_shows_on_an_open_page_and_again_after_the_hub_was_away() {
    let Some(mut site) = Site::start().await else { return };
    let fleet = Fleet::start(&site).await;
    let (_, cookie) = site.signed_in("ada", "admin", json!({ "kind": "everything" })).await;
    let (start, host) = (site.tab_of(&cookie), site.tab_of(&cookie));
    start.goto("/");
    host.goto("/hosts/fra-2");
    for tab in [&start, &host] {
        tab.eval("window.before = true; document.querySelector('main a').focus()");
    }
    host.eval("document.querySelector('details').open = true");
    let still = "window.before === true && document.querySelector('main').contains(document.activeElement)";

    complain(fleet.host("fra-2"), 2, "the records of the agent have 12 MiB left").await;
    for tab in [&start, &host] {
        tab.until_text("12 MiB left");
        assert_eq!(
            tab.eval(still),
            json!(true),
            "the page was not loaded anew, and the focus is where it was"
        );
    }

    site.kill().await;
    site.restart().await;
    complain(fleet.host("fra-2"), 3, "the records of the agent have 3 MiB left").await;
    for tab in [&start, &host] {
        tab.until_text("3 MiB left");
        assert_eq!(tab.eval(still), json!(true), "the page went on by itself");
    }
    assert_eq!(host.eval("document.querySelector('details').open"), json!(true), "what was opened is open");
}
