//! Enrollment requests.

use holdfast_protocol::checkin::CheckinAnswer;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::enrol::{EnrollmentAnswer, EnrollmentRequest, SealingIdentity, request_fingerprint};
use holdfast_protocol::id::JobId;
use holdfast_protocol::job::HostEpoch;
use holdfast_protocol::operator::{
    EnrollmentApproval, EnrollmentRequestState, EnrollmentRequestView, JobSubmit, JobView, Page, TunnelOrder,
};
use holdfast_protocol::pin::{Pin, PinKind};
use rcgen::{KeyPair, PublicKeyData as _};
use reqwest::{Method, StatusCode};
use serde_json::Value;
use uuid::Uuid;

use crate::world::{Answered, World, csr};

async fn submit(world: &World, key: &KeyPair) -> Answered<EnrollmentAnswer> {
    let request =
        EnrollmentRequest { csr_pem: csr(key), claimed_name: "pve1".parse().unwrap(), sealing: None };
    world.anyone().send(Method::POST, "/v1/enrollment-requests", &request).await
}

pub async fn pending(world: &World, key: &KeyPair) -> (String, Pin) {
    match submit(world, key).await.data(StatusCode::ACCEPTED) {
        EnrollmentAnswer::Pending { request, fingerprint, .. } => (request.to_string(), fingerprint),
        EnrollmentAnswer::Approved(_) => panic!("nobody approved"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approved_request_gives_an_identity() {
    let world = World::start().await;
    let key = KeyPair::generate().unwrap();
    let (id, fingerprint) = pending(&world, &key).await;
    assert_eq!(fingerprint, Pin::of(PinKind::Spki, &key.subject_public_key_info()));
    assert_eq!(pending(&world, &key).await.0, id, "the same key is the same request");
    let page: Page<EnrollmentRequestView> =
        world.admin().get("/v1/enrollment-requests").await.data(StatusCode::OK);
    assert_eq!(page.items.len(), 1);
    let path = format!("/v1/enrollment-requests/{id}/approve");
    let approve =
        |fingerprint| EnrollmentApproval { host_name: "box9".parse().unwrap(), fingerprint, returns: None };
    let wrong = approve(Pin::of(PinKind::Spki, b"another key"));
    let refused = world.admin().send::<Value>(Method::POST, &path, &wrong).await;
    assert_eq!(refused.code(), ErrorCode::PreconditionFailed);
    assert_eq!(pending(&world, &key).await.0, id);
    for _ in 0..2 {
        let view: EnrollmentRequestView =
            world.admin().send(Method::POST, &path, &approve(fingerprint)).await.data(StatusCode::OK);
        assert_eq!(view.state, EnrollmentRequestState::Approved);
    }
    let EnrollmentAnswer::Approved(enrolled) = submit(&world, &key).await.data(StatusCode::OK) else {
        panic!("not let in");
    };
    let host = world.host(*enrolled, key);
    host.check_in(&host.full(1, 0), "0s").await.data(StatusCode::OK);
    let refuse =
        world.admin().send::<Value>(Method::POST, &format!("/v1/enrollment-requests/{id}/refuse"), &()).await;
    assert_eq!(refuse.code(), ErrorCode::PreconditionFailed);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_request_stays_refused() {
    let world = World::start().await;
    let key = KeyPair::generate().unwrap();
    let (id, fingerprint) = pending(&world, &key).await;
    let view: EnrollmentRequestView = world
        .admin()
        .send(Method::POST, &format!("/v1/enrollment-requests/{id}/refuse"), &())
        .await
        .data(StatusCode::OK);
    assert_eq!(view.state, EnrollmentRequestState::Refused);
    assert_eq!(submit(&world, &key).await.code(), ErrorCode::Refused);
    let approval = EnrollmentApproval { host_name: "box9".parse().unwrap(), fingerprint, returns: None };
    let late = world
        .admin()
        .send::<Value>(Method::POST, &format!("/v1/enrollment-requests/{id}/approve"), &approval)
        .await;
    assert_eq!(late.code(), ErrorCode::Refused);
    assert_eq!(
        world.admin().send::<Value>(Method::POST, "/v1/enrollment-requests/x/refuse", &()).await.code(),
        ErrorCode::NotFound
    );
}

/// Sends a request from this address of the machine.
async fn request_from(world: &World, from: [u8; 4], key: &KeyPair) -> Answered<EnrollmentAnswer> {
    let request =
        EnrollmentRequest { csr_pem: csr(key), claimed_name: "pve1".parse().unwrap(), sealing: None };
    world.from(from.into()).send(Method::POST, "/v1/enrollment-requests", &request).await
}

async fn waiting(world: &World) -> Vec<Pin> {
    let page: Page<EnrollmentRequestView> =
        world.admin().get("/v1/enrollment-requests?limit=500").await.data(StatusCode::OK);
    page.items.into_iter().map(|request| request.fingerprint).collect()
}

fn pin(key: &KeyPair) -> Pin {
    Pin::of(PinKind::Spki, &key.subject_public_key_info())
}

/// Strangers that fill the list displace each other; an agent that repeats its request stays listed.
#[tokio::test(flavor = "multi_thread")]
async fn a_crowd_of_requests_keeps_no_agent_off_the_list() {
    let world = World::start().await;
    let agent = KeyPair::generate().unwrap();
    request_from(&world, [127, 8, 0, 1], &agent).await.data(StatusCode::ACCEPTED);
    for host in 1..=12 {
        world.clock.advance(1);
        for _ in 0..11 {
            let key = KeyPair::generate().unwrap();
            request_from(&world, [127, 8, 7, host], &key).await.data(StatusCode::ACCEPTED);
        }
    }
    let waits = waiting(&world).await;
    assert!(waits.len() == 100 && waits.contains(&pin(&agent)), "{} wait", waits.len());
    // As many places as the list is long, each with one: who repeats its request is not dropped.
    for host in 1..=120 {
        world.clock.advance(1);
        request_from(&world, [127, 8, 0, 1], &agent).await.data(StatusCode::ACCEPTED);
        let key = KeyPair::generate().unwrap();
        request_from(&world, [127, 8, 8, host], &key).await.data(StatusCode::ACCEPTED);
        world.clock.advance(10);
    }
    let waits = waiting(&world).await;
    assert!(waits.len() == 100 && waits.contains(&pin(&agent)), "{} wait", waits.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_asks_too_often_waits_and_no_other_does() {
    let world = World::start().await;
    let key = KeyPair::generate().unwrap();
    for _ in 0..30 {
        request_from(&world, [127, 8, 7, 1], &key).await.data(StatusCode::ACCEPTED);
    }
    let answer = request_from(&world, [127, 8, 7, 1], &key).await;
    assert_eq!(answer.code(), ErrorCode::RateLimited);
    assert!(answer.headers.contains_key("retry-after"));
    request_from(&world, [127, 8, 7, 2], &key).await.data(StatusCode::ACCEPTED);
    world.clock.advance(2);
    request_from(&world, [127, 8, 7, 1], &key).await.data(StatusCode::ACCEPTED);
}

/// What the host says of its keys is part of what is compared, and an order for it waits for its first check-in.
#[tokio::test(flavor = "multi_thread")]
async fn an_order_that_was_sealed_at_the_approval_comes_with_the_first_check_in() {
    let world = World::start().await;
    let key = KeyPair::generate().unwrap();
    let sealing = |letter: &str| SealingIdentity {
        recipient: format!("age1{}", letter.repeat(58)).parse().unwrap(),
        epoch: HostEpoch::new(1),
    };
    let submit = async |letter: &str| {
        let request = EnrollmentRequest {
            csr_pem: csr(&key),
            claimed_name: "pve1".parse().unwrap(),
            sealing: Some(sealing(letter)),
        };
        let answer: Answered<EnrollmentAnswer> =
            world.anyone().send(Method::POST, "/v1/enrollment-requests", &request).await;
        answer
    };
    let mut seen = Vec::new();
    for letter in ["p", "q"] {
        let EnrollmentAnswer::Pending { request, fingerprint, .. } =
            submit(letter).await.data(StatusCode::ACCEPTED)
        else {
            panic!("nobody approved");
        };
        let expected = request_fingerprint(pin(&key), Some(&sealing(letter)));
        assert_eq!(fingerprint, expected);
        seen.push((request, fingerprint));
    }
    assert!(seen[0].0 == seen[1].0 && seen[0].1 != seen[1].1, "one request, and what it says last");
    let page: Page<EnrollmentRequestView> =
        world.admin().get("/v1/enrollment-requests").await.data(StatusCode::OK);
    let shown = &page.items[0];
    assert_eq!((shown.key, shown.sealing.clone()), (Some(pin(&key)), Some(sealing("q"))));
    let (id, fingerprint) = (seen[1].0, seen[1].1);
    let path = format!("/v1/enrollment-requests/{id}/approve");
    let approve =
        |fingerprint| EnrollmentApproval { host_name: "box7".parse().unwrap(), fingerprint, returns: None };
    // What was compared before the request changed, and the certificate's key alone, approve nothing.
    for wrong in [seen[0].1, pin(&key)] {
        let refused = world.admin().send::<Value>(Method::POST, &path, &approve(wrong)).await;
        assert_eq!(refused.code(), ErrorCode::PreconditionFailed);
    }
    let _view: EnrollmentRequestView =
        world.admin().send(Method::POST, &path, &approve(fingerprint)).await.data(StatusCode::OK);
    // The host has not checked in yet.
    let order = JobSubmit {
        job: JobId::new(Uuid::from_u128(1)),
        blob: "what only the host reads".to_owned(),
        tunnel: Some("cloudflared".parse().unwrap()),
    };
    let view: JobView =
        world.admin().send(Method::POST, "/v1/hosts/box7/jobs", &order).await.data(StatusCode::CREATED);
    let EnrollmentAnswer::Approved(enrolled) = submit("q").await.data(StatusCode::OK) else {
        panic!("not let in");
    };
    let host = world.host(*enrolled, key);
    let answer: CheckinAnswer = host.check_in(&host.full(1, 0), "0s").await.data(StatusCode::OK);
    assert_eq!(
        answer.jobs.iter().map(|job| (job.id, job.blob.as_str())).collect::<Vec<_>>(),
        [(view.id, "what only the host reads")]
    );
    let kept: TunnelOrder =
        world.admin().get("/v1/hosts/box7/tunnels/cloudflared/order").await.data(StatusCode::OK);
    assert_eq!((kept.job, kept.blob), (view.id, order.blob));
    for path in ["/v1/hosts/box7/tunnels/wg/order", "/v1/hosts/box8/tunnels/cloudflared/order"] {
        assert_eq!(world.admin().get::<Value>(path).await.code(), ErrorCode::NotFound);
    }
}
