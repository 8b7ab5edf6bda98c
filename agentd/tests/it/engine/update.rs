//! Tests of updated guest agents.

use agentd::model::policy::Sha256Hex;
use agentd::model::records::{ControllerOutcome, HelloRecord};
use agentd::port::pve::TaskKind;
use agentd::port::store::job_intake::Outcome;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::desired::{DesiredController, DesiredGuest};
use holdfast_protocol::generation::Generation;
use holdfast_protocol::id::OperationId;
use holdfast_protocol::job::Verb;
use holdfast_protocol::local::desired::{TrialVerdict, Turn};
use holdfast_protocol::operation::{OperationKind, OperationStatus};
use holdfast_protocol::report::Health;

use super::drift::{Agent, report, serves, start};
use super::jobs::{found, lay_down, leave, signed, waits};
use super::world::{World, guest, tasks};

/// Without a volume that no backup holds.
fn hot() -> DesiredGuest {
    let mut hot = guest(1);
    hot.volumes.truncate(1);
    hot
}

/// A guest that serves, and whose slot it is to run the controller that was signed for.
async fn in_its_turn(world: &World) -> (Agent, DesiredController, OperationId) {
    let (agent, goal, turn) = in_the_turn_of(world, hot()).await;
    assert_eq!(tasks(world, TaskKind::Snapshot).await, 1, "for a person");
    (agent, goal, turn)
}

async fn in_the_turn_of(world: &World, guest: DesiredGuest) -> (Agent, DesiredController, OperationId) {
    let mut agent = start(world).await;
    lay_down(&agent).await;
    agent.goal(1, vec![guest.clone()]).await;
    agent.until("it serves", |view| serves(view, 1)).await;
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("guestd");
    std::fs::write(&program, b"\x7fELF a newer controller").unwrap();
    let (sha256, _) = agent.ports.artifacts.take_in(&program).unwrap();
    let goal = DesiredController {
        version: "0.2.0".to_owned().try_into().unwrap(),
        sha256: sha256.as_str().to_owned().try_into().unwrap(),
    };
    agent.goal(2, vec![DesiredGuest { controller: Some(goal.clone()), ..guest }]).await;
    // It is stored here and requested; that is not enough.
    let view = agent.until("it waits for a signature", waits(Verb::ApproveRelease)).await;
    assert_eq!(tasks(world, TaskKind::Snapshot).await, 0);
    let mail = signed(&agent, found(&view, Verb::ApproveRelease).unwrap()).await;
    assert!(matches!(leave(&agent, &mail).await, Outcome::Taken));
    let mut changes = agent.ports.store.changes();
    let turn = loop {
        changes.mark_unchanged();
        if let Turn::Now(turn) = agent.ports.store.turn_of(hot().uid, sha256.clone()).await.unwrap() {
            break turn;
        }
        changes.changed().await.unwrap();
    };
    agent.ports.store.note_fetched(hot().uid, turn, agent.ports.clock.now()).await.unwrap();
    (agent, goal, turn)
}

async fn ended(agent: &Agent, update: OperationId) -> OperationStatus {
    let mut changes = agent.ports.store.changes();
    loop {
        changes.mark_unchanged();
        let views = agent.ports.store.operation_views(20).await.unwrap();
        let own = views.iter().find(|view| view.id == update).unwrap();
        assert_eq!(own.kind, OperationKind::UpdateController);
        if own.status.is_end() {
            return own.status;
        }
        changes.changed().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_controller_that_comes_up_stays() {
    let world = World::start().await;
    let (mut agent, goal, update) = in_its_turn(&world).await;
    let undecided = agent.ports.store.trial_of(hot().uid, sha256(&goal)).await.unwrap();
    assert_eq!(undecided, TrialVerdict::Undecided);
    assert_eq!(speaking(&agent, &goal, Health::Well, update).await, OperationStatus::Done);
    let confirmed = agent.ports.store.trial_of(hot().uid, sha256(&goal)).await.unwrap();
    assert_eq!(confirmed, TrialVerdict::Confirmed);
    // No problem is reported, and nothing more is to be signed: it is as requested.
    agent.until("it serves", |view| serves(view, 1) && view.waiting.is_empty()).await;
    assert_eq!(tasks(&world, TaskKind::RollBack).await, 0);
    let stands = agent.ports.store.snapshots(hot().uid).await.unwrap();
    assert!(stands.len() == 1 && stands[0].expires_at.is_some(), "it goes when its time is over: {stands:?}");
    agent.stop().await;
}

/// The one of its making is of a guest in which nothing ran.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_is_taken_before_the_exchange_where_the_document_asks_for_one() {
    let world = World::start().await;
    let careful = DesiredGuest { backup_before_exchange_h: Some(24.try_into().unwrap()), ..hot() };
    let (agent, goal, update) = in_the_turn_of(&world, careful).await;
    let views = agent.ports.store.operation_views(20).await.unwrap();
    let backups: Vec<OperationStatus> =
        views.iter().filter(|view| view.kind == OperationKind::Backup).map(|view| view.status).collect();
    assert_eq!(backups, [OperationStatus::Done]);
    let on_trial = async || {
        let records = agent.ports.store.records(Generation::NONE, agent.ports.clock.now()).await.unwrap();
        records.controller_trials.len()
    };
    assert_eq!(speaking(&agent, &goal, Health::Well, update).await, OperationStatus::Done);
    assert_eq!(on_trial().await, 1, "it did not hear the verdict yet");
    let confirmed = agent.ports.store.trial_of(hot().uid, sha256(&goal)).await.unwrap();
    assert_eq!((confirmed, on_trial().await), (TrialVerdict::Confirmed, 0));
    agent.stop().await;
}

fn says(agent: &Agent, goal: &DesiredController, health: Health) -> HelloRecord {
    HelloRecord {
        reported: Default::default(),
        version: "0.2.0".to_owned(),
        health,
        boot_id: "boot".to_owned(),
        build: Some(goal.sha256.as_str().to_owned().try_into().unwrap()),
        at: agent.ports.clock.now(),
    }
}

fn sha256(goal: &DesiredController) -> Sha256Hex {
    goal.sha256.as_str().to_owned().try_into().unwrap()
}

/// The new controller says so, again and again, until the operation ends.
async fn speaking(
    agent: &Agent,
    goal: &DesiredController,
    health: Health,
    update: OperationId,
) -> OperationStatus {
    let speaking = async {
        loop {
            let _ = agent.ports.store.record_hello(hot().uid, says(agent, goal, health)).await;
            agent.ports.clock.sleep(std::time::Duration::from_secs(5)).await;
        }
    };
    tokio::select! {
        status = ended(agent, update) => status,
        () = speaking => unreachable!("it speaks on"),
    }
}

fn is_reported(code: ErrorCode) -> impl Fn(&agentd::model::view::HostSnapshot) -> bool {
    move |view| report(view, 1).is_some_and(|one| one.conditions.iter().any(|c| c.code == code))
}

/// What became of the build, as it is kept.
async fn verdicts(agent: &Agent) -> Vec<ControllerOutcome> {
    let records = agent.ports.store.records(Generation::NONE, agent.ports.clock.now()).await.unwrap();
    records.controller_verdicts.iter().map(|verdict| verdict.outcome).collect()
}

/// Silence has many causes: nothing is rolled back for it, the build is not marked bad, and a person is notified.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_falls_silent_is_left_for_a_person() {
    let world = World::start().await;
    let (mut agent, goal, update) = in_its_turn(&world).await;
    assert_eq!(ended(&agent, update).await, OperationStatus::Done, "its guest is free for backups again");
    assert_eq!(tasks(&world, TaskKind::RollBack).await, 0);
    agent.until("a person is told", is_reported(ErrorCode::ControllerSilent)).await;
    assert_eq!(verdicts(&agent).await, [ControllerOutcome::Silent]);
    assert_eq!(agent.ports.store.snapshots(hot().uid).await.unwrap().len(), 1, "there is a way back still");
    // It was only slow.
    agent.ports.store.record_hello(hot().uid, says(&agent, &goal, Health::Well)).await.unwrap();
    let silent = is_reported(ErrorCode::ControllerSilent);
    agent.until("it is silent no more", |view| serves(view, 1) && !silent(view)).await;
    agent.stop().await;
}

/// It reports itself unwell until its slot ends: the guest hears that it goes back, nothing is rolled back, and the guest
/// gets these bytes only when they are signed for again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_says_that_it_is_not_well_is_taken_back() {
    let world = World::start().await;
    let (mut agent, goal, update) = in_its_turn(&world).await;
    let status = speaking(&agent, &goal, Health::Unwell, update).await;
    assert_eq!(status, OperationStatus::Done, "it has done what it is for");
    assert_eq!(tasks(&world, TaskKind::RollBack).await, 0, "no write of the customer's is taken back");
    let verdict = agent.ports.store.trial_of(hot().uid, sha256(&goal)).await.unwrap();
    assert_eq!(verdict, TrialVerdict::TakeBack);
    // The guest came back with the one of before.
    let before = HelloRecord {
        version: "0.1.0".to_owned(),
        build: Some("ab".repeat(32).try_into().unwrap()),
        ..says(&agent, &goal, Health::Well)
    };
    agent.ports.store.record_hello(hot().uid, before).await.unwrap();
    let bad = is_reported(ErrorCode::ControllerBad);
    agent.until("it is told", &bad).await;
    assert_eq!(verdicts(&agent).await, [ControllerOutcome::Bad]);
    // Signed for once more, it gets another chance.
    let draft = super::approve::controller(&goal);
    let mail = super::jobs::order(&agent, draft).await;
    assert!(matches!(leave(&agent, &mail).await, Outcome::Taken));
    agent.until("it is bad no more", |view| !bad(view)).await;
    agent.stop().await;
}

/// It ends as soon as it starts: the guest puts its previous controller back, and says so. Volumes that no backup holds
/// are no reason to leave a guest out; no snapshot is taken of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_the_guest_took_back_is_bad_here() {
    let world = World::start().await;
    let (mut agent, goal, update) = in_the_turn_of(&world, guest(1)).await;
    assert_eq!(tasks(&world, TaskKind::Snapshot).await, 0);
    let before = HelloRecord {
        version: "0.1.0".to_owned(),
        build: Some("ab".repeat(32).try_into().unwrap()),
        ..says(&agent, &goal, Health::Well)
    };
    agent.ports.store.record_hello(hot().uid, before).await.unwrap();
    agent.ports.store.note_returned(hot().uid, sha256(&goal));
    assert_eq!(ended(&agent, update).await, OperationStatus::Done);
    agent.until("it is reported", is_reported(ErrorCode::ControllerBad)).await;
    assert_eq!(verdicts(&agent).await, [ControllerOutcome::Bad]);
    let views = agent.ports.store.operation_views(20).await.unwrap();
    let own = views.iter().find(|view| view.id == update).unwrap();
    let why = own.problem.as_ref().unwrap();
    assert!(why.message.contains("no snapshot was taken: /srv/media is in no backup"), "{why:?}");
    assert_eq!(tasks(&world, TaskKind::RollBack).await + tasks(&world, TaskKind::Snapshot).await, 0);
    agent.stop().await;
}
