//! Wrapped keys at the hub: versions, proofs, reads, notices.

mod hostile;
mod notice;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::routing::post;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::escrow::notice::EscrowNotice;
use holdfast_protocol::escrow::{
    self, EscrowBytes, EscrowFound, EscrowKept, EscrowList, EscrowOpened, EscrowProof, EscrowPut,
    EscrowPutSchema, Notice, form,
};
use holdfast_protocol::job::{HostEpoch, Nonce, UtcSecond};
use holdfast_protocol::secret::Secret;
use hubd::task::escrow_notice::{NOTICE_HEADER, NoticeSettings};
use hubd::task::http_post::{SIGNATURE_HEADER, WebhookSettings};
use reqwest::{Method, StatusCode};
use ring::hmac;
use serde_json::Value;

use crate::world::{Answered, Host, World};

const SECRET: &str = "0123456789abcdef0123456789abcdef";

/// A file of the form that the hub requires. Nothing opens it, which the hub cannot detect.
fn file(salt: &str) -> EscrowBytes {
    let age = format!("age-encryption.org/v1\n-> scrypt {salt} 16\nbody\n--- mac\nsealed");
    EscrowBytes::try_from(form::to_text(age.as_bytes()).into_bytes()).unwrap()
}

pub(super) fn version(number: u32) -> EscrowPut {
    let file = file(&format!("salt{number}"));
    EscrowPut {
        schema: EscrowPutSchema::V1,
        number: number.try_into().unwrap(),
        sha256: file.sha256(),
        file,
        customer: "acme".parse().unwrap(),
        epoch: HostEpoch::new(1),
        code: 1.try_into().unwrap(),
        fingerprint: ["ab"; 32].join(":").parse().unwrap(),
        made_at: UtcSecond::try_from("2026-11-22T12:00:00Z".to_owned()).unwrap(),
    }
}

impl Host {
    pub(super) async fn put_escrow(&self, put: &EscrowPut) -> Answered<EscrowKept> {
        self.client.send(Method::PUT, "/v1/agent/escrow", put).await
    }

    pub(super) async fn read_escrow(&self) -> Answered<EscrowFound> {
        self.client.get("/v1/agent/escrow").await
    }

    pub(super) async fn escrows(&self) -> EscrowList {
        self.client.get("/v1/agent/escrow/versions").await.data(StatusCode::OK)
    }
}

/// A customer's server.
#[derive(Clone, Default)]
pub(super) struct Customer {
    answers: Arc<Mutex<VecDeque<StatusCode>>>,
    notices: Arc<Mutex<Vec<(u64, EscrowNotice)>>>,
}

async fn receive(State(customer): State<Customer>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let signature = headers[SIGNATURE_HEADER].to_str().unwrap().strip_prefix("sha256=").unwrap();
    let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes());
    hmac::verify(&key, &body, &hex::decode(signature).unwrap()).expect("the signature is right");
    let answer = customer.answers.lock().unwrap().pop_front().unwrap_or(StatusCode::NO_CONTENT);
    if answer.is_success() {
        let number = headers[NOTICE_HEADER].to_str().unwrap().parse().unwrap();
        customer.notices.lock().unwrap().push((number, serde_json::from_slice(&body).unwrap()));
    }
    answer
}

impl Customer {
    async fn address(&self) -> WebhookSettings {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/read", listener.local_addr().unwrap()).parse().unwrap();
        let router = Router::new().route("/read", post(receive)).with_state(self.clone());
        #[expect(clippy::disallowed_methods, reason = "it ends with the test's runtime")]
        tokio::spawn(async move { axum::serve(listener, router).await });
        WebhookSettings { url, secret: Secret::new(SECRET.to_owned()), former_secret: None }
    }

    pub(super) async fn for_all(&self) -> NoticeSettings {
        NoticeSettings { others: Some(self.address().await), ..NoticeSettings::default() }
    }

    pub(super) fn notices(&self) -> Vec<EscrowNotice> {
        self.notices.lock().unwrap().iter().map(|(_, notice)| notice.clone()).collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn versions_are_kept_whole_and_never_overwritten() {
    let world = World::with_notice(Customer::default().for_all().await).await;
    let host = world.enrol("box7").await;
    assert_eq!(host.read_escrow().await.code(), ErrorCode::NotFound);
    let first = host.put_escrow(&version(1)).await.data(StatusCode::OK);
    assert_eq!((first.notice, first.version.sha256.clone()), (Notice::Webhook, version(1).sha256));
    assert_eq!(host.put_escrow(&version(1)).await.data(StatusCode::OK), first, "a repeat is the same");
    let other = EscrowPut { code: 2.try_into().unwrap(), ..version(1) };
    assert_eq!(host.put_escrow(&other).await.code(), ErrorCode::EscrowTaken);
    let second = host.put_escrow(&version(2)).await.data(StatusCode::OK);
    assert_eq!(host.escrows().await.versions, [second.version.clone(), first.version.clone()]);
    let found = host.read_escrow().await.data(StatusCode::OK);
    assert_eq!((found.version, found.file), (second.version, version(2).file));
    let old: EscrowFound = host.client.get("/v1/agent/escrow/versions/1").await.data(StatusCode::OK);
    assert_eq!((old.version, old.file), (first.version, version(1).file));
    let kinds = world.event_kinds().await;
    let count = |kind: &str| kinds.iter().filter(|seen| *seen == kind).count();
    assert_eq!((count("escrow_kept"), count("escrow_read")), (2, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_is_proved_without_being_read() {
    let world = World::start().await;
    let host = world.enrol("box7").await;
    host.put_escrow(&version(1)).await.data(StatusCode::OK);
    for digit in ["a", "b"] {
        let nonce = Nonce::try_from(digit.repeat(32)).unwrap();
        let path = format!("/v1/agent/escrow/versions/1/proof?nonce={}", nonce.as_str());
        let said: EscrowProof = host.client.get(&path).await.data(StatusCode::OK);
        assert_eq!(said.proof, escrow::proof(&nonce, &version(1).file));
        assert_ne!(said.proof, escrow::proof(&nonce, &version(2).file));
    }
    for bad in ["", "?nonce=aa", "?nonce=aa&x=1"] {
        let path = format!("/v1/agent/escrow/versions/1/proof{bad}");
        assert_eq!(host.client.get::<Value>(&path).await.code(), ErrorCode::Range, "{bad:?}");
    }
    assert!(!world.event_kinds().await.contains(&"escrow_read".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drill_is_remembered_and_the_latest_counts() {
    let world = World::start().await;
    let host = world.enrol("box7").await;
    host.put_escrow(&version(1)).await.data(StatusCode::OK);
    let at = |text: &str| UtcSecond::try_from(text.to_owned()).unwrap();
    let (early, late) = (at("2026-11-22T13:00:00Z"), at("2026-11-23T13:00:00Z"));
    for said in [late, early] {
        let opened = EscrowOpened { at: said };
        let path = "/v1/agent/escrow/versions/1/opened";
        let kept: EscrowKept = host.client.send(Method::POST, path, &opened).await.data(StatusCode::OK);
        assert_eq!(kept.version.opened_at, Some(late));
    }
    let path = "/v1/agent/escrow/versions/2/opened";
    let none = host.client.send::<Value>(Method::POST, path, &EscrowOpened { at: late }).await;
    assert_eq!(none.code(), ErrorCode::NotFound);
}
