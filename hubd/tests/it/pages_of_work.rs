//! Tests of orders by forms, charts, and waiting signatures.

use holdfast_protocol::access::AccessScope;
use holdfast_protocol::operator::Role;
use reqwest::StatusCode;
use serde_json::json;

use crate::operators::{operator, person};
use crate::pages::{open, send, set_up, signed_in};
use crate::world::{Client, World};

const GUEST: &str = "018f3c1e-6b1f-7c1d-9d0a-000000000007";

/// A host with a guest, and a change that waits for a signature.
async fn world() -> World {
    let world = World::start().await;
    let host = world.enrol("box7").await;
    let mut request = host.full(1, 0);
    let guest = json!([{ "uid": GUEST, "name": "web", "vmid": 5001, "customer": "acme", "status": "managed", "run": "running" }]);
    request.sections.guests = serde_json::from_value(guest).unwrap();
    let waiting =
        json!([{ "effect": "destroys web", "reason": "data would be lost", "payload": "{\"act\":1}" }]);
    request.sections.waiting = serde_json::from_value(waiting).unwrap();
    host.check_in(&request, "0s").await.data(StatusCode::OK);
    world
}

async fn browser(world: &World, name: &str) -> Client {
    set_up(world, name).await;
    signed_in(world, name).await
}

/// What makes the orders of one page one.
fn once(html: &str) -> String {
    let (_, rest) = html.split_once("name=\"key\" value=\"").unwrap();
    rest.split_once('"').unwrap().0.to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn work_that_needs_no_signature_is_ordered_by_a_form_once() {
    let world = world().await;
    operator(&world, "eve", Role::Operator).await;
    let eve = browser(&world, "eve").await;
    let path = format!("/hosts/box7/guests/{GUEST}");
    let page = open(&eve, &path).await;
    assert!(page.html.contains("Back up now") && page.html.contains("?span=30d#use"), "{}", page.html);
    assert!(!page.html.contains("restore-certificate/file"), "there is none");
    let (csrf, once) = (page.csrf(), once(&page.html));
    let order = |csrf: &str, act: &str, once: &str| {
        let fields =
            [("csrf", csrf), ("act", act), ("key", once), ("guest", GUEST), ("name", "before-change")];
        let (fields, eve) = (fields.map(|(name, value)| (name, value.to_owned())), eve.clone());
        async move {
            let fields = fields.each_ref().map(|(name, value)| (*name, value.as_str()));
            send(&eve, "/hosts/box7/work-orders", &fields).await
        }
    };
    assert_eq!(order("x", "backup_now", &once).await.status, StatusCode::FORBIDDEN);
    for _ in 0..2 {
        let ordered = order(&csrf, "backup_now", &once).await;
        assert_eq!(ordered.goes_to(), format!("{path}#orders"));
    }
    let shown = open(&eve, &path).await.html;
    assert_eq!(
        shown.matches(">backup now</a>").count(),
        1,
        "a form that is sent twice is one order: {shown}"
    );
    for act in ["snapshot", "restart_guest", "restore_test_now"] {
        assert_eq!(order(&csrf, act, act).await.goes_to(), format!("{path}#orders"));
    }
    let odd = order(&csrf, "destroy", "odd").await;
    assert_eq!(odd.status, StatusCode::BAD_REQUEST);
    assert!(odd.html.contains("nothing was ordered"), "{}", odd.html);
    let (_, rest) = shown.split_once("href=\"/hosts/box7/work-orders/").unwrap();
    let one = format!("/hosts/box7/work-orders/{}", rest.split_once('"').unwrap().0);
    let one = open(&eve, &one).await;
    assert!(one.status == StatusCode::OK && one.html.contains("<h1>backup now"), "{}", one.html);
    let collect = [("csrf", csrf.as_str()), ("act", "collect_diagnostics"), ("name", "doctor"), ("key", "d")];
    assert_eq!(send(&eve, "/hosts/box7/work-orders", &collect).await.goes_to(), "/hosts/box7#orders");
    let host = open(&eve, "/hosts/box7?span=1h").await.html;
    assert!(host.contains("diagnostics: doctor") && host.contains("snapshot before-change"), "{host}");
    assert!(host.contains("<code>holdfast sign box7 1</code>") && host.contains("class=\"qr\""), "{host}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_only_look_orders_nothing() {
    let world = world().await;
    operator(&world, "val", Role::Viewer).await;
    let scope = AccessScope::Customer { customer: "acme".parse().unwrap() };
    person(&world, "ann", Role::Customer, scope).await;
    let other = AccessScope::Customer { customer: "beta".parse().unwrap() };
    person(&world, "bob", Role::Customer, other).await;
    let path = format!("/hosts/box7/guests/{GUEST}");
    for (name, sees) in [("val", StatusCode::OK), ("ann", StatusCode::OK), ("bob", StatusCode::NOT_FOUND)] {
        let browser = browser(&world, name).await;
        let page = open(&browser, &path).await;
        assert_eq!(page.status, sees, "{name}: {}", page.html);
        assert!(!page.html.contains("Back up now"), "{name}");
        let fields = [("csrf", page.csrf()), ("act", "backup_now".to_owned()), ("guest", GUEST.to_owned())];
        let fields = fields.each_ref().map(|(name, value)| (*name, value.as_str()));
        let refused = send(&browser, "/hosts/box7/work-orders", &fields).await;
        assert!(
            refused.status == StatusCode::FORBIDDEN || refused.status == StatusCode::NOT_FOUND,
            "{name}: {}",
            refused.html
        );
    }
    let orders: serde_json::Value =
        world.admin().get("/v1/hosts/box7/work-orders").await.data(StatusCode::OK);
    assert_eq!(orders["items"], json!([]));
    assert_eq!(open(&world.anyone(), &path).await.goes_to(), "/sign-in");
}
