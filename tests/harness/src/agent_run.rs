//! One run of the agent's engine, until its end or kill.
//!
//! In: a world, the conductor that decides when the agent dies, whether controllers speak, and perhaps a new operation.
//! Out: how the operations ended, or where the agent died. Bounded in virtual time: a world whose faults are over
//! settles (I12).

use std::sync::Arc;
use std::time::Duration;

use agentd::execute::run::{Stopped, run};
use agentd::execute::{Ports, recover};
use agentd::operation::Operation;
use agentd::operation::progress::OperationState;
use agentd::plan::Questions;
use agentd::plan::recovery::{StartObservation, recovery};
use agentd::port::clock::Clock;
use agentd::port::store::Store;
use agentd::port::store::journal::NewOperation;
use holdfast_protocol::generation::Generation;
use holdfast_protocol::id::OperationId;

use crate::controllers::{Speech, speak};
use crate::points::{Conductor, Place};
use crate::windows::{self, Windows};
use crate::world::World;

/// A host whose faults are over has settled after this much virtual time.
const SETTLED_WITHIN: Duration = Duration::from_secs(12 * 3600);

/// How a life ended.
#[derive(Debug)]
pub enum End {
    /// Every operation came to its end.
    Came(Vec<OperationState>),
    Killed(Place),
    /// It never ends, or it failed.
    Stuck(String),
}

/// What the guests' controllers do in a life.
#[derive(Clone, Copy, Debug)]
pub struct Tone {
    /// Whether they speak.
    pub speech: Speech,
    /// What they do in quiesce windows.
    pub windows: Windows,
}

/// What a life begins with.
pub enum Begin {
    /// A new operation, under this number.
    With(u8, Box<Operation>),
    /// What the journal holds.
    TakingUp,
}

pub async fn live(world: &World, conductor: &Arc<Conductor>, tone: Tone, begin: Begin) -> End {
    let ports = world.agent(conductor).await;
    let store = ports.store.clone();
    let work = async {
        let open = match begin {
            Begin::With(number, operation) => vec![open(&store, world, number, *operation).await?],
            Begin::TakingUp => match take_up(world, &ports, conductor).await? {
                Some(open) => open,
                None => return Ok(None),
            },
        };
        let mut ended = Vec::new();
        for progress in open {
            conductor.takes_up(progress.status());
            match run(&ports, progress).await {
                Ok(done) => ended.push(done),
                Err(Stopped::Killed(_)) => return Ok(None),
                Err(error) => return Err(format!("{error}: {:?}", std::error::Error::source(&error))),
            }
        }
        Ok(Some(ended))
    };
    tokio::select! {
        biased;
        place = conductor.death() => End::Killed(place),
        worked = tokio::time::timeout(SETTLED_WITHIN, work) => match (worked, conductor.dead()) {
            (_, Some(place)) => End::Killed(place),
            (Ok(Ok(Some(ended))), None) => End::Came(ended),
            (Ok(Ok(None)), None) => End::Stuck("it stopped as if killed, and nobody killed it".to_owned()),
            (Ok(Err(error)), None) => End::Stuck(error),
            (Err(_), None) => {
                End::Stuck(format!("it has not settled after {} h: {:?}", SETTLED_WITHIN.as_secs() / 3600, ports.lines.borrow()))
            }
        },
        () = speak(world, &store, tone.speech) => End::Stuck("the controllers ended".to_owned()),
        () = windows::play(world, &store, conductor, tone.windows) => End::Stuck("the windows ended".to_owned()),
    }
}

/// What the reconcile loop does at its start: it plans the recovery, keeps the plan, and records what the plan adopts
/// or parks. None when it was killed during that.
async fn take_up(
    world: &World,
    ports: &Ports,
    conductor: &Conductor,
) -> Result<Option<Vec<OperationState>>, String> {
    let open = ports.store.open_operations().await.map_err(|error| error.to_string())?;
    if let Some(first) = open.first() {
        conductor.takes_up(first.status());
        let observed = world.eye(ports).look(&Questions::default()).await.ok();
        let tasks = recover::lost_tasks(ports, &open).await;
        let now = Clock::now(&world.timeline);
        let plan = recovery(&open, StartObservation { observed: observed.as_ref(), tasks: &tasks }, now);
        ports.store.keep_recovery(plan.clone(), now).await.map_err(|error| error.to_string())?;
        match recover::settle(ports, open, &plan).await {
            Ok(()) => {}
            Err(Stopped::Killed(_)) => return Ok(None),
            Err(error) => return Err(error.to_string()),
        }
    }
    ports.store.open_operations().await.map(Some).map_err(|error| error.to_string())
}

/// Opens an operation as the reconcile loop does.
async fn open(
    store: &Store,
    world: &World,
    number: u8,
    operation: Operation,
) -> Result<OperationState, String> {
    let new = NewOperation {
        id: OperationId::new(uuid::Uuid::from_u128(u128::from(number))),
        operation,
        generation: Generation::new(1),
        reason: "a story".to_owned(),
        at: Clock::now(&world.timeline),
    };
    store.open_operation(new).await.map_err(|error| error.to_string())
}

/// An operation in a few lines.
#[must_use]
pub fn reported(progress: &OperationState) -> String {
    let view = progress.view();
    let mut text = format!("{} {:?}", view.kind.as_str(), view.status);
    for step in &view.steps {
        let note = step.note.as_deref().unwrap_or_default();
        text.push_str(&format!("\n        {:<16} {:?} {note}", step.name, step.status));
    }
    if let Some(problem) = &view.problem {
        text.push_str(&format!("\n        {problem}"));
    }
    text
}
