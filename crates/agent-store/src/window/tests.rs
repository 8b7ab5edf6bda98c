//! Tests of quiesce windows, also on a full disk.

use std::time::Duration;

use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::local::window::{DownStack, WindowPhase};
use holdfast_protocol::protection::Consistency;

use super::*;
use crate::Refusal;
use crate::journal::NewOperation;
use crate::tests::{at, open, uid, vmid};
use agent_core::model::boot::BootId;
use agent_core::model::policy::QuiesceBound;
use agent_core::model::records::{BackupWhy, VolumeId};
use agent_core::operation::log::{Event, Finding};
use agent_core::operation::window::{QuiescedStacks, Restarted};
use agent_core::operation::{Backup, QuiescedBackup, Target};
use holdfast_protocol::generation::Generation;

fn moment(second: u64) -> Moment {
    let boot = BootMoment { boot: BootId::parse("boot-1").unwrap(), ms: second * 1_000 };
    Moment { boot, at: at(i64::try_from(second).unwrap()) }
}

fn id(n: u128) -> OperationId {
    OperationId::new(uuid::Uuid::from_u128(n))
}

fn stands() -> WindowEvent {
    WindowEvent::Quiesced(QuiescedStacks { stacks: vec!["shop".parse().unwrap()], canaries: Vec::new() })
}

fn down() -> Vec<DownStack> {
    vec![DownStack { stack: "shop".parse().unwrap(), why: "exit 1".to_owned() }]
}

/// An operation whose window was granted in its tenth second.
async fn granted(store: &Store, n: u128) -> OperationState {
    let target = Target { uid: uid(1), name: "web-1".parse().unwrap(), vmid: vmid(300) };
    let storage = "backup2".parse().unwrap();
    let backup =
        Backup { target, storage, why: BackupWhy::Asked, due: None, key: None, leaves_out: Vec::new() };
    let new = NewOperation {
        id: id(n),
        operation: Operation::QuiescedBackup(QuiescedBackup { backup, bound: QuiesceBound::usual() }),
        generation: Generation::new(1),
        reason: "test".to_owned(),
        at: at(1),
    };
    let mut progress = store.open_operation(new).await.unwrap();
    let facts = vec![Finding::WindowGranted(moment(10).boot)];
    for event in [Event::Begun, Event::Intended { step: 0 }, Event::Succeeded { step: 0, facts, note: None }]
    {
        progress = store.append(&progress, event, at(i64::try_from(n).unwrap())).await.unwrap();
    }
    progress
}

/// The backup is found, and the operation ends.
async fn taken(store: &Store, mut progress: OperationState) {
    let archive = VolumeId::new(format!("backup2:backup/{}.tar.zst", progress.id));
    let found = vec![Finding::BackupFound {
        archive,
        bytes: 7,
        at: at(20),
        sealed: None,
        mounts: None,
        hardware: None,
        disks: None,
    }];
    let succeeded = |step, facts| Event::Succeeded { step, facts, note: None };
    for event in [
        Event::Intended { step: 1 },
        succeeded(1, Vec::new()),
        Event::Intended { step: 2 },
        succeeded(2, found),
        Event::Intended { step: 3 },
        succeeded(3, Vec::new()),
        Event::Finished,
    ] {
        progress = store.append(&progress, event, at(20)).await.unwrap();
    }
}

async fn say(store: &Store, n: u128, said: WindowEvent, second: u64) -> Result<Window, SayError> {
    store.say_of_window(id(n), said, moment(second)).await
}

async fn label(store: &Store, n: u128) -> Consistency {
    store.backup_of(id(n)).await.unwrap().unwrap().label.unwrap().consistency
}

#[tokio::test]
async fn what_was_said_outlives_the_agent_and_names_the_backup() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    let progress = granted(&store, 1).await;
    let before = *store.changes().borrow();
    say(&store, 1, stands(), 11).await.unwrap();
    assert_eq!(store.changes().borrow().windows, before.windows + 1, "who waits is woken");
    say(&store, 1, WindowEvent::Began, 12).await.unwrap();
    drop(store);
    let store = open(folder.path()).await;
    assert_eq!(
        store.window(id(1)).await.unwrap().unwrap().reported(&moment(13).boot),
        WindowPhase::Capturing
    );
    say(&store, 1, WindowEvent::Captured, 13).await.unwrap();
    taken(&store, progress).await;
    let view = store.look_at_window(id(1)).await.unwrap().unwrap().view(&moment(14).boot);
    assert_eq!((view.label, view.kept.unwrap().label), (None, None), "nobody knows yet what it holds");
    assert_eq!(label(&store, 1).await, Consistency::Crash);
    // WindowEvent long after, about a start that was no sooner than the capture.
    let said = Restarted { down: Vec::new(), begun_ago: Some(Duration::from_secs(400)) };
    say(&store, 1, WindowEvent::Released(said), 413).await.unwrap();
    assert_eq!(label(&store, 1).await, Consistency::Application);
    let view = store.look_at_window(id(1)).await.unwrap().unwrap().view(&moment(14).boot);
    assert_eq!(view.label, view.kept.unwrap().label);
    assert!(matches!(say(&store, 2, stands(), 14).await, Err(SayError::Unknown)));
    store.verify_audit().await.unwrap();
}

#[tokio::test]
async fn an_operation_that_ends_otherwise_closes_its_window() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    let progress = granted(&store, 1).await;
    say(&store, 1, stands(), 11).await.unwrap();
    let problem = ErrorBody::new(holdfast_protocol::code::ErrorCode::Locked, "it may stand frozen");
    let parked = Event::Parked { problem, remedy: "pct unlock 300".to_owned() };
    store.append(&progress, parked, at(12)).await.unwrap();
    let view = store.look_at_window(id(1)).await.unwrap().unwrap().view(&moment(12).boot);
    assert_eq!(view.phase, WindowPhase::Cancelled);
    let problem = view.problem.unwrap();
    assert!(
        problem.message.contains("frozen") && format!("{problem:?}").contains("pct unlock 300"),
        "{problem:?}"
    );
    assert!(!store.window(id(1)).await.unwrap().unwrap().is_given_up(), "a person may have it tried again");
}

#[tokio::test]
async fn a_release_and_a_giving_up_are_heard_although_nothing_can_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    let progress = granted(&store, 1).await;
    say(&store, 1, stands(), 11).await.unwrap();
    say(&store, 1, WindowEvent::Began, 12).await.unwrap();
    let full = rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_FULL), None);
    let noted = store.run(move |_| Err::<(), _>(StoreError::sqlite("fill a test's disk")(full))).await;
    assert!(noted.is_err() && matches!(store.refusal(), Some(Refusal::Full { .. })));
    let before = store.changes().borrow().windows;
    assert!(
        matches!(say(&store, 1, WindowEvent::Captured, 13).await, Err(SayError::Store(_))),
        "the agent's own word waits"
    );
    for _ in 0..3 {
        let window = say(
            &store,
            1,
            WindowEvent::Released(Restarted { down: down(), begun_ago: Some(Duration::ZERO) }),
            14,
        )
        .await
        .unwrap();
        assert_eq!((window.reported(&moment(14).boot), window.down().len()), (WindowPhase::Released, 1));
    }
    assert_eq!(store.changes().borrow().windows, before + 1, "who waits is woken, once");
    let view = store.look_at_window(id(1)).await.unwrap().unwrap().view(&moment(15).boot);
    assert_eq!(view.phase, WindowPhase::Released);
    assert!(
        matches!(say(&store, 1, WindowEvent::Cancelled, 15).await, Err(SayError::Refused(_))),
        "its rules hold in memory too"
    );
    store.try_room().await;
    assert_eq!(store.refusal(), None);
    // The next event also writes the earlier unwritten one: the copy was fixed too late for a good label.
    say(&store, 1, WindowEvent::Captured, 16).await.unwrap();
    taken(&store, progress).await;
    assert_eq!(label(&store, 1).await, Consistency::Crash);
    drop(store);
    let store = open(folder.path()).await;
    assert!(store.window(id(1)).await.unwrap().unwrap().is_released());
    assert_eq!(store.records(Generation::new(1), at(30)).await.unwrap().stacks_down.len(), 1);
    store.verify_audit().await.unwrap();
}

#[tokio::test]
async fn the_last_word_about_stacks_counts_and_old_windows_go() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    let reported = async |second| store.records(Generation::new(1), at(second)).await.unwrap().stacks_down;
    for n in 1..=u128::from(limits::WINDOWS_PER_GUEST) + 3 {
        let progress = granted(&store, n).await;
        say(&store, n, stands(), 11).await.unwrap();
        taken(&store, progress).await;
    }
    // Those of a day are all counted: no controller said that anything runs again, so each counts its bound.
    let stood = async |second| {
        let records = store.records(Generation::new(1), at(second)).await.unwrap();
        let own = store.outstanding(uid(1), at(second)).await.unwrap().stood_still;
        assert_eq!(records.stood_still.get(&uid(1)).copied().unwrap_or_default(), own);
        own.as_secs()
    };
    let all = i64::from(limits::WINDOWS_PER_GUEST) + 3;
    assert_eq!(stood(40).await, all * 900);
    assert_eq!(stood(86_410).await, (all - 9) * 900, "the first nine are over a day old");
    assert_eq!(stood(90_000).await, 0);
    let last = 90_000;
    let progress = granted(&store, last).await;
    say(&store, last, stands(), 11).await.unwrap();
    taken(&store, progress).await;
    assert!(store.window(id(4)).await.unwrap().is_none() && store.window(id(5)).await.unwrap().is_some());
    assert_eq!(reported(40).await, []);
    say(&store, last, WindowEvent::Released(Restarted { down: down(), begun_ago: Some(Duration::ZERO) }), 41)
        .await
        .unwrap();
    assert_eq!(reported(42).await, [StacksDown { guest: uid(1), down: down(), at: at(41) }]);
    say(
        &store,
        last,
        WindowEvent::Released(Restarted { down: Vec::new(), begun_ago: Some(Duration::ZERO) }),
        43,
    )
    .await
    .unwrap();
    assert_eq!(reported(44).await, []);
}
