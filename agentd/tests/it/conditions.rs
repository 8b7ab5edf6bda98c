//! Tests of the conditions that the report has, from cause to end.
#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, in its helpers too")]

use std::path::Path;
use std::sync::Arc;

use agentd::model::condition_facts::Blocked;
use agentd::model::hardware_health::HardwareView;
use agentd::model::storage::{FirstPoll, StorageView};
use agentd::model::tunnel::TunnelsView;
use agentd::model::usage_levels::UsageLevels;
use agentd::model::view::HostSnapshot;
use agentd::port::clock::{Clock, RealClock};
use agentd::port::host_replacement::HandOverFolder;
use agentd::port::hub::Contact;
use agentd::port::store::{OpenError, Store};
use agentd::task::break_glass::SharedStatus;
use agentd::task::report::ReportTask;
use agentd::task::stop::{self, Stopper};
use holdfast_protocol::break_glass::BreakGlassStatus;
use holdfast_protocol::condition::ReportedCondition;
use holdfast_protocol::report::Sections;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// An agent's report, fed by hand.
struct Report {
    view: watch::Sender<Arc<HostSnapshot>>,
    storage: watch::Sender<Arc<StorageView>>,
    sections: watch::Receiver<Arc<Sections>>,
    stopper: Stopper,
    task: JoinSet<()>,
    _contact: watch::Sender<Contact>,
    _hardware: watch::Sender<Arc<HardwareView>>,
    _levels: watch::Sender<Arc<UsageLevels>>,
    break_glass: watch::Sender<SharedStatus>,
    tunnels: watch::Sender<Arc<TunnelsView>>,
}

async fn store(folder: &Path) -> Store {
    // The thread of a store that was just dropped releases its lock a moment later.
    loop {
        match Store::open(folder, RealClock::start().now()) {
            Ok(store) => return store,
            Err(OpenError::Held(_)) => tokio::task::yield_now().await,
            Err(error) => panic!("{error}"),
        }
    }
}

impl Report {
    async fn start(folder: &Path) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(RealClock::start());
        let (view, seen) = watch::channel(Arc::new(HostSnapshot::default()));
        let (storage, polled) = watch::channel(Arc::new(StorageView::default()));
        let (_hardware, hardware) = watch::channel(Arc::default());
        let (_levels, levels) = watch::channel(Arc::default());
        let (way, break_glass) = watch::channel(SharedStatus::default());
        let (tunnels, looked_at) = watch::channel(Arc::new(TunnelsView::default()));
        let (reported, sections) = watch::channel(Arc::new(Sections::default()));
        let certificate_ends_at = Timestamp::MAX;
        let at_start = Contact { reached_at: None, problem: None, certificate_ends_at };
        let (_contact, contact) = watch::channel(at_start);
        let (stopper, stop) = stop::pair();
        let reporter = ReportTask {
            store: store(folder).await,
            view: seen,
            storage: polled,
            hardware,
            levels,
            tunnels: looked_at,
            break_glass,
            sections: reported,
            started_at: clock.now(),
            clock,
            status: Vec::new(),
            handed: HandOverFolder::of(folder),
            recipient: None,
            contact,
            token_ages: Arc::new(Vec::new),
        };
        let mut task = JoinSet::new();
        task.spawn(reporter.run(stop));
        let break_glass = way;
        Self { view, storage, sections, stopper, task, _contact, _hardware, _levels, break_glass, tunnels }
    }

    /// Waits for a report with these codes.
    async fn has(&mut self, codes: &[&str]) -> Vec<ReportedCondition> {
        let of = |sections: &Arc<Sections>| {
            let set = sections.conditions.as_ref()?;
            let found = set.conditions().iter().map(|condition| condition.code.as_str());
            found.eq(codes.iter().copied()).then(|| set.conditions().to_vec())
        };
        let reported = self.sections.wait_for(|sections| of(sections).is_some()).await.unwrap();
        of(&reported).unwrap()
    }

    async fn stop(self) {
        let Self { stopper, mut task, .. } = self;
        stopper.stop();
        task.join_next().await.unwrap().unwrap();
    }
}

fn observed(run: &str) -> Arc<HostSnapshot> {
    let guest = json!({
        "uid": "018f3c01-6b1f-7c1d-9d0a-2f6d1c0b7a55", "name": "web-1", "vmid": 300, "status": "managed", "run": run,
        "wanted": "running"
    });
    Arc::new(HostSnapshot {
        seen_at: Some(RealClock::start().now()),
        guests: vec![serde_json::from_value(guest).unwrap()],
        ..HostSnapshot::default()
    })
}

fn polled(status: &str) -> Arc<StorageView> {
    let target: Value = json!({
        "name": "disk1", "backend": "a disk", "role": "local-backup", "class": "slow", "status": status,
        "since": "2026-11-21T00:00:00Z", "reason": "its device went away"
    });
    let targets = vec![serde_json::from_value(target).unwrap()];
    Arc::new(StorageView { looked: FirstPoll::Yes, targets, ..StorageView::default() })
}

#[tokio::test]
async fn a_crashed_guest_and_a_lost_storage_come_and_go() {
    let folder = tempfile::tempdir().unwrap();
    let mut report = Report::start(folder.path()).await;
    // The agent itself is reported before anything was observed; of conditions nothing is said yet.
    let first = report.sections.wait_for(|sections| sections.agent.is_some()).await.unwrap().clone();
    assert_eq!(first.conditions, None);
    report.view.send_replace(observed("running"));
    report.has(&[]).await;
    report.storage.send_replace(polled("dropped"));
    report.view.send_replace(observed("stopped"));
    let both = report.has(&["GUEST_CRASHED", "STORAGE_GONE"]).await;
    let since = both.first().unwrap().since;
    assert_eq!(both.last().unwrap().since.to_string(), "2026-11-21T00:00:00Z");
    report.storage.send_replace(polled("mounted"));
    assert_eq!(report.has(&["GUEST_CRASHED"]).await.first().unwrap().since, since);
    report.stop().await;

    // After a restart Proxmox does not answer: what an earlier run reported goes on, with its beginning.
    let mut report = Report::start(folder.path()).await;
    report.view.send_replace(Arc::new(HostSnapshot {
        unobserved_since: Some(since),
        blocked: Some(Blocked::ByProxmox),
        ..HostSnapshot::default()
    }));
    let away = report.has(&["GUEST_CRASHED", "PROXMOX_AWAY"]).await;
    assert!(away.iter().all(|condition| condition.since == since), "{away:?}");
    report.view.send_replace(observed("running"));
    report.has(&[]).await;
    report.stop().await;
}

/// Root's program says so; each customer with guests hears of it.
#[tokio::test]
async fn an_open_way_is_reported_until_it_closes() {
    let folder = tempfile::tempdir().unwrap();
    let mut report = Report::start(folder.path()).await;
    report.view.send_replace(observed("running"));
    report.has(&[]).await;
    let mut order = json!({ "order": "a".repeat(64), "job": "01906f3c-6b1f-7c1d-9d0a-2f6d1c0b7a01", "way": "tunnel",
        "customers": ["acme"], "consents": ["acme"], "signers": ["ada"], "reason": "the agent hangs",
        "opened_at": "2026-11-21T14:00:00Z", "closes_at": "2026-11-21T14:30:00Z", "sessions": 0 });
    let status = |order: &Value| {
        let text = json!({ "schema": "holdfast.break-glass/v1", "written_at": "2026-11-21T14:00:00Z",
            "opened": [order], "refused": [] });
        Arc::new(Some(BreakGlassStatus::parse(text.to_string().as_bytes()).unwrap()))
    };
    report.break_glass.send_replace(status(&order));
    let open = report.has(&["BREAK_GLASS_OPEN"]).await;
    assert_eq!(open.first().unwrap().since.to_string(), "2026-11-21T14:00:00Z");
    order["closed"] = json!({ "at": "2026-11-21T14:30:00Z", "cause": "expired" });
    report.break_glass.send_replace(status(&order));
    report.has(&[]).await;
    report.stop().await;
}

/// The empty audit of records that were begun anew is no audit that was cut off.
#[tokio::test]
async fn damaged_records_are_reported_without_an_audit() {
    let folder = tempfile::tempdir().unwrap();
    let mut report = Report::start(folder.path()).await;
    report.view.send_replace(observed("running"));
    report.has(&[]).await;
    assert!(report.sections.borrow().trust.is_some());
    report.stop().await;

    drop(store(folder.path()).await);
    std::fs::write(folder.path().join("agent.db"), [7; 8_192]).unwrap();
    let mut report = Report::start(folder.path()).await;
    report.view.send_replace(observed("running"));
    report.has(&["RECORDS_DAMAGED"]).await;
    assert_eq!(report.sections.borrow().trust, None);
    report.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tunnel_that_is_down_is_a_condition_and_in_the_section_of_the_agent() {
    let folder = tempfile::tempdir().unwrap();
    let mut report = Report::start(folder.path()).await;
    report.view.send_replace(Arc::new(HostSnapshot {
        seen_at: Some(Timestamp::UNIX_EPOCH),
        ..HostSnapshot::default()
    }));
    report.has(&[]).await;
    let tunnel = |state: &str| {
        let tunnel = json!({ "name": "cf", "unit": "cloudflared.service", "state": state, "why": "so",
            "since": "2026-11-22T00:00:00Z", "checked_at": "2026-11-22T00:00:00Z" });
        Arc::new(TunnelsView { reports: Some(vec![serde_json::from_value(tunnel).unwrap()]) })
    };
    report.tunnels.send_replace(tunnel("down"));
    let down = report.has(&["TUNNEL_DOWN"]).await;
    assert_eq!(down[0].subject.to_string(), "tunnel:cf");
    assert_eq!(report.sections.borrow().agent.as_ref().unwrap().tunnels.len(), 1);
    report.tunnels.send_replace(tunnel("up"));
    report.has(&[]).await;
    report.stop().await;
}
