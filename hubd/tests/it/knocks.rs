//! Asking to be let in without an invite.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::enrol::{KnockAnswer, KnockRequest};
use holdfast_protocol::operator::{KnockApproval, KnockState, KnockView, Page};
use holdfast_protocol::pin::{Pin, PinKind};
use rcgen::{KeyPair, PublicKeyData as _};
use reqwest::{Method, StatusCode};
use serde_json::Value;

use crate::world::{Answered, World, csr};

async fn knock(world: &World, key: &KeyPair) -> Answered<KnockAnswer> {
    let request = KnockRequest { csr_pem: csr(key), says: "pve1".parse().unwrap() };
    world.anybody().send(Method::POST, "/v1/knock", &request).await
}

async fn pending(world: &World, key: &KeyPair) -> (String, Pin) {
    match knock(world, key).await.data(StatusCode::ACCEPTED) {
        KnockAnswer::Pending { knock, fingerprint, .. } => (knock.to_string(), fingerprint),
        KnockAnswer::Approved(_) => panic!("nobody approved"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approved_knock_gives_an_identity() {
    let world = World::start().await;
    let key = KeyPair::generate().unwrap();
    let (id, fingerprint) = pending(&world, &key).await;
    assert_eq!(fingerprint, Pin::of(PinKind::Spki, &key.subject_public_key_info()));
    assert_eq!(pending(&world, &key).await.0, id, "the same key is the same knock");
    let page: Page<KnockView> = world.admin().get("/v1/knocks").await.data(StatusCode::OK);
    assert_eq!(page.items.len(), 1);
    let path = format!("/v1/knocks/{id}/approve");
    let approve =
        |fingerprint| KnockApproval { host_name: "box9".parse().unwrap(), fingerprint, returns: None };
    let wrong = approve(Pin::of(PinKind::Spki, b"another key"));
    let refused = world.admin().send::<Value>(Method::POST, &path, &wrong).await;
    assert_eq!(refused.code(), ErrorCode::PreconditionFailed);
    assert_eq!(pending(&world, &key).await.0, id);
    for _ in 0..2 {
        let view: KnockView =
            world.admin().send(Method::POST, &path, &approve(fingerprint)).await.data(StatusCode::OK);
        assert_eq!(view.state, KnockState::Approved);
    }
    let KnockAnswer::Approved(enrolled) = knock(&world, &key).await.data(StatusCode::OK) else {
        panic!("not let in");
    };
    let host = world.host(*enrolled, key);
    host.check_in(&host.full(1, 0), "0s").await.data(StatusCode::OK);
    let refuse = world.admin().send::<Value>(Method::POST, &format!("/v1/knocks/{id}/refuse"), &()).await;
    assert_eq!(refuse.code(), ErrorCode::PreconditionFailed);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_knock_stays_refused() {
    let world = World::start().await;
    let key = KeyPair::generate().unwrap();
    let (id, fingerprint) = pending(&world, &key).await;
    let view: KnockView =
        world.admin().send(Method::POST, &format!("/v1/knocks/{id}/refuse"), &()).await.data(StatusCode::OK);
    assert_eq!(view.state, KnockState::Refused);
    assert_eq!(knock(&world, &key).await.code(), ErrorCode::Refused);
    let approval = KnockApproval { host_name: "box9".parse().unwrap(), fingerprint, returns: None };
    let late =
        world.admin().send::<Value>(Method::POST, &format!("/v1/knocks/{id}/approve"), &approval).await;
    assert_eq!(late.code(), ErrorCode::Refused);
    assert_eq!(
        world.admin().send::<Value>(Method::POST, "/v1/knocks/x/refuse", &()).await.code(),
        ErrorCode::NotFound
    );
}

/// A knock from this address of the machine, and what came of it.
async fn knock_from(world: &World, from: [u8; 4], key: &KeyPair) -> Answered<KnockAnswer> {
    let request = KnockRequest { csr_pem: csr(key), says: "pve1".parse().unwrap() };
    world.from(from.into()).send(Method::POST, "/v1/knock", &request).await
}

async fn waiting(world: &World) -> Vec<Pin> {
    let page: Page<KnockView> = world.admin().get("/v1/knocks?limit=500").await.data(StatusCode::OK);
    page.items.into_iter().map(|knock| knock.fingerprint).collect()
}

fn pin(key: &KeyPair) -> Pin {
    Pin::of(PinKind::Spki, &key.subject_public_key_info())
}

/// Strangers that fill the list make room for each other, and an agent that knocks on is on it.
#[tokio::test(flavor = "multi_thread")]
async fn a_crowd_of_knocks_keeps_no_agent_off_the_list() {
    let world = World::start().await;
    let agent = KeyPair::generate().unwrap();
    knock_from(&world, [127, 8, 0, 1], &agent).await.data(StatusCode::ACCEPTED);
    for host in 1..=12 {
        world.clock.advance(1);
        for _ in 0..11 {
            let key = KeyPair::generate().unwrap();
            knock_from(&world, [127, 8, 7, host], &key).await.data(StatusCode::ACCEPTED);
        }
    }
    let waits = waiting(&world).await;
    assert!(waits.len() == 100 && waits.contains(&pin(&agent)), "{} wait", waits.len());
    // As many places as the list is long, each with one: who knocks on is not who goes.
    for host in 1..=120 {
        world.clock.advance(1);
        knock_from(&world, [127, 8, 0, 1], &agent).await.data(StatusCode::ACCEPTED);
        let key = KeyPair::generate().unwrap();
        knock_from(&world, [127, 8, 8, host], &key).await.data(StatusCode::ACCEPTED);
        world.clock.advance(10);
    }
    let waits = waiting(&world).await;
    assert!(waits.len() == 100 && waits.contains(&pin(&agent)), "{} wait", waits.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_knocks_too_often_waits_and_no_other_does() {
    let world = World::start().await;
    let key = KeyPair::generate().unwrap();
    for _ in 0..30 {
        knock_from(&world, [127, 8, 7, 1], &key).await.data(StatusCode::ACCEPTED);
    }
    let answer = knock_from(&world, [127, 8, 7, 1], &key).await;
    assert_eq!(answer.code(), ErrorCode::RateLimited);
    assert!(answer.headers.contains_key("retry-after"));
    knock_from(&world, [127, 8, 7, 2], &key).await.data(StatusCode::ACCEPTED);
    world.clock.advance(2);
    knock_from(&world, [127, 8, 7, 1], &key).await.data(StatusCode::ACCEPTED);
}
