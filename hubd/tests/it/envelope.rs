//! The envelope of every answer, and its ids.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::operator::{EventView, HostView, Page};
use reqwest::{Method, StatusCode};
use serde_json::Value;

use crate::world::World;

#[tokio::test(flavor = "multi_thread")]
async fn ids_are_taken_or_made_and_stand_in_envelope_and_headers() {
    let world = World::start().await;
    let (request, correlation) =
        ("018f3c1e-6b1f-7c1d-9d0a-2f6d1c0b7a55", "018f3c1e-6b1f-7c1d-9d0a-2f6d1c0b7a56");
    let client = world.anyone().with("x-request-id", request).with("x-correlation-id", correlation);
    for path in ["/healthz", "/readyz", "/v1/nothing", "/v1/whoami"] {
        let answer = client.get::<Value>(path).await;
        assert_eq!(answer.headers["x-request-id"], request, "{path}");
        assert_eq!(answer.headers["x-correlation-id"], correlation, "{path}");
        assert_eq!(answer.envelope.request_id.to_string(), request);
        assert_eq!(answer.envelope.correlation_id.to_string(), correlation);
    }
    let odd = world.anyone().with("x-request-id", "not an id").get::<Value>("/healthz").await;
    assert_eq!(odd.headers["x-request-id"].to_str().unwrap(), odd.envelope.request_id.to_string());
    assert_eq!(odd.status, StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_is_asked_the_answer_is_an_envelope() {
    let world = World::start().await;
    let admin = world.admin();
    assert_eq!(admin.get::<Value>("/v1").await.code(), ErrorCode::NotFound);
    assert_eq!(admin.get::<Value>("/v1/hosts/box7").await.code(), ErrorCode::NotFound);
    assert_eq!(admin.get::<Value>("/v1/hosts/..%2f..").await.code(), ErrorCode::NotFound);
    let method = admin.send::<Value>(Method::DELETE, "/v1/hosts", &()).await;
    assert_eq!(method.status, StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(method.envelope.error.unwrap().code, ErrorCode::MethodNotAllowed);
    assert_eq!(method.headers["allow"], "GET,HEAD");
    let long = admin.send_bytes::<Value>(Method::POST, "/v1/invites", vec![b' '; 5000]).await;
    assert_eq!(long.code(), ErrorCode::Size);
    let bad =
        admin.send_bytes::<Value>(Method::POST, "/v1/invites", b"{\"host_name\":\"A B\"}".to_vec()).await;
    assert_eq!(bad.envelope.error.as_ref().unwrap().details["path"], "host_name");
    assert_eq!(bad.code(), ErrorCode::Range);
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_page_by_cursor() {
    let world = World::start().await;
    for name in ["c", "a", "e", "b", "d"] {
        world.enrol(name).await;
    }
    let (mut names, mut path) = (Vec::new(), "/v1/hosts?limit=2".to_owned());
    loop {
        let page: Page<HostView> = world.admin().get(&path).await.data(StatusCode::OK);
        assert!(page.items.len() <= 2);
        names.extend(page.items.iter().map(|host| host.name.to_string()));
        match page.next {
            Some(cursor) => path = format!("/v1/hosts?limit=2&cursor={cursor}"),
            None => break,
        }
    }
    assert_eq!(names, ["a", "b", "c", "d", "e"]);
    let mut numbers = Vec::new();
    let mut path = "/v1/events?limit=3".to_owned();
    loop {
        let page: Page<EventView> = world.admin().get(&path).await.data(StatusCode::OK);
        numbers.extend(page.items.iter().map(|event| event.number));
        match page.next {
            Some(cursor) => path = format!("/v1/events?limit=3&cursor={cursor}"),
            None => break,
        }
    }
    // The admin, five invites, five enrolments: newest first, none twice, none left out.
    assert_eq!(numbers, (1..=11).rev().collect::<Vec<u64>>());
}
