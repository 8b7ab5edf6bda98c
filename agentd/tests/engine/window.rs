//! Quiesce windows: what a controller says, what the agent sees in the backup's log, and what the backup is called then.

use std::time::Duration;

use agentd::execute::Ports;
use agentd::execute::run::run;
use agentd::model::policy::QuiesceBound;
use agentd::model::record::BackupWhy;
use agentd::operation::log::Status;
use agentd::operation::progress::Progress;
use agentd::operation::window::{Said, Standing};
use agentd::operation::{Backup, Operation, QuiescedBackup};
use agentd::port::pve::TaskKind;
use agentd::port::store::window::Moment;
use holdfast_protocol::id::OperationId;
use holdfast_protocol::local::window::{Label, WindowPhase, WindowView};
use holdfast_protocol::protection::Consistency;
use pve_sim::fault::Fault;

use super::world::{World, made, open, target, tasks, told};

fn quiesced(world: &World) -> Operation {
    let storage = world.policy().backup_storage.unwrap();
    let backup = Backup { target: target(), storage, why: BackupWhy::Asked, due: None, key: None };
    Operation::QuiescedBackup(QuiescedBackup { backup, bound: QuiesceBound::usual() })
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
    let id = open(&ports, 1, quiesced(&world)).await.id;
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
