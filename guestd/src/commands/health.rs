//! Health of stacks before and after a change, and the rollback.
//!
//! `guestd try` and the check after apt use it.
//!
//! A stack that is not well before a change gives no information about that change: it is not checked afterwards.

use std::time::Duration;

use holdfast_protocol::id::{SnapshotName, StackName};
use holdfast_protocol::json::chain;
use holdfast_protocol::local::MountView;
use holdfast_protocol::local::work::RollBackRequest;
use holdfast_protocol::operation::{OperationStatus, OperationView};
use serde::{Deserialize, Serialize};

use crate::args::{Output, PathArgs};
use crate::driver::Group;
use crate::paths::Paths;
use crate::quiesce::mounts;
use crate::quiesce::stack::{self, Expected, Health};
use crate::quiesce::stop;
use crate::stacks::{Stack, Stacks};
use crate::work::{Session, end_text, key};

/// Between two questions about health.
const PAUSE: Duration = Duration::from_secs(2);

/// A stack that was well, and what of it ran.
#[derive(Clone, Debug)]
pub struct HealthyStack {
    pub stack: Stack,
    pub groups: Vec<Group>,
}

/// The same, as it is written down.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HealthyStackRecord {
    pub stack: StackName,
    pub groups: Vec<Group>,
}

impl From<HealthyStack> for HealthyStackRecord {
    fn from(well: HealthyStack) -> Self {
        Self { stack: well.stack.name, groups: well.groups }
    }
}

/// This guest's volumes, where a stack names some. They are as the agent reports them now, or as it last reported them.
pub async fn volumes(paths: &Paths, args: &PathArgs, stacks: &Stacks) -> Vec<MountView> {
    if stacks.stacks.iter().all(|stack| stack.volumes.is_empty()) {
        return Vec::new();
    }
    let status = match Session::open(args) {
        Ok(session) => session.agent.storage(&session.token).await.ok(),
        Err(_) => None,
    };
    let Some(storage) = status else { return mounts::remembered(paths) };
    if let Err(error) = mounts::remember(paths, &storage.volumes) {
        note_line!("guestd: {}", chain(&error));
    }
    storage.volumes
}

/// Names, for people.
pub fn names(well: &[HealthyStack]) -> String {
    let names: Vec<&str> = well.iter().map(|one| one.stack.name.as_str()).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// What runs and is well now.
pub async fn well_now(paths: &Paths, stacks: &Stacks, volumes: &[MountView]) -> Vec<HealthyStack> {
    let running = match stop::look(paths, stacks, volumes).await {
        Ok(running) => running,
        Err(error) => {
            note_line!("guestd: {}: no stack is checked afterwards", chain(&error));
            return Vec::new();
        }
    };
    let mut well = Vec::new();
    for one in running {
        let Ok(known) = mounts::volumes(&one.stack, volumes) else { continue };
        match stack::health(paths, &one.stack, &known, Expected::Named(&one.stopped.groups)).await {
            Health::Well | Health::Runs => {
                well.push(HealthyStack { stack: one.stack, groups: one.stopped.groups })
            }
            Health::Starting(why) | Health::Unwell(why) => {
                note_line!(
                    "guestd: stack {} is unhealthy now ({why}), so it is not checked afterwards",
                    one.stack.name
                );
            }
        }
    }
    well
}

/// What is not well any more, as text. Each stack has its own time to be well again.
pub async fn unwell(paths: &Paths, well: &[HealthyStack], volumes: &[MountView]) -> Option<String> {
    for HealthyStack { stack, groups } in well {
        let known = match mounts::volumes(stack, volumes) {
            Ok(known) => known,
            Err(error) => return Some(chain(&error)),
        };
        // Containers may be others now; services and units are the same.
        match stack::until_well(paths, stack, &known, (Expected::Named(groups), PAUSE)).await {
            Health::Well | Health::Runs => {}
            Health::Starting(why) | Health::Unwell(why) => {
                return Some(format!("stack {} is not well: {why}", stack.name));
            }
        }
    }
    None
}

/// When the rollback may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// After all other work on this guest: a process waits for it.
    InTurn,
    /// At once, or not at all: data that is written until a later rollback would be lost.
    AtOnce,
}

/// The result of a rollback request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Back {
    /// It is under way, and the guest restarts.
    UnderWay,
    /// It is not under way; the text is the reason.
    Not(String),
}

/// Has this guest go back to a snapshot.
pub async fn go_back(session: &Session, snapshot: &SnapshotName, when: When, output: Output) -> Back {
    let body = RollBackRequest { guest: None, snapshot: snapshot.clone() };
    let accepted = match session.ask("/v1/rollback", &body).await {
        Ok(accepted) => accepted,
        Err(error) => return Back::Not(format!("it was not rolled back: {}", chain(&error))),
    };
    if when == When::AtOnce && accepted.before > 0 {
        let path = format!("/v1/operations/{}", accepted.operation);
        let cancelled = match key() {
            Ok(key) => session.agent.delete::<OperationView>(&session.token, &path, &key).await.is_ok(),
            Err(_) => false,
        };
        // One that cannot be taken back any more has begun.
        if cancelled {
            return Back::Not(
                "it was not rolled back: other work on this guest is queued before it".to_owned(),
            );
        }
    }
    // In most cases the guest shuts down during this request.
    match session.follow(accepted.operation, output).await {
        Ok(view) if view.status != OperationStatus::Done => {
            Back::Not(end_text(&view, Some(snapshot)).trim().to_owned())
        }
        Ok(_) | Err(_) => Back::UnderWay,
    }
}
