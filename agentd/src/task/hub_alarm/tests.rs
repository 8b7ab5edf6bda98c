//! Tests of the alarm under a clock of their own.

use std::sync::Mutex;
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::post;
use holdfast_protocol::secret::Secret;
use notify::EgressPolicy;
use notify::channel::Webhook;
use notify::url::SecretUrl;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, mpsc};

use super::*;
use crate::model::boot::{BootId, BootMoment};
use crate::model::clock_trust::Synchrony;
use crate::port::clock::{Pause, SyncQuery};
use crate::task::stop::{self, Stopper};

/// Each permit lets one sleep end, and time goes on by its length.
struct SteppedClock {
    now: Mutex<Timestamp>,
    permits: Semaphore,
    /// How many sleeps have begun.
    begun: watch::Sender<u32>,
}

impl Clock for SteppedClock {
    fn now(&self) -> Timestamp {
        *self.now.lock().unwrap()
    }
    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }
    fn boot_moment(&self) -> BootMoment {
        BootMoment { boot: BootId::of_this_run(uuid::Uuid::nil()), ms: 0 }
    }
    fn sleep(&self, pause: Duration) -> Pause<'_> {
        Box::pin(async move {
            self.begun.send_modify(|begun| *begun += 1);
            self.permits.acquire().await.unwrap().forget();
            *self.now.lock().unwrap() += SignedDuration::try_from(pause).unwrap();
        })
    }
    fn synchrony(&self) -> SyncQuery<'_> {
        Box::pin(async { Synchrony::Kept })
    }
}

struct World {
    clock: Arc<SteppedClock>,
    contact: watch::Sender<Contact>,
    channel: Channel,
    received: mpsc::Receiver<Value>,
    folder: tempfile::TempDir,
}

async fn world(answers: Vec<StatusCode>) -> World {
    let (sender, received) = mpsc::channel(16);
    let answers = Arc::new(Mutex::new(answers));
    let take = move |body: String| async move {
        let answer = answers.lock().unwrap().pop().unwrap_or(StatusCode::NO_CONTENT);
        sender.send(serde_json::from_str(&body).unwrap()).await.unwrap();
        answer
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    #[expect(clippy::disallowed_methods, reason = "it ends with the test's runtime")]
    tokio::spawn(async move { axum::serve(listener, Router::new().route("/", post(take))).await });
    let channel = Channel::Webhook(Webhook {
        url: SecretUrl::try_from(Secret::new(url)).unwrap(),
        key: Secret::new("k".repeat(32)).try_into().unwrap(),
        former_key: None,
        ca: None,
    });
    let now = Timestamp::from_second(1_800_000_000).unwrap();
    let contact = Contact { reached_at: Some(now), problem: None, certificate_ends_at: Timestamp::MAX };
    let clock = SteppedClock { now: Mutex::new(now), permits: Semaphore::new(0), begun: watch::channel(0).0 };
    World {
        clock: Arc::new(clock),
        contact: watch::channel(contact).0,
        channel,
        received,
        folder: tempfile::tempdir().unwrap(),
    }
}

impl World {
    fn start(&self) -> (Stopper, tokio::task::JoinHandle<()>) {
        let (stopper, stop) = stop::pair();
        let task = HubAlarmTask {
            host: "018f3c1e-6b1f-7c1d-9d0a-2f6d1c0b7a55".parse().unwrap(),
            node: "pve1".parse().unwrap(),
            contact: self.contact.subscribe(),
            channel: self.channel.clone(),
            sender: Sender::new(EgressPolicy::Loopback),
            after: SignedDuration::from_mins(15),
            file: HubAlarmFile::of(self.folder.path()),
            clock: self.clock.clone(),
        };
        #[expect(clippy::disallowed_methods, reason = "the test waits for its end")]
        let running = tokio::spawn(task.run(stop));
        (stopper, running)
    }

    /// Lets so many minutes pass, each judged.
    async fn minutes(&self, minutes: u32) {
        let mut begun = self.clock.begun.subscribe();
        // It sleeps: everything before is judged.
        begun.wait_for(|begun| *begun > 0).await.unwrap();
        let wanted = *begun.borrow() + minutes;
        self.clock.permits.add_permits(minutes.try_into().unwrap());
        begun.wait_for(|begun| *begun >= wanted).await.unwrap();
    }

    fn heard(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.received.try_recv().ok())
            .map(|body| body["title"].as_str().unwrap().to_owned())
            .collect()
    }
}

const AWAY: &str = "pve1: the hub does not answer";
const BACK: &str = "pve1: the hub answers again";

#[tokio::test]
async fn it_is_announced_once_that_the_hub_is_away_and_once_that_it_is_back() {
    let mut world = world(vec![StatusCode::BAD_GATEWAY]).await;
    let (stopper, running) = world.start();
    world.minutes(15).await;
    assert_eq!(world.heard(), [""; 0]);
    world.minutes(5).await;
    assert_eq!(world.heard(), [AWAY, AWAY], "the first was not taken, and is sent again");
    world.minutes(60).await;
    stopper.stop();
    running.await.unwrap();

    let (stopper, running) = world.start();
    world.minutes(60).await;
    assert_eq!(world.heard(), [""; 0], "a restart announces nothing again");
    let now = world.clock.now();
    world.contact.send_modify(|contact| contact.reached_at = Some(now));
    world.minutes(2).await;
    assert_eq!(world.heard(), [BACK]);
    world.minutes(10).await;
    assert_eq!(world.heard(), [""; 0]);
    stopper.stop();
    running.await.unwrap();
}
