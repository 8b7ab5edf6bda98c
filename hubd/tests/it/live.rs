//! Tests of `GET /live`: scope, resumption, bounds, the session's end.

use holdfast_protocol::access::AccessScope;
use holdfast_protocol::operator::Role;
use hubd::api::LISTENERS_EACH;
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::operators::{operator, person};
use crate::pages::{open, send, set_up, signed_in};
use crate::world::{Client, Host, World};

/// An open stream.
struct Stream {
    answer: reqwest::Response,
    text: String,
}

#[derive(Debug, PartialEq, Eq)]
struct Changed {
    id: u64,
    data: Value,
}

async fn listen(browser: &Client, query: &str) -> Stream {
    let answer = browser
        .http
        .get(format!("{}/live{query}", browser.url))
        .headers(browser.headers.clone())
        .send()
        .await
        .unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(answer.headers()["content-type"], "text/event-stream");
    Stream { answer, text: String::new() }
}

impl Stream {
    /// The next event; none at the end of the stream.
    async fn next(&mut self) -> Option<Changed> {
        loop {
            while let Some((block, rest)) = self.text.split_once("\n\n") {
                let (block, rest) = (block.to_owned(), rest.to_owned());
                self.text = rest;
                let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name));
                if field("event: ") == Some("changed") {
                    let id = field("id: ").unwrap().parse().unwrap();
                    return Some(Changed { id, data: field("data: ").unwrap().parse().unwrap() });
                }
            }
            let chunk = self.answer.chunk().await.unwrap()?;
            self.text.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }
}

/// The number that a page begins from.
async fn shown(browser: &Client, path: &str) -> u64 {
    let page = open(browser, path).await;
    let (_, rest) = page.html.split_once("data-live=\"").unwrap_or_else(|| panic!("{}", page.html));
    rest.split_once('"').unwrap().0.parse().unwrap()
}

async fn report(host: &Host, sequence: u64, name: &str, customer: &str) {
    let guest = json!([{ "uid": "018f3c1e-6b1f-7c1d-9d0a-000000000007", "name": name, "vmid": 5001,
        "customer": customer, "status": "managed", "run": "running" }]);
    let mut request = host.full(sequence, 0);
    request.sections.guests = serde_json::from_value(guest).unwrap();
    host.check_in(&request, "0s").await.data(StatusCode::OK);
}

async fn browser(world: &World, name: &str) -> Client {
    set_up(world, name).await;
    signed_in(world, name).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_a_host_is_heard_and_a_page_goes_on_after_a_drop() {
    let world = World::start().await;
    operator(&world, "eve", Role::Operator).await;
    let (box7, box8) = (world.enrol("box7").await, world.enrol("box8").await);
    let browser = browser(&world, "eve").await;
    assert_eq!(open(&world.anyone(), "/live").await.goes_to(), "/sign-in");
    let before = shown(&browser, "/hosts/box7").await;
    // What changed between the page and the stream is not missed.
    report(&box7, 1, "web", "acme").await;
    let mut stream = listen(&browser, &format!("?after={before}&host=box7")).await;
    let first = stream.next().await.unwrap();
    assert!(first.id > before, "{first:?}");
    assert_eq!(first.data, json!({ "hosts": ["box7"], "hub": false }));
    report(&box8, 1, "web", "acme").await;
    report(&box7, 2, "shop", "acme").await;
    let second = stream.next().await.unwrap();
    assert!(second.id > first.id);
    assert_eq!(second.data["hosts"], json!(["box7"]), "of one host alone");
    drop(stream);
    report(&box7, 3, "store", "acme").await;
    // The browser says what it heard last; the address is older.
    let again = browser.with("last-event-id", &second.id.to_string());
    let third = listen(&again, &format!("?after={before}&host=box7")).await.next().await.unwrap();
    assert!(third.id > second.id && third.data["hosts"] == json!(["box7"]), "{third:?}");
    // A number of a database that was put back is none of this one.
    let all = listen(&browser, "?after=1000000").await.next().await.unwrap();
    assert_eq!(all.data["hosts"], json!(["box7", "box8"]));
    // A check-in without news is none.
    let mut fleet = listen(&browser, "").await;
    box7.check_in(&box7.changed(4, 0, Default::default()), "0s").await.data(StatusCode::OK);
    report(&box8, 2, "shop", "acme").await;
    assert_eq!(fleet.next().await.unwrap().data["hosts"], json!(["box8"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_are_narrowed_to_the_scope() {
    let world = World::start().await;
    let scope = AccessScope::Customer { customer: "acme".parse().unwrap() };
    person(&world, "ann", Role::Customer, scope).await;
    let (box7, box8) = (world.enrol("box7").await, world.enrol("box8").await);
    report(&box7, 1, "web", "acme").await;
    report(&box8, 1, "web", "beta").await;
    let browser = browser(&world, "ann").await;
    let before = shown(&browser, "/guests").await;
    let mut stream = listen(&browser, &format!("?after={before}")).await;
    let mut other = listen(&browser, &format!("?after={before}&host=box8")).await;
    report(&box8, 2, "shop", "beta").await;
    // Of the hub itself.
    operator(&world, "eve", Role::Operator).await;
    report(&box7, 2, "shop", "acme").await;
    assert_eq!(stream.next().await.unwrap().data, json!({ "hosts": ["box7"], "hub": false }));
    // What becomes theirs is theirs to hear of.
    report(&box8, 3, "shop", "acme").await;
    assert_eq!(other.next().await.unwrap().data["hosts"], json!(["box8"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn open_pages_are_bounded_and_over_with_the_session() {
    let world = World::start().await;
    operator(&world, "eve", Role::Operator).await;
    let browser = browser(&world, "eve").await;
    let mut streams = Vec::new();
    for _ in 0..LISTENERS_EACH {
        streams.push(listen(&browser, "").await);
    }
    assert_eq!(open(&browser, "/live").await.status, StatusCode::SERVICE_UNAVAILABLE);
    let csrf = open(&browser, "/").await.csrf();
    assert_eq!(send(&browser, "/sign-out", &[("csrf", &csrf)]).await.goes_to(), "/sign-in");
    for mut stream in streams {
        while stream.next().await.is_some() {}
    }
    assert_eq!(open(&browser, "/live").await.goes_to(), "/sign-in");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_that_stops_lets_open_pages_go() {
    let world = World::start().await;
    operator(&world, "eve", Role::Operator).await;
    let browser = browser(&world, "eve").await;
    let mut stream = listen(&browser, "").await;
    let (_folder, _temp) = world.stop().await;
    while stream.next().await.is_some() {}
}
