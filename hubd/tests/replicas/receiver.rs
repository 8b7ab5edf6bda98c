//! A receiver of alerts that keeps what it is sent.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use serde_json::Value;
use tokio::net::TcpListener;

/// How long it takes for its answer.
const ANSWER_AFTER: Duration = Duration::from_millis(300);

/// A request by its idempotency key.
type Requests = Arc<Mutex<Vec<(String, Value)>>>;

/// What was received.
#[derive(Clone, Default)]
pub struct Receiver(Requests);

async fn take(State(requests): State<Requests>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let key = headers["idempotency-key"].to_str().unwrap().to_owned();
    requests.lock().unwrap().push((key, serde_json::from_slice(&body).unwrap()));
    // The hub that sends may be killed meanwhile, and then the next one sends it again.
    tokio::time::sleep(ANSWER_AFTER).await;
    StatusCode::NO_CONTENT
}

impl Receiver {
    /// Listens, and gives the address.
    pub async fn start(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let router = Router::new().fallback(take).with_state(Arc::clone(&self.0));
        #[expect(clippy::disallowed_methods, reason = "it ends with the test's runtime")]
        tokio::spawn(async move { axum::serve(listener, router).await });
        url
    }

    /// Requests that came before under the same key.
    pub fn repeats(&self) -> usize {
        let requests = self.0.lock().unwrap();
        let keys: BTreeSet<&String> = requests.iter().map(|(key, _)| key).collect();
        requests.len() - keys.len()
    }

    /// For each incident the notices that say that it fires. Requests with the same key are one notice.
    pub fn firing(&self) -> BTreeMap<String, BTreeSet<String>> {
        let mut notices: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (key, body) in self.0.lock().unwrap().iter().filter(|(_, body)| body["state"] != "resolved") {
            for alert in body["alerts"].as_array().into_iter().flatten() {
                let incident = alert["incident"].as_str().unwrap_or_default().to_owned();
                notices.entry(incident).or_default().insert(key.clone());
            }
        }
        notices
    }
}
