//! Every page that links lead to, judged and pictured.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;

use reqwest::StatusCode;
use reqwest::header::CONTENT_TYPE;
use serde_json::{Value, json};

use crate::fleet::{Fleet, NAMES};
use crate::site::Site;
use crate::tab::{Device, Tab};
use crate::world::Client;

/// Pages are followed up to here: lists of a fleet that grew are no reason to test for hours.
const PAGES_MAX: usize = 400;

/// How narrow and how wide screens are.
const WIDTHS: [(u32, u32); 3] = [(360, 740), (768, 1024), (1440, 900)];

/// What a picture shows of a long page.
const PICTURE_HEIGHT: u64 = 1_600;

/// Addresses that links lead to, by the page that they are of.
pub type Views = BTreeMap<String, Vec<String>>;

/// The page of an address: what is named in it does not matter.
fn view_of(path: &str) -> String {
    let is_name = |part: &str| part.bytes().any(|byte| byte.is_ascii_digit()) || NAMES.contains(&part);
    let parts = path.split('/').map(|part| if is_name(part) { "one" } else { part });
    parts.collect::<Vec<_>>().join("/")
}

/// A guest without a restore test has no certificate, and guests of this fleet are reported and in no document: the page
/// says so.
fn may_be_missing(path: &str) -> bool {
    let of_guest = path.starts_with("/hosts/") && path.contains("/guests/");
    of_guest
        && ["/restore-certificate", "/edit", "/delete", "/volumes/new"].iter().any(|end| path.ends_with(end))
}

/// Follows links from the first page.
pub async fn follow(client: &Client) -> Views {
    let mut views = Views::new();
    let (mut queue, mut seen) = (VecDeque::from(["/".to_owned()]), BTreeSet::from(["/".to_owned()]));
    while let Some(path) = queue.pop_front() {
        let request = client.http.get(format!("{}{path}", client.url)).headers(client.headers.clone());
        let answer = request.send().await.unwrap();
        let is_page = answer
            .headers()
            .get(CONTENT_TYPE)
            .is_some_and(|media| media.to_str().unwrap().starts_with("text/html"));
        if answer.status() == StatusCode::NOT_FOUND && may_be_missing(&path) {
            continue;
        }
        assert!(answer.status().is_success(), "a link leads to {path}: {}", answer.status());
        if !is_page {
            continue;
        }
        let html = answer.text().await.unwrap();
        for link in html.split("href=\"/").skip(1) {
            let link = link.split(['"', '?', '#']).next().unwrap();
            let next = format!("/{link}");
            if !link.starts_with("assets/") && seen.len() < PAGES_MAX && seen.insert(next.clone()) {
                queue.push_back(next);
            }
        }
        views.entry(view_of(&path)).or_default().push(path);
    }
    views
}

/// A text that axe is, where CI or a person fetched it.
fn axe() -> Option<String> {
    let path = std::env::var_os("HOLDFAST_AXE").map(PathBuf::from);
    if path.is_none() {
        assert!(std::env::var_os("HOLDFAST_CI").is_none(), "CI names axe-core in HOLDFAST_AXE");
        println!("left out: axe-core (`cargo ci browser` fetches it)");
    }
    path.map(|path| std::fs::read_to_string(path).unwrap())
}

/// The rules of WCAG 2.2, levels A and AA.
const AXE_RUN: &str = "axe.run(document, { resultTypes: ['violations'], runOnly: { type: 'tag', values: \
    ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'] } }).then((found) => found.violations.map((one) => ({ \
    rule: one.id, help: one.help, where: one.nodes.slice(0, 4).map((node) => `${node.html.slice(0, 160)} ${node.failureSummary}`) })))";

/// What is wider than the screen and does not scroll within itself.
const TOO_WIDE: &str = "(() => { const wide = document.documentElement.scrollWidth > innerWidth; \
    if (!wide) return []; \
    return [...document.querySelectorAll('main *, header *, footer *')].filter((one) => \
      one.getBoundingClientRect().right > innerWidth + 1 && !one.closest('.scroll, [data-scrolls]')) \
      .slice(0, 5).map((one) => one.outerHTML.slice(0, 160)); })()";

/// Texts that lie over each other, among what a person presses or follows.
const OVERLAPS: &str = "(() => { const all = [...document.querySelectorAll('a, button, input, summary')] \
    .filter((one) => one.checkVisibility() && !one.matches('.skip') && !one.closest('.scroll')); \
    const boxes = all.map((one) => one.getClientRects()[0]); const found = []; \
    for (let i = 0; i < all.length && i < 400; i++) for (let j = i + 1; j < all.length && j < 400; j++) { \
      const a = boxes[i], b = boxes[j]; \
      if (!a || !b || all[i].contains(all[j]) || all[j].contains(all[i])) continue; \
      const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left); \
      const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top); \
      if (wide > 2 && high > 6) found.push(all[i].outerHTML.slice(0, 120) + ' and ' + all[j].outerHTML.slice(0, 120)); \
    } return found.slice(0, 5); })()";

/// What is wrong with a page as it is shown now.
fn faults(tab: &Tab, axe: Option<&str>) -> Vec<String> {
    let mut faults = tab.complaints();
    let texts = |found: Value, what: &str| -> Vec<String> {
        found.as_array().unwrap().iter().map(|one| format!("{what}: {one}")).collect()
    };
    faults.extend(texts(tab.eval(TOO_WIDE), "wider than the screen"));
    faults.extend(texts(tab.eval(OVERLAPS), "over each other"));
    if let Some(axe) = axe {
        tab.eval(&format!("{axe}; 0"));
        faults.extend(texts(tab.eval(AXE_RUN), "axe"));
    }
    faults
}

/// Looks at each page: light on a wide screen, dark on a narrow one, so that axe sees both themes and both layouts.
fn look_at(tab: &Tab, views: &Views, who: &str) -> Vec<String> {
    let axe = axe();
    let folder = std::env::var_os("HOLDFAST_SCREENS").map(PathBuf::from);
    let mut found = Vec::new();
    for (view, paths) in views {
        let path = paths.first().unwrap();
        for (device, (width, height)) in [(Device::Light, WIDTHS[2]), (Device::Dark, WIDTHS[0])] {
            tab.size(width, height);
            tab.prefers(device, "screen");
            tab.goto(path);
            let about = format!("{path} {} {width}", device.name());
            found.extend(faults(tab, axe.as_deref()).into_iter().map(|fault| format!("{about}: {fault}")));
        }
        for device in [Device::Light, Device::Dark] {
            let Some(folder) = &folder else { break };
            for (width, height) in WIDTHS {
                tab.size(width, height);
                tab.prefers(device, "screen");
                let name = format!("{who}{}-{}-{width}.png", view.replace('/', "-"), device.name());
                let name = name.replace("--", "-start-");
                std::fs::write(folder.join(name), tab.picture(width, PICTURE_HEIGHT)).unwrap();
            }
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn each_page_of_an_admin_is_clean_and_accessible_in_both_themes() {
    let Some(site) = Site::start().await else { return };
    let _fleet = Fleet::start(&site).await;
    let (client, cookie) = site.signed_in("ada", "admin", json!({ "kind": "everything" })).await;
    let views = follow(&client).await;
    println!("{:?}", views.keys().collect::<Vec<_>>());
    for known in ["/", "/hosts", "/hosts/one", "/guests", "/hosts/one/guests/one", "/events", "/account"] {
        assert!(views.contains_key(known), "no link leads to {known}: {:?}", views.keys());
    }
    let found = look_at(&site.tab_of(&cookie), &views, "admin");
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn each_page_of_a_customer_is_clean_and_accessible_in_both_themes() {
    let Some(site) = Site::start().await else { return };
    let _fleet = Fleet::start(&site).await;
    let scope = json!({ "kind": "customer", "customer": "acme" });
    let (client, cookie) = site.signed_in("carl", "customer", scope).await;
    let found = look_at(&site.tab_of(&cookie), &follow(&client).await, "customer");
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_way_in_and_an_empty_hub_are_clean_and_accessible_in_both_themes() {
    let Some(site) = Site::start().await else { return };
    let views = Views::from([("/sign-in".to_owned(), vec!["/sign-in".to_owned()])]);
    let mut found = look_at(&site.tab(), &views, "anyone");
    let (_, cookie) = site.signed_in("ada", "admin", json!({ "kind": "everything" })).await;
    let views = Views::from([("/".to_owned(), vec!["/".to_owned()])]);
    found.extend(look_at(&site.tab_of(&cookie), &views, "first"));
    assert!(found.is_empty(), "{}", found.join("\n"));
}
