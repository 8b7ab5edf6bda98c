//! Receivers that do not answer, and the others meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use alerts::Rules;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use holdfast_protocol::alert::{DeliveryOutcome, TestQueued};
use holdfast_protocol::condition::ConditionCode;
use holdfast_protocol::id::ReceiverName;
use holdfast_protocol::secret::Secret;
use hubd::settings::AlertSettings;
use hubd::task::delivery::Receiver;
use notify::channel::{Alertmanager, Webhook};
use notify::{Channel, EgressPolicy};
use reqwest::Method;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::alertmanager::reports;
use crate::notices::Server;
use crate::world::{Options, World, until};

/// A server that answers a request when the test says so.
struct Gate {
    permits: Semaphore,
    asked: AtomicUsize,
    /// Requests that were given up before they were answered.
    abandoned: AtomicUsize,
}

/// Counts a request that ends before its answer.
struct Waiting<'a>(&'a Gate);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.abandoned.fetch_add(1, Ordering::SeqCst);
    }
}

async fn take(State(gate): State<Arc<Gate>>) -> StatusCode {
    gate.asked.fetch_add(1, Ordering::SeqCst);
    let waiting = Waiting(&gate);
    gate.permits.acquire().await.unwrap().forget();
    std::mem::forget(waiting);
    StatusCode::OK
}

impl Gate {
    async fn start() -> (Arc<Self>, String) {
        let (asked, abandoned) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let gate = Arc::new(Self { permits: Semaphore::new(0), asked, abandoned });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().fallback(take).with_state(Arc::clone(&gate));
        #[expect(clippy::disallowed_methods, reason = "it ends with the test's runtime")]
        tokio::spawn(async move { axum::serve(listener, router).await });
        (gate, url)
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

/// A hub with an Alertmanager at the gate and a webhook at the server, and no waits.
async fn world(gate: &str, server: &Server) -> World {
    let (slow, ops): (ReceiverName, ReceiverName) = ("slow".parse().unwrap(), "ops".parse().unwrap());
    let rules: Rules = toml::from_str("group_wait_s = 0\n").unwrap();
    let rules = rules.resolve(&[slow.clone(), ops.clone()]).unwrap();
    let alertmanager = Alertmanager { server: gate.to_owned().try_into().unwrap(), token: None, ca: None };
    let key = Secret::new("k".repeat(32)).try_into().unwrap();
    let webhook = Webhook { url: server.start().await, key, former_key: None, ca: None };
    let receivers = vec![
        Receiver { name: slow, channel: Channel::Alertmanager(alertmanager) },
        Receiver { name: ops, channel: Channel::Webhook(webhook) },
    ];
    let alerts =
        AlertSettings { rules, receivers, reach: EgressPolicy::Loopback, ..AlertSettings::default() };
    World::with(Options { alerts, ..Options::default() }).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_does_not_answer_delays_no_other() {
    let (gate, url) = Gate::start().await;
    let server = Server::default();
    let world = world(&url, &server).await;
    let heard = || server.seen.lock().unwrap().len();
    let tried = async || {
        let _: TestQueued =
            world.admin().send(Method::POST, "/v1/receivers/ops/test", &json!({})).await.data(StatusCode::OK);
    };
    let host = world.enrol("box7").await;
    reports(&world, &host, 1, &[ConditionCode::RecordsBroken]).await;
    until("the slow one is asked", || async { gate.asked() == 1 }).await;
    until("the other has its notice", || async { heard() == 1 }).await;
    tried().await;
    until("and two more, one after the other", || async { heard() == 3 }).await;
    assert_eq!(gate.abandoned.load(Ordering::SeqCst), 0, "the slow one is still asked");
    gate.permits.add_permits(1);
    let slow = async || {
        let all = world.store.deliveries(None, 10).await.unwrap();
        all.into_iter().filter(|one| one.receiver.as_str() == "slow").collect::<Vec<_>>()
    };
    until("the slow one has it", || async { slow().await.len() == 1 }).await;
    let ends: Vec<_> = slow().await.iter().map(|one| (one.outcome, one.tries)).collect();
    assert_eq!(ends, [(DeliveryOutcome::Delivered, 1)]);
    // The same while it is sent again what fires.
    world.clock.advance(61);
    world.invite("box8").await;
    until("the slow one is asked again", || async { gate.asked() == 2 }).await;
    tried().await;
    until("the other hears all the same", || async { heard() == 5 }).await;
    assert_eq!((gate.abandoned.load(Ordering::SeqCst), gate.asked()), (0, 2));
}

/// As where the disk is full for a while: the receiver hears of it twice, under the same id, and of all that follows.
#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_is_sent_to_again_once_the_end_of_a_delivery_can_be_written() {
    let (_gate, url) = Gate::start().await;
    let server = Server::default();
    let world = world(&url, &server).await;
    let connection = rusqlite::Connection::open(world.folder.join("hub.db")).unwrap();
    let full = "CREATE TRIGGER full BEFORE DELETE ON alert_outbox BEGIN SELECT raise(ABORT, 'full'); END";
    connection.execute_batch(full).unwrap();
    let heard = || server.seen.lock().unwrap().len();
    let _: TestQueued =
        world.admin().send(Method::POST, "/v1/receivers/ops/test", &json!({})).await.data(StatusCode::OK);
    let delivered = async || world.store.deliveries(None, 10).await.unwrap().len();
    let hosts = AtomicUsize::new(0);
    let later = async || {
        world.clock.advance(31);
        // An event wakes the task.
        world.invite(&format!("box{}", hosts.fetch_add(1, Ordering::SeqCst))).await;
    };
    until("the notice is sent again", || async {
        later().await;
        heard() >= 2
    })
    .await;
    assert_eq!(delivered().await, 0, "its end was not written");
    connection.execute_batch("DROP TRIGGER full").unwrap();
    until("that one and the one behind it are delivered", || async {
        later().await;
        delivered().await >= 2
    })
    .await;
}
