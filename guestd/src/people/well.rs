//! What is well before something is done to this guest, whether it is well afterwards, and the way back to a snapshot: for
//! `guestd try` and for the judgement after apt.
//!
//! A stack that is not well before says nothing of what is done: it is not asked for afterwards.

use std::time::Duration;

use holdfast_protocol::id::{SnapshotName, StackName};
use holdfast_protocol::local::MountView;
use holdfast_protocol::local::work::RollBackRequest;
use holdfast_protocol::operation::{OperationStatus, OperationView};
use holdfast_protocol::strict::chain;
use serde::{Deserialize, Serialize};

use crate::args::{Output, PlaceArgs};
use crate::driver::Group;
use crate::place::Place;
use crate::quiesce::act::{self, Expected, Health};
use crate::quiesce::mounts;
use crate::quiesce::stop;
use crate::stacks::{Stack, Stacks};
use crate::work::{Session, key, told_end};

/// Between two questions about health.
const PAUSE: Duration = Duration::from_secs(2);

/// A stack that was well, and what of it ran.
#[derive(Clone, Debug)]
pub struct Well {
    pub stack: Stack,
    pub groups: Vec<Group>,
}

/// The same, as it is written down.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WasWell {
    pub stack: StackName,
    pub groups: Vec<Group>,
}

impl From<Well> for WasWell {
    fn from(well: Well) -> Self {
        Self { stack: well.stack.name, groups: well.groups }
    }
}

/// This guest's volumes, where a stack names some: as the agent tells them, or as it told them last.
pub async fn volumes(place: &Place, args: &PlaceArgs, stacks: &Stacks) -> Vec<MountView> {
    if stacks.stacks.iter().all(|stack| stack.volumes.is_empty()) {
        return Vec::new();
    }
    let told = match Session::open(args) {
        Ok(session) => session.agent.storage(&session.token).await.ok(),
        Err(_) => None,
    };
    let Some(storage) = told else { return mounts::remembered(place) };
    if let Err(error) = mounts::remember(place, &storage.volumes) {
        aside!("guestd: {}", chain(&error));
    }
    storage.volumes
}

/// Names, for people.
pub fn names(well: &[Well]) -> String {
    let names: Vec<&str> = well.iter().map(|one| one.stack.name.as_str()).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// What runs and is well now.
pub async fn well_now(place: &Place, stacks: &Stacks, volumes: &[MountView]) -> Vec<Well> {
    let running = match stop::look(place, stacks, volumes).await {
        Ok(running) => running,
        Err(error) => {
            aside!("guestd: {}: no stack is asked for afterwards", chain(&error));
            return Vec::new();
        }
    };
    let mut well = Vec::new();
    for one in running {
        let Ok(known) = mounts::volumes(&one.stack, volumes) else { continue };
        match act::health(place, &one.stack, &known, Expected::Named(&one.stopped.groups)).await {
            Health::Well | Health::Runs => well.push(Well { stack: one.stack, groups: one.stopped.groups }),
            Health::Starting(why) | Health::Unwell(why) => {
                aside!(
                    "guestd: stack {} is not well now ({why}), so it is not asked for afterwards",
                    one.stack.name
                );
            }
        }
    }
    well
}

/// What is not well any more, in words. Each stack has its own time to be well again.
pub async fn unwell(place: &Place, well: &[Well], volumes: &[MountView]) -> Option<String> {
    for Well { stack, groups } in well {
        let known = match mounts::volumes(stack, volumes) {
            Ok(known) => known,
            Err(error) => return Some(chain(&error)),
        };
        // Containers may be others now; services and units are the same.
        match act::until_well(place, stack, &known, (Expected::Named(groups), PAUSE)).await {
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
    /// After whatever else is to be done to this guest: somebody waits for it.
    InTurn,
    /// At once, or not at all: nobody knows what is written until later.
    AtOnce,
}

/// What became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Back {
    /// It is under way, and the guest restarts.
    UnderWay,
    /// It is not, in words.
    Not(String),
}

/// Has this guest go back to a snapshot.
pub async fn go_back(session: &Session, snapshot: &SnapshotName, when: When, output: Output) -> Back {
    let wish = RollBackRequest { guest: None, snapshot: snapshot.clone() };
    let accepted = match session.ask("/v1/rollback", &wish).await {
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
            return Back::Not("it was not rolled back: other work on this guest goes before it".to_owned());
        }
    }
    // Mostly the guest goes down under this look.
    match session.follow(accepted.operation, output).await {
        Ok(view) if view.status != OperationStatus::Done => {
            Back::Not(told_end(&view, Some(snapshot)).trim().to_owned())
        }
        Ok(_) | Err(_) => Back::UnderWay,
    }
}
