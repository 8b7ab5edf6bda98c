//! Delivery of events to a webhook.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use holdfast_protocol::operator::EventView;
use holdfast_protocol::secret::Secret;
use hubd::task::http_post::{SIGNATURE_HEADER, WebhookSettings};
use hubd::task::webhook::EVENT_HEADER;
use ring::hmac;
use tokio::net::TcpListener;

use crate::world::{World, until};

const SECRET: &str = "0123456789abcdef0123456789abcdef";

#[derive(Clone, Default)]
struct Receiver {
    answers: Arc<Mutex<VecDeque<StatusCode>>>,
    seen: Arc<Mutex<Vec<(u64, EventView)>>>,
}

async fn receive(State(receiver): State<Receiver>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let signature = headers[SIGNATURE_HEADER].to_str().unwrap().strip_prefix("sha256=").unwrap();
    let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes());
    hmac::verify(&key, &body, &hex::decode(signature).unwrap()).expect("the signature is right");
    let number = headers[EVENT_HEADER].to_str().unwrap().parse().unwrap();
    receiver.seen.lock().unwrap().push((number, serde_json::from_slice(&body).unwrap()));
    receiver.answers.lock().unwrap().pop_front().unwrap_or(StatusCode::NO_CONTENT)
}

async fn start(receiver: Receiver) -> WebhookSettings {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap()).parse().unwrap();
    let router = Router::new().route("/hook", post(receive)).with_state(receiver);
    #[expect(clippy::disallowed_methods, reason = "it ends with the test's runtime")]
    tokio::spawn(async move { axum::serve(listener, router).await });
    WebhookSettings { url, secret: Secret::new(SECRET.to_owned()), former_secret: None }
}

#[tokio::test(flavor = "multi_thread")]
async fn events_arrive_in_order_signed_and_again_after_a_failure() {
    let receiver = Receiver::default();
    receiver.answers.lock().unwrap().extend([StatusCode::INTERNAL_SERVER_ERROR]);
    let settings = start(receiver.clone()).await;
    let world = World::with_webhook(Some(settings)).await;
    world.enrol("box7").await;
    let seen = || receiver.seen.lock().unwrap().clone();
    until("all three arrived", || async { seen().len() >= 4 }).await;
    let kinds: Vec<String> = seen().into_iter().map(|(_, event)| event.kind).collect();
    assert_eq!(kinds, ["operator_added", "operator_added", "invite_created", "host_enrolled"]);
    let numbers: Vec<u64> = seen().into_iter().map(|(number, _)| number).collect();
    assert_eq!(numbers, [1, 1, 2, 3]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_taken_is_not_sent_again_after_a_restart() {
    let receiver = Receiver::default();
    let world = World::with_webhook(Some(start(receiver.clone()).await)).await;
    until("the first arrived", || async { !receiver.seen.lock().unwrap().is_empty() }).await;
    let (folder, _temp) = world.stop().await;
    let world = World::in_folder(folder, Some(start(receiver.clone()).await)).await;
    world.invite("box7").await;
    until("the second arrived", || async { receiver.seen.lock().unwrap().len() >= 2 }).await;
    let numbers: Vec<u64> = receiver.seen.lock().unwrap().iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, [1, 2]);
}
