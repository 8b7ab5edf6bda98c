//! Tests of the task that passes break-glass orders on.

use std::path::Path;
use std::sync::Arc;

use agentd::model::view::HostSnapshot;
use agentd::port::break_glass::BreakGlassFiles;
use agentd::port::clock::{Clock, RealClock};
use agentd::port::store::Store;
use agentd::port::store::job_intake::{Outcome, take};
use agentd::port::store::roster::RosterTexts;
use agentd::task::break_glass::{BreakGlassTask, SharedStatus};
use agentd::task::stop::{self, Stopper};
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::{HostId, JobId};
use holdfast_protocol::job::act::Sha256Text;
use holdfast_protocol::job::{JobReport, JobState, QueuedJob, SeenHost, SignedJob, UtcSecond};
use jiff::SignedDuration;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::ssh_signer::{Hand, job};

struct World {
    folder: tempfile::TempDir,
    store: Store,
    view: watch::Sender<Arc<HostSnapshot>>,
    status: watch::Receiver<SharedStatus>,
    clock: Arc<dyn Clock>,
    stopper: Stopper,
    task: JoinSet<()>,
}

fn host() -> HostId {
    HostId::new(Uuid::from_u128(77))
}

fn own() -> SeenHost {
    SeenHost { name: "box7".parse().unwrap(), fingerprint: "4f2a-9c01-77de-b3a8-0c11".parse().unwrap() }
}

impl World {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock: Arc<dyn Clock> = Arc::new(RealClock::start());
        let store = Store::open(folder.path(), clock.now()).unwrap();
        let texts = RosterTexts { operators: Hand::new(1).line("ada"), policy: "version = 1\n".to_owned() };
        store.lay_down(texts, clock.now()).await.unwrap();
        let (view, seen) = watch::channel(Arc::new(HostSnapshot::default()));
        let (published, status) = watch::channel(SharedStatus::default());
        let (stopper, stop) = stop::pair();
        let files = BreakGlassFiles::at(folder.path());
        let task = BreakGlassTask {
            files,
            store: store.clone(),
            view: seen,
            status: published,
            clock: Arc::clone(&clock),
        };
        let mut tasks = JoinSet::new();
        tasks.spawn(task.run(stop));
        Self { folder, store, view, status, clock, stopper, task: tasks }
    }

    /// Signs an order and leaves it, as the hub passes it on.
    async fn order(&self, n: u32) -> (JobId, SignedJob) {
        let epoch = self.store.trust_state().await.unwrap().epoch.number();
        let at =
            |minutes: i64| UtcSecond::new(self.clock.now() + SignedDuration::from_mins(minutes)).unwrap();
        let id = JobId::new(Uuid::from_u128(n.into()));
        let payload = json!({ "schema": "holdfast.job/v1", "job_id": id, "host_id": host(), "host_epoch": epoch,
            "host": own(), "target": { "kind": "host" }, "verb": "break_glass",
            "args": { "way": "tunnel", "minutes": 30, "key": format!("ssh-ed25519 {}", "A".repeat(68)),
                "customers": ["acme"] },
            "not_before": at(-1), "expires_at": at(60), "nonce": format!("{n:032x}"), "reason": "the agent hangs" });
        let blob = job(payload.to_string().as_bytes(), &[&Hand::new(1)]);
        let signed = SignedJob::parse(blob.as_bytes()).unwrap();
        let mail = QueuedJob { id, blob, correlation_id: None };
        let outcome = take(&self.store, (host(), &own()), &mail, self.clock.now()).await.unwrap();
        assert!(matches!(outcome, Outcome::Taken), "{outcome:?}");
        (id, signed)
    }

    fn root_says(&self, opened: Value, refused: Value) {
        let status = json!({ "schema": "holdfast.break-glass/v1", "written_at": "2026-11-21T14:00:00Z",
            "opened": opened, "refused": refused });
        std::fs::write(self.folder.path().join("status.json"), status.to_string()).unwrap();
    }

    async fn report(&self, id: JobId) -> JobReport {
        self.store.job_reports().await.unwrap().into_iter().find(|report| report.id == id).unwrap()
    }

    /// Waits until a job has ended. Each write of another job wakes the task at once.
    async fn ended(&self, id: JobId) -> JobReport {
        let mut changes = self.store.changes();
        let waiting = async {
            loop {
                changes.borrow_and_update();
                let report = self.report(id).await;
                if report.state.is_end() {
                    return report;
                }
                changes.changed().await.unwrap();
            }
        };
        tokio::time::timeout(std::time::Duration::from_secs(60), waiting).await.unwrap()
    }

    async fn stop(mut self) {
        self.stopper.stop();
        while let Some(ended) = self.task.join_next().await {
            ended.unwrap();
        }
    }
}

/// Waits until the order is there.
async fn put_down(folder: &Path) -> SignedJob {
    let path = folder.join("break-glass/order.json");
    let waiting = async {
        loop {
            if let Ok(text) = std::fs::read_to_string(&path) {
                return SignedJob::parse(text.as_bytes()).unwrap();
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(60), waiting).await.unwrap()
}

fn opened(id: JobId, signed: &SignedJob, at: UtcSecond) -> Value {
    json!({ "order": Sha256Text::of(&signed.payload), "job": id, "way": "tunnel", "customers": ["acme"], "consents": [],
        "signers": ["ada"], "reason": "the agent hangs", "opened_at": at, "closes_at": at, "sessions": 0 })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_order_is_passed_on_whole_and_ends_by_what_root_says() {
    let mut world = World::start().await;
    let (first, signed) = world.order(1).await;
    assert_eq!(put_down(world.folder.path()).await, signed, "the bytes and signatures are as they came");
    assert_eq!(world.report(first).await.state, JobState::Waiting, "root's program was not heard");
    let at = UtcSecond::new(world.clock.now()).unwrap();
    world.root_says(json!([opened(first, &signed, at)]), json!([]));
    let (second, other) = world.order(2).await;
    assert_eq!(world.ended(first).await.state, JobState::Done);
    let heard = world.status.wait_for(|status| status.is_some()).await.unwrap().clone();
    assert_eq!(heard.as_ref().as_ref().unwrap().open().unwrap().job, first);

    let mut closed = opened(first, &signed, at);
    closed["closed"] = json!({ "at": at, "cause": "expired" });
    let refused = json!([{ "order": Sha256Text::of(&other.payload), "at": at, "code": "CONSENT_MISSING",
        "message": "acme did not consent" }]);
    world.root_says(json!([closed]), refused);
    let (third, _) = world.order(3).await;
    let report = world.ended(second).await;
    assert_eq!((report.state, report.problem.unwrap().code), (JobState::Failed, ErrorCode::ConsentMissing));
    let audit = world.store.audit(50).await.unwrap();
    let ways: Vec<&str> = audit
        .iter()
        .map(|line| line.action.as_str())
        .filter(|action| action.starts_with("break_glass"))
        .collect();
    assert_eq!(ways, ["break_glass_opened", "break_glass_closed"]);
    assert_eq!(world.report(third).await.state, JobState::Waiting);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_order_that_leaves_a_customer_out_is_not_passed_on() {
    let world = World::start().await;
    let guest =
        serde_json::from_value(json!({ "name": "web-1", "vmid": 300, "status": "managed", "run": "running",
        "wanted": "running", "customer": "byte" }));
    world
        .view
        .send_replace(Arc::new(HostSnapshot { guests: vec![guest.unwrap()], ..HostSnapshot::default() }));
    let (id, _) = world.order(1).await;
    let report = world.ended(id).await;
    assert_eq!(report.problem.unwrap().code, ErrorCode::ConsentMissing);
    assert!(!world.folder.path().join("break-glass/order.json").exists());
    world.stop().await;
}
