//! Tests of the reconcile loop and healed drift.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use agentd::execute::Ports;
use agentd::model::policy::Policy;
use agentd::model::usage::UsageReading;
use agentd::model::view::HostSnapshot;
use agentd::operation::log::Event;
use agentd::operation::{Operation, Start, Target};
use agentd::port::pve::{ConfigChange, ConfigUpdate};
use agentd::port::store::journal::NewOperation;
use agentd::task::observe::Observer;
use agentd::task::reconcile::{ObserveInterval, Reconcile};
use agentd::task::stop::{self, Stopper};
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::desired::{
    Desired, DesiredDocument, DesiredGuest, DesiredSchema, GuestSize, RunState,
};
use holdfast_protocol::generation::Generation;
use holdfast_protocol::id::{NodeName, OperationId, Vmid};
use holdfast_protocol::job::{Draft, Verb};
use holdfast_protocol::operation::{OperationKind, OperationStatus, OperationView};
use holdfast_protocol::protection::BackupPolicy;
use holdfast_protocol::report::{GuestReport, GuestStatus, Running};
use holdfast_protocol::size::{MemoryMib, PollSeconds};
use jiff::Timestamp;
use pve_sim::fault::{Aim, Fault};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::world::{Controllers, World, guest, open, snapshot, uid, vmid};

pub struct Agent {
    pub ports: Ports,
    pub view: watch::Receiver<Arc<HostSnapshot>>,
    stopper: Stopper,
    pub task: JoinHandle<()>,
    _controllers: Controllers,
}

#[expect(clippy::disallowed_methods, reason = "the loop under test runs beside the test, which ends it")]
async fn start_publishing(world: &World, policy: Policy, to: Option<watch::Sender<UsageReading>>) -> Agent {
    let ports = world.sound().await;
    let disks = std::iter::once(&policy.storage).chain(&policy.bulk_storage).cloned();
    let storages: BTreeSet<_> = disks.chain(["backup2".parse().unwrap()]).collect();
    let node: NodeName = "pve1".parse().unwrap();
    let place = (node.clone(), policy.pool.clone());
    let eye = Observer::new(Arc::clone(&ports.pve), Arc::clone(&ports.clock), place, storages);
    let eye = match to {
        Some(to) => eye.publishing_use(to),
        None => eye,
    };
    let (sender, view) = watch::channel(Arc::new(HostSnapshot::default()));
    let (stopper, stop) = stop::pair();
    let reconcile = Reconcile {
        ports: ports.clone(),
        eye,
        policy,
        node,
        interval: ObserveInterval::ByDocument,
        view: sender,
        stop,
    };
    let _controllers = Controllers::start(&ports);
    Agent { ports, view, stopper, task: tokio::spawn(reconcile.run()), _controllers }
}

pub async fn start_with(world: &World, policy: Policy) -> Agent {
    start_publishing(world, policy, None).await
}

/// One that publishes what its observations say of use.
pub async fn start_measured(world: &World, to: watch::Sender<UsageReading>) -> Agent {
    start_publishing(world, world.policy(), Some(to)).await
}

pub async fn start(world: &World) -> Agent {
    start_with(world, world.policy()).await
}

impl Agent {
    pub async fn goal(&self, generation: u64, guests: Vec<DesiredGuest>) {
        self.goal_under(generation, Vec::new(), guests).await;
    }

    pub async fn goal_under(&self, generation: u64, policies: Vec<BackupPolicy>, guests: Vec<DesiredGuest>) {
        let document = DesiredDocument {
            schema: DesiredSchema::V1,
            generation: Generation::new(generation),
            poll_interval_s: PollSeconds::try_from(10).unwrap(),
            observe_interval_s: None,
            levels: None,
            overcommit: None,
            customer_limits: Vec::new(),
            alarm_after_s: None,
            policies,
            storage: Vec::new(),
            guests,
        };
        self.ports
            .store
            .offer_desired(Desired::check(document).unwrap(), self.ports.clock.now())
            .await
            .unwrap();
    }

    /// Waits until the view is as described, and gives it.
    pub async fn until(&mut self, what: &str, is: impl Fn(&HostSnapshot) -> bool) -> Arc<HostSnapshot> {
        let waiting = self.view.wait_for(|view| is(view));
        // It ends a hang: on a busy machine a guest with its first backup takes a minute.
        let waited = tokio::time::timeout(Duration::from_secs(300), waiting).await;
        if let Ok(Ok(view)) = waited.map(|view| view.map(|view| Arc::clone(&view))) {
            return view;
        }
        let operations = self.ports.store.operation_views(10).await.unwrap();
        panic!("never {what}: {:#?}\n{operations:#?}", *self.view.borrow())
    }

    pub async fn stop(self) {
        self.stopper.stop();
        self.task.await.unwrap();
    }
}

pub fn report(view: &HostSnapshot, n: u8) -> Option<&GuestReport> {
    view.guests.iter().find(|report| report.uid == Some(uid(n)))
}

pub fn serves(view: &HostSnapshot, n: u8) -> bool {
    report(view, n).is_some_and(|report| {
        report.status == GuestStatus::Managed
            && report.run == Running::Running
            && report.controller.is_some()
            && report.conditions.is_empty()
            && report.size.is_some_and(|size| size == guest(n).size)
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn guests_are_made_drift_is_healed_and_no_one_is_forgotten() {
    let world = World::start().await;
    let mut agent = start(&world).await;
    agent.goal(1, vec![guest(1), guest(2), guest(3)]).await;
    let view = agent.until("three guests that serve", |view| (1..=3).all(|n| serves(view, n))).await;
    assert!(view.host.as_ref().is_some_and(|host| host.storages.len() == 2), "{view:#?}");
    assert!(view.waiting.is_empty() && view.problems.is_empty(), "{view:#?}");

    let (pve, first) = (world.pve(), report(&view, 1).unwrap().vmid.unwrap());
    let config = pve.guest_config(first).await.unwrap();
    let changes = vec![ConfigChange::Memory(MemoryMib::try_from(128).unwrap())];
    pve.configure(first, &ConfigUpdate::new(config.digest, changes).unwrap()).await.unwrap();
    pve.stop(first).await.unwrap();
    agent.until("seen as stopped", |view| !serves(view, 1)).await;
    agent.until("healed", |view| serves(view, 1)).await;

    // A document that no longer names a guest: it continues to run and is reported as unmanaged.
    agent.goal(2, vec![guest(1), guest(2)]).await;
    let unmanaged =
        |view: &HostSnapshot| report(view, 3).is_some_and(|report| report.status == GuestStatus::Unmanaged);
    let view = agent.until("unmanaged", unmanaged).await;
    assert_eq!(report(&view, 3).unwrap().run, Running::Running);

    // Another guest's number, an unapproved golden: each is reported, and nothing changes.
    let before = world.guests();
    let foreign = DesiredGuest { vmid: report(&view, 3).unwrap().vmid, ..guest(4) };
    let strange = DesiredGuest { golden: "2026.12.1".parse().unwrap(), ..guest(5) };
    agent.goal(3, vec![guest(1), guest(2), foreign, strange]).await;
    let reported = |view: &HostSnapshot, n: u8, code| {
        report(view, n).is_some_and(|report| report.conditions.iter().any(|condition| condition.code == code))
    };
    let view = agent
        .until("refused", |view| {
            reported(view, 4, ErrorCode::VmidForeign) && reported(view, 5, ErrorCode::GoldenUnapproved)
        })
        .await;
    let signable: Vec<Draft> =
        view.waiting.iter().filter_map(|held| Draft::parse(held.payload.as_bytes()).ok()).collect();
    assert_eq!((signable.len(), view.waiting.len()), (1, 2), "{view:#?}");
    assert_eq!(signable[0].act.verb(), Verb::DestroyGuest);
    assert_eq!(world.guests(), before);
    agent.stop().await;
}

/// Stopped in the middle of its work and started again: the same three guests, each by one restore.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_is_dropped_at_work_goes_on_where_it_stood() {
    let world = World::start().await;
    for pause_ms in [30, 150, 400] {
        let agent = start(&world).await;
        agent.goal(1, vec![guest(1), guest(2), guest(3)]).await;
        tokio::time::timeout(Duration::from_millis(pause_ms), std::future::pending::<()>())
            .await
            .unwrap_err();
        agent.task.abort();
        assert!(agent.task.await.unwrap_err().is_cancelled());
    }
    let mut agent = start(&world).await;
    agent.until("three guests that serve", |view| (1..=3).all(|n| serves(view, n))).await;
    let mut restores = 0;
    for number in 300..310 {
        restores += world.restores(number).await;
    }
    assert_eq!((world.guests().len(), world.disks().len(), restores), (3, 9, 3));
    assert!(agent.ports.store.verify_audit().await.is_ok());
    assert_eq!(agent.ports.store.open_operations().await.unwrap(), Vec::new());
    agent.stop().await;
}

/// Every request that changes an existing guest: larger disks, other sizes, stopped, running again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guest_follows_its_document() {
    let world = World::start().await;
    let mut agent = start(&world).await;
    agent.goal(1, vec![guest(1)]).await;
    let view = agent.until("a guest that serves", |view| serves(view, 1)).await;
    let number = report(&view, 1).unwrap().vmid.unwrap();

    let mut larger = guest(1);
    larger.size = GuestSize {
        cores: 1.try_into().unwrap(),
        memory_mib: 512.try_into().unwrap(),
        swap_mib: 0.try_into().unwrap(),
        rootfs_gib: 3.try_into().unwrap(),
    };
    larger.volumes[0].size_gib = 2.try_into().unwrap();
    larger.run = RunState::Stopped;
    agent.goal(2, vec![larger.clone()]).await;
    let as_wanted = |view: &HostSnapshot| {
        let report = report(view, 1).unwrap();
        report.run == Running::Stopped && report.size == Some(larger.size) && report.conditions.is_empty()
    };
    agent.until("larger and at rest", as_wanted).await;
    let config = world.pve().guest_config(number).await.unwrap();
    assert_eq!(config.mounts[&0].size, Some(2 << 30));

    let mut smaller = larger.clone();
    smaller.run = RunState::Running;
    smaller.size.rootfs_gib = 1.try_into().unwrap();
    agent.goal(3, vec![smaller]).await;
    let view = agent
        .until("running, and the shrinking held", |view| {
            report(view, 1).unwrap().run == Running::Running && view.waiting.len() == 1
        })
        .await;
    assert!(view.waiting[0].effect.contains("shrink"), "{view:#?}");
    let config = world.pve().guest_config(number).await.unwrap();
    assert_eq!(config.rootfs.unwrap().size, Some(3 << 30), "nothing shrank");
    agent.stop().await;
}

/// An expired snapshot is removed by itself, and one that has not expired stays.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_snapshot_goes_when_its_time_is_over() {
    let world = World::start().await;
    let mut agent = start(&world).await;
    agent.goal(1, vec![guest(1)]).await;
    agent.until("a guest that serves", |view| serves(view, 1)).await;
    for (n, name, lives_s) in [(100, "young", 3_600), (101, "old", -1)] {
        // The loop takes up open operations.
        let id = open(&agent.ports, n, snapshot(name, lives_s)).await.id;
        ended(&agent.ports, |view| view.id == id).await;
    }
    ended(&agent.ports, |view| view.kind == OperationKind::ExpireSnapshot).await;
    let left = agent.ports.store.snapshots(uid(1)).await.unwrap();
    assert_eq!(left.iter().map(|record| record.name.as_str()).collect::<Vec<_>>(), ["young"]);
    assert_eq!(world.pve().snapshots(vmid(300)).await.unwrap().len(), 1);
    agent.stop().await;
}

/// Waits until such an operation is done.
async fn ended(ports: &Ports, is: impl Fn(&OperationView) -> bool) {
    let mut changes = ports.store.changes();
    for _ in 0..1_000 {
        changes.mark_unchanged();
        let views = ports.store.operation_views(10).await.unwrap();
        if let Some(found) = views.iter().find(|view| is(view) && view.status.is_end()) {
            assert_eq!(found.status, OperationStatus::Done, "{found:#?}");
            return;
        }
        tokio::time::timeout(Duration::from_secs(60), changes.changed()).await.unwrap().unwrap();
    }
    panic!("it never ended");
}

/// Proxmox is away: this is reported, and what was seen before stays with its time. When Proxmox is back, the work
/// continues.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn proxmox_away_is_said_and_waited_out() {
    let world = World::start().await;
    let mut agent = start(&world).await;
    let aim = Aim { method: "GET".to_owned(), path: "/cluster/resources".to_owned() };
    for _ in 0..12 {
        world.sim.node.faults.arm(Fault::DaemonDown { on: aim.clone() });
    }
    let view = agent.until("told", |view| !view.problems.is_empty()).await;
    assert_eq!(view.problems[0].code, ErrorCode::Unavailable);
    agent.goal(1, vec![guest(1)]).await;
    agent.until("a guest that serves", |view| serves(view, 1) && view.problems.is_empty()).await;
    agent.stop().await;
}

/// A guest that stops again and again by itself is started a few times and then left for a person.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guest_that_does_not_stay_up_is_left_for_a_person() {
    let world = World::start().await;
    let mut agent = start(&world).await;
    agent.goal(1, vec![guest(1)]).await;
    let view = agent.until("a guest that serves", |view| serves(view, 1)).await;
    let number = report(&view, 1).unwrap().vmid.unwrap();
    let now = agent.ports.clock.now();
    // Five starts are in the journal already, the last one long enough ago to be tried again.
    for n in 0..5 {
        let at = now.checked_sub(jiff::SignedDuration::from_secs(600 - n)).unwrap();
        started_once(&agent.ports, number, at).await;
    }
    world.pve().stop(number).await.unwrap();
    let view = agent.until("broken", |view| report(view, 1).unwrap().status == GuestStatus::Broken).await;
    assert_eq!(report(&view, 1).unwrap().run, Running::Stopped);
    agent.stop().await;
}

/// A start that worked, as its journal would show.
async fn started_once(ports: &Ports, number: Vmid, at: Timestamp) {
    let target = Target { uid: uid(1), name: guest(1).name, vmid: number };
    let new = NewOperation {
        id: OperationId::new(uuid::Uuid::now_v7()),
        operation: Operation::Start(Start(target)),
        generation: Generation::new(1),
        reason: "a test".to_owned(),
        at,
    };
    let mut progress = ports.store.open_operation(new).await.unwrap();
    let succeeded = |step| Event::Succeeded { step, facts: Vec::new(), note: None };
    let events = [
        Event::Begun,
        Event::Intended { step: 0 },
        succeeded(0),
        Event::Intended { step: 1 },
        succeeded(1),
        Event::Finished,
    ];
    for event in events {
        progress = ports.store.append(&progress, event, at).await.unwrap();
    }
}
