//! Tests of quiesce windows and backup labels.

use std::sync::Arc;
use std::time::Duration;

use agentd::execute::Ports;
use agentd::execute::run::run;
use agentd::model::policy::QuiesceBound;
use agentd::operation::log::Status;
use agentd::operation::progress::OperationState;
use agentd::operation::window::{QuiescedStacks, Restarted, WindowEvent};
use agentd::operation::{Backup, Operation, QuiescedBackup, Stop, Target};
use agentd::port::pve::Role;
use agentd::port::pve::task::{TaskKind, TaskQuery};
use agentd::port::store::window::Moment;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::OperationId;
use holdfast_protocol::local::window::{Label, WindowPhase, WindowView};
use holdfast_protocol::protection::Consistency;
use pve_sim::fault::{Aim, Fault};

use super::offsite::Server;
use super::world::{
    Controllers, FastClock, World, asked_backup, end, find, guest, made, open, reported, target, tasks, vmid,
};

fn quiesced() -> Operation {
    Operation::QuiescedBackup(QuiescedBackup { backup: asked_backup(), bound: QuiesceBound::usual() })
}

fn moment(ports: &Ports) -> Moment {
    Moment { boot: ports.clock.boot_moment(), at: ports.clock.now() }
}

async fn look(ports: &Ports, id: OperationId) -> WindowView {
    ports.store.look_at_window(id).await.unwrap().unwrap().view(&ports.clock.boot_moment())
}

/// Waits until the window is as required.
async fn until(ports: &Ports, id: OperationId, intended: impl Fn(&WindowView) -> bool) -> WindowView {
    let mut changes = ports.store.changes();
    let waits = async {
        loop {
            changes.mark_unchanged();
            let view = look(ports, id).await;
            if intended(&view) {
                return view;
            }
            changes.changed().await.unwrap();
        }
    };
    tokio::time::timeout(Duration::from_secs(60), waits).await.unwrap()
}

async fn say(ports: &Ports, id: OperationId, said: WindowEvent) -> WindowPhase {
    let window = ports.store.say_of_window(id, said, moment(ports)).await.unwrap();
    window.reported(&ports.clock.boot_moment())
}

fn stands() -> WindowEvent {
    WindowEvent::Quiesced(QuiescedStacks { stacks: vec!["shop".parse().unwrap()], canaries: Vec::new() })
}

/// Everything was started again, from now on.
fn let_go() -> WindowEvent {
    WindowEvent::Released(Restarted { down: Vec::new(), begun_ago: Some(Duration::ZERO) })
}

/// A controller that does what it should.
async fn play(ports: &Ports, id: OperationId) -> Vec<WindowPhase> {
    let granted = until(ports, id, |view| view.phase == WindowPhase::Granted).await;
    assert_eq!((granted.bound_s, granted.left_s.is_some_and(|left| left > 800)), (900, true), "{granted:?}");
    let mut phases = vec![granted.phase, say(ports, id, stands()).await];
    phases.push(until(ports, id, |view| view.phase == WindowPhase::Captured).await.phase);
    phases.push(say(ports, id, let_go()).await);
    phases
}

async fn label(ports: &Ports, done: &OperationState) -> Label {
    ports.store.backup_of(done.id).await.unwrap().unwrap().label.unwrap()
}

/// The copy takes as long as it needs. *Captured* is reported when the storage snapshot was taken, and the operation
/// ends with the copy.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_window_is_granted_captured_before_the_copy_ends_and_labelled() {
    let world = World::start().await;
    let ports = made(&world).await;
    let id = open(&ports, 1, quiesced()).await.id;
    assert_eq!(look(&ports, id).await.phase, WindowPhase::Requested, "nothing may be stopped yet");
    let hold = Fault::HoldWorker { task: "vzdump".to_owned(), phase: "copy".to_owned(), hold_ms: 60_000 };
    world.sim.node.faults.arm(hold);
    let progress = ports.store.operation(id).await.unwrap().unwrap();
    let playing = async {
        let phases = play(&ports, id).await;
        assert_eq!(tasks(&world, TaskKind::Backup).await, 2, "the first one, and this");
        assert!(ports.store.backup_of(id).await.unwrap().is_none(), "the copy still runs");
        world.sim.node.faults.release();
        phases
    };
    let (done, phases) = tokio::join!(run(&ports, progress), playing);
    let done = done.unwrap();
    assert_eq!(done.status(), Status::Done, "{}", reported(&done));
    assert_eq!(
        phases,
        [WindowPhase::Granted, WindowPhase::Quiesced, WindowPhase::Captured, WindowPhase::Released]
    );
    let label = label(&ports, &done).await;
    assert_eq!(label.consistency, Consistency::Application, "{label:?}");
    let view = look(&ports, id).await;
    assert_eq!((view.phase, view.label.as_ref()), (WindowPhase::Released, Some(&label)));
    assert!(view.kept.is_some() && view.problem.is_none(), "{view:?}");
}

/// A controller that requests a window and never says that anything is stopped: the backup is taken after the bound.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_controller_that_never_answers_gets_its_backup_and_the_reason() {
    let world = World::start().await;
    let ports = made(&world).await;
    let ports = Ports { clock: Arc::new(FastClock::times(600)), ..ports };
    let done = end(&ports, 1, quiesced()).await;
    assert_eq!(done.status(), Status::Done, "{}", reported(&done));
    let label = label(&ports, &done).await;
    assert!(label.consistency == Consistency::Crash && label.why.contains("did not say"), "{label:?}");
    let view = look(&ports, done.id).await;
    assert_eq!((view.phase, view.problem.unwrap().code), (WindowPhase::Expired, ErrorCode::WindowOver));
    assert_eq!(done.conditions().count(), 0, "nothing was stopped: nothing has to come back");
}

/// Given up before the backup began: none is taken, and nothing reached Proxmox.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_window_that_is_given_up_takes_no_backup() {
    let world = World::start().await;
    let ports = made(&world).await;
    let progress = open(&ports, 1, quiesced()).await;
    let id = progress.id;
    let given_up = async {
        until(&ports, id, |view| view.phase == WindowPhase::Granted).await;
        say(&ports, id, WindowEvent::Cancelled).await
    };
    let (undone, phase) = tokio::join!(run(&ports, progress), given_up);
    let undone = undone.unwrap();
    assert_eq!((undone.status(), phase), (Status::Undone, WindowPhase::Cancelled), "{}", reported(&undone));
    assert_eq!(undone.cause().unwrap().code, ErrorCode::Cancelled);
    assert_eq!(tasks(&world, TaskKind::Backup).await, 1, "the first one");
    assert!(ports.store.backup_of(id).await.unwrap().is_none());
}

/// A second guest besides the first.
async fn second(world: &World, ports: &Ports) -> Target {
    let _controllers = Controllers::start(ports);
    let done = end(ports, 90, world.provision(2)).await;
    assert_eq!(done.status(), Status::Done, "{}", reported(&done));
    Target { uid: guest(2).uid, name: guest(2).name, vmid: vmid(301) }
}

/// The next backup on the node is held in its copy until the faults are released.
fn hold_copy(world: &World) {
    let hold = Fault::HoldWorker { task: "vzdump".to_owned(), phase: "copy".to_owned(), hold_ms: 600_000 };
    world.sim.node.faults.arm(hold);
}

async fn held(world: &World) {
    while !world.sim.node.faults.armed().is_empty() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// An administrator backs up the second guest.
fn backup_by_hand(world: &World) {
    let params = [("vmid", "301"), ("storage", "backup2"), ("mode", "snapshot"), ("remove", "0")];
    assert_eq!(world.by_hand("POST", "/nodes/pve1/vzdump", &params), 200);
}

/// Proxmox copies one guest at a time: while it copies another, no guest's programs are stopped.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_window_is_granted_while_another_guest_is_copied() {
    let world = World::start().await;
    let ports = made(&world).await;
    let other = second(&world, &ports).await;
    let other = open(&ports, 1, Operation::Backup(Backup { target: other, ..asked_backup() })).await;
    let progress = open(&ports, 2, quiesced()).await;
    let id = progress.id;
    hold_copy(&world);
    let mine = async {
        held(&world).await;
        run(&ports, progress).await
    };
    let watching = async {
        held(&world).await;
        let mut places = ports.heavy.watch();
        tokio::select! {
            _ = until(&ports, id, |view| view.phase == WindowPhase::Granted) => {
                panic!("programs would be stopped for a backup that cannot begin")
            }
            waits = places.wait_for(|view| view.waiting.iter().any(|token| token.operation == id)) => {
                drop(waits.unwrap());
            }
        }
        world.sim.node.faults.release();
        play(&ports, id).await
    };
    let (other, mine, phases) = tokio::join!(run(&ports, other), mine, watching);
    assert_eq!((other.unwrap().status(), phases.len()), (Status::Done, 4));
    let mine = mine.unwrap();
    assert_eq!(label(&ports, &mine).await.consistency, Consistency::Application, "{}", reported(&mine));
}

/// The same where the copy is none of ours.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_window_is_granted_while_someone_else_copies() {
    let world = World::start().await;
    let ports = made(&world).await;
    second(&world, &ports).await;
    hold_copy(&world);
    backup_by_hand(&world);
    held(&world).await;
    let progress = open(&ports, 1, quiesced()).await;
    let id = progress.id;
    let watching = async {
        let mut lines = ports.lines.subscribe();
        let waits = lines.wait_for(|lines| {
            lines
                .get(&id)
                .is_some_and(|line| line.step == "grant_window" && line.line.contains("another backup job"))
        });
        tokio::select! {
            _ = until(&ports, id, |view| view.phase == WindowPhase::Granted) => panic!("it would wait for its copy"),
            waits = waits => drop(waits.unwrap()),
        }
        world.sim.node.faults.release();
        play(&ports, id).await
    };
    let (done, phases) = tokio::join!(run(&ports, progress), watching);
    let done = done.unwrap();
    assert_eq!((done.status(), phases.len()), (Status::Done, 4), "{}", reported(&done));
}

/// Another job runs between the grant and our own: programs are released at once, and our job ends before it begins.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_window_owner_backup_waits_for_another_ends_at_once() {
    let world = World::start().await;
    let ports = made(&world).await;
    second(&world, &ports).await;
    let progress = open(&ports, 1, quiesced()).await;
    let id = progress.id;
    let playing = async {
        until(&ports, id, |view| view.phase == WindowPhase::Granted).await;
        hold_copy(&world);
        backup_by_hand(&world);
        held(&world).await;
        say(&ports, id, stands()).await;
        let over = until(&ports, id, |view| view.phase.is_over()).await;
        say(&ports, id, let_go()).await;
        over
    };
    let (undone, over) = tokio::join!(run(&ports, progress), playing);
    let undone = undone.unwrap();
    assert_eq!(
        (undone.status(), over.phase),
        (Status::Undone, WindowPhase::Cancelled),
        "{}",
        reported(&undone)
    );
    assert!(over.left_s.is_some_and(|left| left > 600), "not by its bound: {over:?}");
    assert!(
        over.problem.as_ref().is_some_and(|problem| problem.message.contains("another backup job")),
        "{over:?}"
    );
    assert!(undone.cause().unwrap().message.contains("another backup job"), "{}", reported(&undone));
    let query = TaskQuery { vmid: vmid(300), kind: TaskKind::Backup, role: Role::Operate, since_epoch_s: 0 };
    let own = world.pve().find_tasks(query).await.unwrap();
    assert!(own.len() == 2 && own.iter().all(|row| row.end.is_some()), "ours does not wait on: {own:?}");
    assert!(ports.store.backup_of(id).await.unwrap().is_none());
    world.sim.node.faults.release();
}

/// Killed while the guest may be frozen: parked at once, the window is over, and its view says what a person must do.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_worker_in_a_window_is_parked_and_reported_to_the_controller() {
    for phase in ["locked", "snapshotting", "first sync", "final sync"] {
        dead_worker(phase).await;
    }
}

async fn dead_worker(phase: &str) {
    let world = World::start().await;
    let ports = made(&world).await;
    if phase.ends_with("sync") {
        world.give_a_plain_volume();
    }
    world.sim.node.faults.arm(Fault::KillWorker { task: "vzdump".to_owned(), phase: phase.to_owned() });
    let progress = open(&ports, 1, quiesced()).await;
    let id = progress.id;
    let stopped = async {
        until(&ports, id, |view| view.phase == WindowPhase::Granted).await;
        say(&ports, id, stands()).await
    };
    let (parked, _) = tokio::join!(run(&ports, progress), stopped);
    assert_eq!(parked.unwrap().status(), Status::Parked, "{phase}");
    assert!(world.sim.node.faults.armed().is_empty(), "{phase} was reached");
    let view = look(&ports, id).await;
    assert_eq!(view.phase, WindowPhase::Cancelled, "programs may be started again");
    let problem = view.problem.unwrap();
    assert!(
        problem.message.contains("FROZEN") && format!("{problem:?}").contains("pct unlock 300"),
        "{problem:?}"
    );
    assert_eq!(say(&ports, id, let_go()).await, WindowPhase::Cancelled, "heard all the same");
}

/// Killed in the copy: its content was fixed before, so the controller starts everything at once and nothing stays
/// stopped for the result of the copy. A backup that a backup server's client finishes all the same gets the label that
/// it earned; when there is none, it is reported to a person.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_dies_in_the_copy_keeps_no_one_standing() {
    let orphan = Fault::OrphanBackup { vmid: 300, after_ms: 500 };
    let killed = Fault::KillWorker { task: "vzdump".to_owned(), phase: "copy".to_owned() };
    for (fault, storage, wanted) in [(orphan, "off1", Status::Done), (killed, "backup2", Status::Undone)] {
        let world = World::start().await;
        let _server = Server::copy_of(&world);
        let ports = made(&world).await;
        world.sim.node.faults.arm(fault);
        let backup = Backup { storage: storage.parse().unwrap(), ..asked_backup() };
        let operation = Operation::QuiescedBackup(QuiescedBackup { backup, bound: QuiesceBound::usual() });
        let progress = open(&ports, 1, operation).await;
        let id = progress.id;
        let playing = async {
            let phases = play(&ports, id).await;
            assert_eq!(phases.last(), Some(&WindowPhase::Released), "{wanted:?}");
        };
        let (ended, ()) = tokio::join!(run(&ports, progress), playing);
        let ended = ended.unwrap();
        assert_eq!(ended.status(), wanted, "{}", reported(&ended));
        match wanted {
            Status::Done => {
                assert_eq!(label(&ports, &ended).await.consistency, Consistency::Application);
                assert_eq!(
                    ended.conditions().next().unwrap().code,
                    ErrorCode::Locked,
                    "{}",
                    reported(&ended)
                );
            }
            _ => assert_eq!(ended.cause().unwrap().code, ErrorCode::Locked, "{}", reported(&ended)),
        }
        // It was released, and stays so.
        assert_eq!(look(&ports, id).await.phase, WindowPhase::Released, "{wanted:?}");
    }
}

/// The agent dies in the copy and comes back within the bound: the moment is in the log, and nothing is lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_is_killed_in_the_copy_still_sees_the_moment() {
    let world = World::start().await;
    let ports = made(&world).await;
    let hold = |phase: &str| Fault::HoldWorker {
        task: "vzdump".to_owned(),
        phase: phase.to_owned(),
        hold_ms: 60_000,
    };
    world.sim.node.faults.arm(hold("locked"));
    let progress = open(&ports, 1, quiesced()).await;
    let id = progress.id;
    let killed = async {
        until(&ports, id, |view| view.phase == WindowPhase::Granted).await;
        say(&ports, id, stands()).await;
        until(&ports, id, |view| view.phase == WindowPhase::Capturing).await;
        while !world.sim.node.faults.armed().is_empty() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::select! {
        _ = run(&ports, progress) => panic!("it ended in a held backup"),
        () = killed => {}
    }
    world.sim.node.faults.arm(hold("copy"));
    world.sim.node.faults.release();
    let progress = ports.store.operation(id).await.unwrap().unwrap();
    let playing = async {
        until(&ports, id, |view| view.phase == WindowPhase::Captured).await;
        world.sim.node.faults.release();
        say(&ports, id, let_go()).await
    };
    let (done, phase) = tokio::join!(run(&ports, progress), playing);
    let done = done.unwrap();
    assert_eq!((done.status(), phase), (Status::Done, WindowPhase::Released), "{}", reported(&done));
    assert_eq!(label(&ports, &done).await.consistency, Consistency::Application);
    assert_eq!(tasks(&world, TaskKind::Backup).await, 2, "one backup, however often the agent died");
}

/// A guest that does not run has no moment to capture: refused before anything is stopped.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guest_that_stands_still_is_granted_no_window() {
    let world = World::start().await;
    let ports = made(&world).await;
    assert_eq!(end(&ports, 1, Operation::Stop(Stop(target()))).await.status(), Status::Done);
    let undone = end(&ports, 2, quiesced()).await;
    assert_eq!(undone.status(), Status::Undone, "{}", reported(&undone));
    assert_eq!(undone.cause().unwrap().code, ErrorCode::Unsupported);
    assert_eq!(look(&ports, undone.id).await.phase, WindowPhase::Cancelled);
    assert_eq!(tasks(&world, TaskKind::Backup).await, 1, "the first one");
}

/// A storage without snapshots: the guest is frozen for the last changes, and its programs may continue when it is
/// thawed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_there_are_no_snapshots_the_thaw_is_the_moment() {
    let world = World::start().await;
    let ports = made(&world).await;
    world.give_a_plain_volume();
    let progress = open(&ports, 1, quiesced()).await;
    let id = progress.id;
    world.sim.node.faults.arm(Fault::HoldWorker {
        task: "vzdump".to_owned(),
        phase: "copy".to_owned(),
        hold_ms: 60_000,
    });
    let playing = async {
        let phases = play(&ports, id).await;
        world.sim.node.faults.release();
        phases
    };
    let (done, phases) = tokio::join!(run(&ports, progress), playing);
    let done = done.unwrap();
    assert_eq!((done.status(), phases.len()), (Status::Done, 4), "{}", reported(&done));
    assert_eq!(label(&ports, &done).await.consistency, Consistency::Application);
    let archive = ports.store.backup_of(id).await.unwrap().unwrap().archive;
    let name = archive.as_str().rsplit('/').next().unwrap().replace(".tar.zst", ".log");
    let log = std::fs::read_to_string(find(&world.dir.path().join("pve"), &name)).unwrap();
    assert!(log.contains("backup mode: suspend"), "{log}");
}

/// The log cannot be read: the backup's own snapshot, complete, with the lock back at the backup, shows the moment.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_the_log_cannot_be_read_the_lock_reports() {
    let world = World::start().await;
    let ports = made(&world).await;
    let progress = open(&ports, 1, quiesced()).await;
    let id = progress.id;
    world.sim.node.faults.arm(Fault::HoldWorker {
        task: "vzdump".to_owned(),
        phase: "copy".to_owned(),
        hold_ms: 60_000,
    });
    for _ in 0..5_000 {
        let on = Aim { method: "GET".to_owned(), path: "/log".to_owned() };
        world.sim.node.faults.arm(Fault::Unavailable { on });
    }
    let playing = async {
        let phases = play(&ports, id).await;
        assert!(world.sim.node.faults.clear() > 0, "the log was unreadable until then");
        world.sim.node.faults.release();
        phases
    };
    let (done, phases) = tokio::join!(run(&ports, progress), playing);
    let done = done.unwrap();
    assert_eq!((done.status(), phases.len()), (Status::Done, 4), "{}", reported(&done));
    assert_eq!(label(&ports, &done).await.consistency, Consistency::Application);
}
