//! Notices on their way to a receiver, and pings of the watcher.

use std::sync::{Arc, Mutex};

use alerts::Rules;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use holdfast_protocol::alert::DeliveryOutcome;
use holdfast_protocol::alert::TestQueued;
use holdfast_protocol::id::ReceiverName;
use holdfast_protocol::secret::Secret;
use hubd::settings::AlertSettings;
use hubd::task::delivery::Receiver;
use hubd::task::watcher::WatcherSettings;
use notify::channel::{SIGNATURE_HEADER, Webhook};
use notify::url::SecretUrl;
use notify::{Channel, EgressPolicy};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::world::{Options, World, until};

/// A server that keeps what it is sent, and answers as the test says.
#[derive(Clone, Default)]
pub struct Server {
    answers: Arc<Mutex<Vec<StatusCode>>>,
    pub seen: Arc<Mutex<Vec<(String, HeaderMap, Value)>>>,
}

async fn take(State(server): State<Server>, uri: Uri, headers: HeaderMap, body: Bytes) -> StatusCode {
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    server.seen.lock().unwrap().push((uri.path().to_owned(), headers, body));
    server.answers.lock().unwrap().pop().unwrap_or(StatusCode::NO_CONTENT)
}

impl Server {
    pub async fn start(&self) -> SecretUrl {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let router = Router::new().fallback(take).with_state(self.clone());
        #[expect(clippy::disallowed_methods, reason = "it ends with the test's runtime")]
        tokio::spawn(async move { axum::serve(listener, router).await });
        SecretUrl::try_from(Secret::new(url)).unwrap()
    }

    fn paths(&self) -> Vec<String> {
        self.seen.lock().unwrap().iter().map(|(path, _, _)| path.clone()).collect()
    }
}

/// One receiver, on this machine.
fn to_ops(channel: Channel) -> AlertSettings {
    let name: ReceiverName = "ops".parse().unwrap();
    AlertSettings {
        rules: Rules::default().resolve(std::slice::from_ref(&name)).unwrap(),
        receivers: vec![Receiver { name, channel }],
        reach: EgressPolicy::Loopback,
        watcher: None,
        backup: None,
        files: hubd::api::SettingsFiles::default(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_notice_is_signed_repeated_under_its_key_and_written_down() {
    let server = Server::default();
    server.answers.lock().unwrap().push(StatusCode::BAD_GATEWAY);
    let key = Secret::new("k".repeat(32)).try_into().unwrap();
    let channel = Channel::Webhook(Webhook { url: server.start().await, key, former_key: None, ca: None });
    let world = World::with(Options { alerts: to_ops(channel), ..Options::default() }).await;
    let queued: TestQueued =
        world.admin().send(Method::POST, "/v1/receivers/ops/test", &json!({})).await.data(StatusCode::OK);
    until("the failed one, its repeat and the other arrived", || async {
        // The pause after the failure is over for the hub.
        world.clock.advance(1);
        world.store.deliveries(None, 10).await.unwrap().len() == 2
    })
    .await;
    let seen = server.seen.lock().unwrap().clone();
    let of = |name: &str| seen.iter().map(|(_, headers, _)| headers[name].clone()).collect::<Vec<_>>();
    let keys = of("idempotency-key");
    assert!(keys.len() == 3 && keys[0] == keys[1] && keys[1] != keys[2], "{keys:?}");
    assert!(of(SIGNATURE_HEADER).iter().all(|value| value.to_str().unwrap().starts_with("t=")));
    assert_eq!(seen[0].2["state"], "test");
    let mut log = world.store.deliveries(None, 10).await.unwrap();
    log.reverse();
    let ends: Vec<_> = log.iter().map(|one| (one.outcome, one.tries)).collect();
    assert_eq!(log.iter().map(|one| one.key.to_string()).collect::<Vec<_>>(), queued.notices);
    assert_eq!(ends, [(DeliveryOutcome::Delivered, 2), (DeliveryOutcome::Delivered, 1)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_watcher_hears_of_the_start_and_that_the_hub_works() {
    let server = Server::default();
    let watcher = Some(WatcherSettings { url: server.start().await, every_s: 3600 });
    let alerts = AlertSettings { reach: EgressPolicy::Loopback, watcher, ..AlertSettings::default() };
    let _world = World::with(Options { alerts, ..Options::default() }).await;
    until("both pings arrived", || async { server.paths().len() >= 2 }).await;
    assert_eq!(server.paths(), ["/hook/start", "/hook"]);
}
