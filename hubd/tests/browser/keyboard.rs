//! Pages with the keyboard alone.

use serde_json::{Value, json};

use crate::fleet::Fleet;
use crate::site::Site;
use crate::tab::{Key, Tab};

/// Elements that the keyboard must reach, in the order of the page.
const REACHABLE: &str = "window.reachable = [...document.querySelectorAll('a[href], button, summary, select, textarea, \
    input:not([type=hidden]), [tabindex=\"0\"]')].filter((one) => one.checkVisibility() && !one.disabled); \
    window.reachable.length";

/// Where the focus is: its place among the reachable, and whether a person can see it. Something fixed may cover a part of
/// it, and never all.
const FOCUS: &str = "(() => { const one = document.activeElement; const style = getComputedStyle(one); \
    const marked = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2; \
    const open = [...one.getClientRects()].some((box) => [0.1, 0.5, 0.9].some((part) => { \
      const top = document.elementFromPoint(box.left + Math.min(box.width / 2, 20), box.top + box.height * part); \
      return top !== null && (one.contains(top) || top.contains(one)); })); \
    return [window.reachable.indexOf(one), marked, open, one.outerHTML.slice(0, 160)]; })()";

fn reachable(tab: &Tab) -> i64 {
    tab.eval(REACHABLE).as_i64().unwrap()
}

/// Presses a key as often as there are elements; gives the places that the focus came to, in order.
fn walk(tab: &Tab, key: Key, count: i64) -> Vec<i64> {
    let mut places = Vec::new();
    for _ in 0..count {
        tab.press(key);
        let focus: Value = tab.eval(FOCUS);
        assert_eq!(focus[1], json!(true), "the focus is not marked: {}", focus[3]);
        assert_eq!(focus[2], json!(true), "the focus is covered: {}", focus[3]);
        places.push(focus[0].as_i64().unwrap());
    }
    places
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_page_a_table_and_a_long_host_are_walked_there_and_back() {
    let Some(site) = Site::start().await else { return };
    let _fleet = Fleet::start(&site).await;
    let (_, cookie) = site.signed_in("ada", "admin", json!({ "kind": "everything" })).await;
    let tab = site.tab_of(&cookie);
    for (path, width) in [("/", 1280), ("/guests", 1280), ("/hosts/fra-2", 360)] {
        tab.size(width, 640);
        tab.goto(path);
        let count = reachable(&tab);
        assert!(count > 8, "{path}: {count}");
        let all: Vec<i64> = (0..count).collect();
        assert_eq!(
            walk(&tab, Key::Tab, count),
            all,
            "{path}: each in the order of the page, and none is a trap"
        );
        let back: Vec<i64> = all.into_iter().rev().skip(1).collect();
        assert_eq!(walk(&tab, Key::BackTab, count - 1), back, "{path}: and back");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_key_offers_a_way_past_the_navigation() {
    let Some(site) = Site::start().await else { return };
    let _fleet = Fleet::start(&site).await;
    let (_, cookie) = site.signed_in("vera", "viewer", json!({ "kind": "everything" })).await;
    let tab = site.tab_of(&cookie);
    tab.goto("/hosts");
    tab.press(Key::Tab);
    let shown = "(() => { const box = document.querySelector('.skip:focus').getBoundingClientRect(); \
                 return box.left >= 0 && box.top >= 0 && box.width > 0; })()";
    assert_eq!(tab.eval(shown), json!(true), "it is on the screen while it has the focus");
    tab.press(Key::Enter);
    tab.until("in the contents", "document.activeElement.id === 'content'");
    tab.press(Key::Tab);
    let inside = "document.querySelector('main').contains(document.activeElement)";
    assert_eq!(tab.eval(inside), json!(true));
}
