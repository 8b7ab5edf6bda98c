//! Tests of agents exchanged over open operations.
#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, in its helpers too")]

use agentd::operation::log::Status;
use agentd::operation::progress::OperationState;
use harness::agent_run::{Begin, End, Tone, live};
use harness::points::{Conductor, Kill};
use harness::story::{Does, Story, stories};
use harness::virtual_time;
use harness::world::World;
use harness::world_template::Template;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::operation::OperationKind;
use rusqlite::Connection;

/// Opens the operation of a story, and is killed before its first step has an outcome.
async fn begun(world: &World, story: &Story) {
    let Does::Operation(operation) = story.does else { panic!("{} is no operation", story.name) };
    let conductor = Conductor::new(Kill::At(2), None);
    let begin = Begin::With(1, Box::new(operation(&world.kit)));
    let end = Box::pin(live(world, &conductor, tone(story), begin)).await;
    assert!(matches!(end, End::Killed(_)), "{}: {end:?}", story.name);
}

const fn tone(story: &Story) -> Tone {
    Tone { speech: story.speech, windows: story.windows }
}

/// Continues with the open operation; there is exactly one.
async fn gone_on(world: &World, story: &Story) -> OperationState {
    let end = Box::pin(live(world, &Conductor::undisturbed(), tone(story), Begin::TakingUp)).await;
    match end {
        End::Came(mut ended) if ended.len() == 1 => ended.remove(0),
        other => panic!("{}: {other:?}", story.name),
    }
}

/// Changes the list of the one open operation, and gives it.
fn rewrite(world: &World, change: impl Fn(&mut Vec<String>)) -> Vec<String> {
    let connection = Connection::open(world.agent_folder().join("agent.db")).unwrap();
    let id = uuid::Uuid::from_u128(1).to_string();
    let text: String =
        connection.query_row("SELECT steps FROM operation WHERE id = ?1", [&id], |row| row.get(0)).unwrap();
    let mut names: Vec<String> = serde_json::from_str(&text).unwrap();
    change(&mut names);
    let text = serde_json::to_string(&names).unwrap();
    assert_eq!(connection.execute("UPDATE operation SET steps = ?2 WHERE id = ?1", [&id, &text]).unwrap(), 1);
    names
}

/// One story of each kind of operation.
fn one_of_each() -> impl Iterator<Item = Story> {
    let is_one = |story: &Story| matches!(story.does, Does::Operation(_)) && story.refused.is_none();
    OperationKind::ALL.iter().map(move |kind| {
        stories(*kind).into_iter().find(is_one).unwrap_or_else(|| panic!("no story of {}", kind.as_str()))
    })
}

#[test]
fn an_operation_with_an_unknown_step_is_parked_and_nothing_is_done_for_it() {
    for story in one_of_each() {
        let template = Template::of(story.ground);
        virtual_time(|| async {
            let world = template.world(7);
            begun(&world, &story).await;
            rewrite(&world, |names| names.push("fly".to_owned()));
            let before = world.scene().comparable();
            let ended = gone_on(&world, &story).await;
            let cause = ended.cause().unwrap();
            assert_eq!((ended.status(), cause.code), (Status::Parked, ErrorCode::Version), "{}", story.name);
            assert!(cause.message.contains("its step fly"), "{cause}");
            let differs = world.scene().comparable().differences(&before);
            assert!(differs.is_empty(), "{}: {differs:?}", story.name);
        });
    }
}

/// The list that the operation was opened with is the one that is done, whatever this program would open it with.
#[test]
fn the_steps_that_were_written_are_the_steps_that_are_done() {
    for story in one_of_each() {
        let template = Template::of(story.ground);
        virtual_time(|| async {
            let world = template.world(7);
            begun(&world, &story).await;
            let names = rewrite(&world, |names| {
                // The journal's current step is among the first two.
                names.truncate(names.len().saturating_sub(1).max(2));
            });
            let ended = gone_on(&world, &story).await;
            let done: Vec<&str> = ended.steps().iter().map(|step| step.name()).collect();
            let written: Vec<&str> =
                names.iter().map(|name| name.split(' ').next().unwrap_or_default()).collect();
            assert_eq!(done, written, "{}", story.name);
            assert!(ended.status().is_end(), "{}", story.name);
        });
    }
}

/// The steps of a story's operation, as they are written.
fn written(story: &Story) -> Vec<String> {
    let template = Template::of(story.ground);
    virtual_time(|| async {
        let world = template.world(7);
        begun(&world, story).await;
        rewrite(&world, |_| {})
    })
}

/// An earlier agent opened updates of guest agents with a rollback behind them. Nothing of it is done, whatever became of
/// the new one, and the operation ends.
#[test]
fn the_rollback_of_an_earlier_agents_update_is_not_gone() {
    let rollback = one_of_each().find(|story| story.name.starts_with("roll_back")).unwrap();
    let rollback = written(&rollback);
    for story in stories(OperationKind::UpdateController) {
        if story.end != Status::Done {
            continue;
        }
        let template = Template::of(story.ground);
        virtual_time(|| async {
            let world = template.world(7);
            begun(&world, &story).await;
            rewrite(&world, |names| names.extend(rollback.clone()));
            let ended = gone_on(&world, &story).await;
            assert_eq!(ended.status(), Status::Done, "{}: {:?}", story.name, ended.cause());
            let view = ended.view();
            let skipped = view
                .steps
                .iter()
                .filter(|step| step.note.as_ref().is_some_and(|note| note.starts_with("not ")));
            assert_eq!(skipped.count(), rollback.len(), "{}: {view:?}", story.name);
        });
    }
}
