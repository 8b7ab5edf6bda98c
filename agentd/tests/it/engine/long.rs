//! Tests of very long tasks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use agentd::execute::Ports;
use agentd::execute::failpoint::{Failpoints, Killed, Moment, Point, Side};
use agentd::execute::run::{Stopped, run};
use agentd::model::boot::BootMoment;
use agentd::model::limits;
use agentd::operation::Operation;
use agentd::operation::log::{AfterFailure, Event, Status};
use agentd::operation::progress::OperationState;
use agentd::port::clock::{Clock, Pause, SyncQuery};
use agentd::port::pve::TaskKind;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::local::restore_test::TestVerdict;
use jiff::Timestamp;
use pve_sim::fault::Fault;
use tokio::sync::watch;

use super::restore_test::{only_record, trial};
use super::world::{Controllers, FastClock, World, asked_backup, made, open, reported, tasks};

/// A clock that a test sets ahead, and that counts the waits on it.
struct HandClock {
    fast: FastClock,
    ahead_s: AtomicU64,
    waits: watch::Sender<u64>,
}

impl HandClock {
    fn start() -> Arc<Self> {
        let (waits, _) = watch::channel(0);
        Arc::new(Self { fast: FastClock::start(), ahead_s: AtomicU64::new(0), waits })
    }

    /// A day and a half passes, and every waiter on this clock checks again.
    async fn a_day_and_a_half(&self) {
        self.ahead_s.fetch_add(6 * limits::LONG_S, Ordering::SeqCst);
        let mut waits = self.waits.subscribe();
        let seen = *waits.borrow();
        waits.wait_for(|now| *now >= seen + 4).await.unwrap();
    }
}

impl Clock for HandClock {
    fn now(&self) -> Timestamp {
        self.fast.now()
    }

    fn monotonic(&self) -> Duration {
        self.fast.monotonic() + Duration::from_secs(self.ahead_s.load(Ordering::SeqCst))
    }

    fn boot_moment(&self) -> BootMoment {
        self.fast.boot_moment()
    }

    fn sleep(&self, pause: Duration) -> Pause<'_> {
        self.waits.send_modify(|waits| *waits += 1);
        self.fast.sleep(pause)
    }

    fn synchrony(&self) -> SyncQuery<'_> {
        self.fast.synchrony()
    }
}

/// A worker stays in a phase until it is released.
fn hold(world: &World, task: &str, phase: &str) {
    let (task, phase) = (task.to_owned(), phase.to_owned());
    world.sim.node.faults.arm(Fault::HoldWorker { task, phase, hold_ms: 600_000 });
}

/// As a person does it.
fn stop(world: &World, upid: &str) {
    assert_eq!(world.by_hand("DELETE", &format!("/nodes/pve1/tasks/{upid}"), &[]), 200);
}

async fn held(world: &World) {
    while !world.sim.node.faults.armed().is_empty() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Runs it. While its task is held, much more time passes than any bound; then `then` is run.
async fn through(
    world: &World,
    ports: &Ports,
    (clock, progress): (&HandClock, OperationState),
    then: impl AsyncFnOnce(),
) -> OperationState {
    let story = async {
        held(world).await;
        clock.a_day_and_a_half().await;
        then().await;
    };
    let running = run(ports, progress);
    tokio::pin!(running, story);
    tokio::select! {
        ended = &mut running => panic!("it ended while its task ran: {}", reported(&ended.unwrap())),
        () = &mut story => running.await.unwrap(),
    }
}

/// A guest is made; an hour is nothing that Proxmox knows of.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restore_is_followed_for_as_long_as_it_runs() {
    let (world, clock) = (World::start().await, HandClock::start());
    let ports = Ports { clock: clock.clone(), ..world.sound().await };
    let _controllers = Controllers::start(&ports);
    hold(&world, "vzrestore", "unpacking");
    let opened = open(&ports, 1, world.provision(1)).await;
    let done = through(&world, &ports, (&clock, opened), async || world.sim.node.faults.release()).await;
    assert_eq!(done.status(), Status::Done, "{}", reported(&done));
    assert_eq!((world.guests().len(), world.restores(300).await), (1, 1));
}

/// The same for a backup that is tried; and no second one is begun in addition.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restore_test_is_followed_for_as_long_as_its_restore_runs() {
    let (world, clock) = (World::start().await, HandClock::start());
    let ports = Ports { clock: clock.clone(), ..made(&world).await };
    hold(&world, "vzrestore", "unpacking");
    let opened = open(&ports, 1, trial(&world, &ports).await).await;
    let done = through(&world, &ports, (&clock, opened), async || world.sim.node.faults.release()).await;
    assert_eq!(done.status(), Status::Done, "{}", reported(&done));
    assert_eq!(only_record(&ports).await.verdict, TestVerdict::BootedOnly);
    assert_eq!(world.guests().len(), 1);
}

/// The first upload of a large guest: its archive is recorded once it is complete, and there is no second one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_is_followed_for_as_long_as_it_runs() {
    let (world, clock) = (World::start().await, HandClock::start());
    let ports = Ports { clock: clock.clone(), ..made(&world).await };
    hold(&world, "vzdump", "copy");
    let opened = open(&ports, 1, Operation::Backup(asked_backup())).await;
    let done = through(&world, &ports, (&clock, opened), async || world.sim.node.faults.release()).await;
    assert_eq!(done.status(), Status::Done, "{}", reported(&done));
    assert!(ports.store.backup_of(done.id).await.unwrap().is_some());
    assert_eq!(tasks(&world, TaskKind::Backup).await, 2, "the first one, and this");
}

/// A person who believes that it hangs stops its task in Proxmox: what it made is taken back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restore_that_a_person_stops_is_taken_back() {
    let (world, clock) = (World::start().await, HandClock::start());
    let ports = Ports { clock: clock.clone(), ..world.sound().await };
    hold(&world, "vzrestore", "unpacking");
    let opened = open(&ports, 1, world.provision(1)).await;
    let id = opened.id;
    let by_hand = async || {
        let upid = ports.store.operation(id).await.unwrap().unwrap().restored_by().unwrap().to_owned();
        stop(&world, &upid);
    };
    let undone = through(&world, &ports, (&clock, opened), by_hand).await;
    assert_eq!(undone.status(), Status::Undone, "{}", reported(&undone));
    assert!(world.guests().is_empty() && world.disks().is_empty(), "{}", reported(&undone));
}

/// Stops the world after one effect.
struct After(&'static str);

impl Failpoints for After {
    fn reached(&self, point: Point) -> Result<(), Killed> {
        let here = point.step == self.0 && (point.side, point.moment) == (Side::After, Moment::Posted);
        if here { Err(Killed(point)) } else { Ok(()) }
    }
}

/// Whatever caused it: while its restore runs nothing is called a leftover, neither by the step nor by its undo. No
/// operator is advised to destroy what is being made.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_being_restored_is_no_leftover() {
    let (world, clock) = (World::start().await, HandClock::start());
    hold(&world, "vzrestore", "unpacking");
    {
        let ports = world.ports(Arc::new(After("restore"))).await;
        let killed = run(&ports, open(&ports, 1, world.provision(1)).await).await;
        assert!(matches!(killed, Err(Stopped::Killed(_))));
    }
    let ports = Ports { clock: clock.clone(), ..world.sound().await };
    let progress = ports.store.open_operations().await.unwrap().remove(0);
    let Status::During(step) = progress.status() else { panic!("{}", reported(&progress)) };
    let problem = ErrorBody::new(ErrorCode::Unavailable, "given up, as an earlier version did");
    let event = Event::Failed { step, problem, then: AfterFailure::GiveUp };
    let progress = ports.store.append(&progress, event, ports.clock.now()).await.unwrap();
    let upid = progress.restored_by().unwrap().to_owned();
    let undone = through(&world, &ports, (&clock, progress), async || stop(&world, &upid)).await;
    assert_eq!(undone.status(), Status::Undone, "{}", reported(&undone));
    assert!(world.guests().is_empty() && world.disks().is_empty(), "{}", reported(&undone));
}
