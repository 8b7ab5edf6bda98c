//! Quiesce windows: what a controller says, what the agent sees in the backup's log, and what the backup is called then.

use std::sync::Arc;
use std::time::Duration;

use agentd::execute::Ports;
use agentd::execute::run::run;
use agentd::model::policy::QuiesceBound;
use agentd::operation::log::Status;
use agentd::operation::progress::Progress;
use agentd::operation::window::{Said, Standing};
use agentd::operation::{Operation, QuiescedBackup};
use agentd::port::pve::TaskKind;
use agentd::port::store::window::Moment;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::OperationId;
use holdfast_protocol::local::window::{Label, WindowPhase, WindowView};
use holdfast_protocol::protection::Consistency;
use pve_sim::fault::{Aim, Fault};

use super::world::{FastClock, World, asked_backup, end, find, made, open, target, tasks, told};

fn quiesced() -> Operation {
    Operation::QuiescedBackup(QuiescedBackup { backup: asked_backup(), bound: QuiesceBound::usual() })
}

fn moment(ports: &Ports) -> Moment {
    Moment { boot: ports.clock.boot_moment(), at: ports.clock.now() }
}

async fn look(ports: &Ports, id: OperationId) -> WindowView {
    ports.store.look_at_window(id).await.unwrap().unwrap().view(&ports.clock.boot_moment())
}

/// Waits until the window is as wished.
async fn until(ports: &Ports, id: OperationId, wished: impl Fn(&WindowView) -> bool) -> WindowView {
    let mut changes = ports.store.changes();
    let waits = async {
        loop {
            changes.mark_unchanged();
            let view = look(ports, id).await;
            if wished(&view) {
                return view;
            }
            changes.changed().await.unwrap();
        }
    };
    tokio::time::timeout(Duration::from_secs(60), waits).await.unwrap()
}

async fn say(ports: &Ports, id: OperationId, said: Said) -> WindowPhase {
    let window = ports.store.say_of_window(id, said, moment(ports)).await.unwrap();
    window.told(&ports.clock.boot_moment())
}

fn stands() -> Said {
    Said::Quiesced(Standing { stacks: vec!["shop".parse().unwrap()], canaries: Vec::new() })
}

/// A controller that does what it should.
async fn play(ports: &Ports, id: OperationId) -> Vec<WindowPhase> {
    let granted = until(ports, id, |view| view.phase == WindowPhase::Granted).await;
    assert_eq!((granted.bound_s, granted.left_s.is_some_and(|left| left > 800)), (900, true), "{granted:?}");
    let mut phases = vec![granted.phase, say(ports, id, stands()).await];
    phases.push(until(ports, id, |view| view.phase == WindowPhase::Captured).await.phase);
    phases.push(say(ports, id, Said::Released(Vec::new())).await);
    phases
}

async fn label(ports: &Ports, done: &Progress) -> Label {
    ports.store.backup_of(done.id).await.unwrap().unwrap().label.unwrap()
}

/// The copy goes on for as long as it likes: captured is told when the storage snapshot was taken, and the operation ends
/// with the copy.
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
    assert_eq!(done.status(), Status::Done, "{}", told(&done));
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

/// A controller that asks and never says that anything stands still: the backup is taken when the bound has passed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_controller_that_never_answers_gets_its_backup_and_the_reason() {
    let world = World::start().await;
    let ports = made(&world).await;
    let ports = Ports { clock: Arc::new(FastClock::times(600)), ..ports };
    let done = end(&ports, 1, quiesced()).await;
    assert_eq!(done.status(), Status::Done, "{}", told(&done));
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
        say(&ports, id, Said::Cancelled).await
    };
    let (undone, phase) = tokio::join!(run(&ports, progress), given_up);
    let undone = undone.unwrap();
    assert_eq!((undone.status(), phase), (Status::Undone, WindowPhase::Cancelled), "{}", told(&undone));
    assert_eq!(undone.cause().unwrap().code, ErrorCode::Cancelled);
    assert_eq!(tasks(&world, TaskKind::Backup).await, 1, "the first one");
    assert!(ports.store.backup_of(id).await.unwrap().is_none());
}

/// Killed while the guest may stand frozen: parked at once, the window is over, and its view says what a person must do.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_worker_in_a_window_is_parked_and_told_to_the_controller() {
    let world = World::start().await;
    let ports = made(&world).await;
    let worker = Fault::KillWorker { task: "vzdump".to_owned(), phase: "snapshotting".to_owned() };
    world.sim.node.faults.arm(worker);
    let progress = open(&ports, 1, quiesced()).await;
    let id = progress.id;
    let stopped = async {
        until(&ports, id, |view| view.phase == WindowPhase::Granted).await;
        say(&ports, id, stands()).await
    };
    let (parked, _) = tokio::join!(run(&ports, progress), stopped);
    assert_eq!(parked.unwrap().status(), Status::Parked);
    let view = look(&ports, id).await;
    assert_eq!(view.phase, WindowPhase::Cancelled, "programs may be started again");
    let problem = view.problem.unwrap();
    assert!(
        problem.message.contains("FROZEN") && format!("{problem:?}").contains("pct unlock 300"),
        "{problem:?}"
    );
    assert_eq!(
        say(&ports, id, Said::Released(Vec::new())).await,
        WindowPhase::Cancelled,
        "heard all the same"
    );
}

/// The agent dies in the copy and comes back within the bound: the moment stands in the log, and nothing is lost.
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
        say(&ports, id, Said::Released(Vec::new())).await
    };
    let (done, phase) = tokio::join!(run(&ports, progress), playing);
    let done = done.unwrap();
    assert_eq!((done.status(), phase), (Status::Done, WindowPhase::Released), "{}", told(&done));
    assert_eq!(label(&ports, &done).await.consistency, Consistency::Application);
    assert_eq!(tasks(&world, TaskKind::Backup).await, 2, "one backup, however often the agent died");
}

/// A guest that does not run has no moment to give: refused before anything is stopped.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guest_that_stands_still_is_granted_no_window() {
    let world = World::start().await;
    let ports = made(&world).await;
    assert_eq!(end(&ports, 1, Operation::Stop(target())).await.status(), Status::Done);
    let undone = end(&ports, 2, quiesced()).await;
    assert_eq!(undone.status(), Status::Undone, "{}", told(&undone));
    assert_eq!(undone.cause().unwrap().code, ErrorCode::Unsupported);
    assert_eq!(look(&ports, undone.id).await.phase, WindowPhase::Cancelled);
    assert_eq!(tasks(&world, TaskKind::Backup).await, 1, "the first one");
}

/// A storage without snapshots: the guest is frozen for the last changes, and may go on when it is thawed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_there_are_no_snapshots_the_thaw_is_the_moment() {
    let world = World::start().await;
    let ports = made(&world).await;
    // A volume on a storage of plain folders takes no snapshot.
    let config = "/nodes/pve1/lxc/300/config";
    for (path, key, value) in [
        ("/storage/local", "content", "iso,vztmpl,snippets,backup,rootdir"),
        (config, "protection", "0"),
        (config, "mp7", "local:1,mp=/plain,backup=1"),
    ] {
        assert_eq!(world.by_hand("PUT", path, &[(key, value)]), 200, "{path} {key}");
    }
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
    assert_eq!((done.status(), phases.len()), (Status::Done, 4), "{}", told(&done));
    assert_eq!(label(&ports, &done).await.consistency, Consistency::Application);
    let archive = ports.store.backup_of(id).await.unwrap().unwrap().archive;
    let name = archive.as_str().rsplit('/').next().unwrap().replace(".tar.zst", ".log");
    let log = std::fs::read_to_string(find(&world.dir.path().join("pve"), &name)).unwrap();
    assert!(log.contains("backup mode: suspend"), "{log}");
}

/// Nobody can read the log: the backup's own snapshot, whole, with the lock back at the backup, tells the moment.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_the_log_cannot_be_read_the_lock_tells() {
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
    assert_eq!((done.status(), phases.len()), (Status::Done, 4), "{}", told(&done));
    assert_eq!(label(&ports, &done).await.consistency, Consistency::Application);
}
