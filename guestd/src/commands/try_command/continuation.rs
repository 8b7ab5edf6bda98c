//! Continuation of an interrupted `guestd try`.
//!
//! In most cases a shutdown interrupts it.
//!
//! A command that was cut off counts as failed. After a command that ended well the stacks are checked, as `guestd try`
//! does. The guest is rolled back only while the snapshot of `guestd try` is the last one: a later snapshot means that
//! an operator has another plan.

use holdfast_protocol::id::OperationId;
use holdfast_protocol::json::chain;
use holdfast_protocol::local::work::{RollBackRequest, SnapshotsView};
use tracing::{info, warn};

use super::try_file::{self, LoadedTry, Stage, TryState};
use crate::agent::AgentError;
use crate::args::PathArgs;
use crate::clock;
use crate::commands::apt::{SnapshotState, snapshot_state};
use crate::commands::health::{self, HealthyStack};
use crate::commands::try_lock;
use crate::paths::Paths;
use crate::quiesce::lock::{self, LockResult};
use crate::quiesce::marker::Marker;
use crate::stacks::Stacks;
use crate::status_file::{self, Note};
use crate::work::{Session, WorkError, end_text};

/// Continues, where an interrupted `guestd try` exists.
pub async fn continue_try(paths: &Paths, args: &PathArgs, stacks: &Stacks) {
    if !try_file::is_there(paths) || try_lock::goes_on(paths) || Marker::is_there(paths) {
        return;
    }
    let mut try_command = match try_file::load(paths) {
        LoadedTry::None => return,
        LoadedTry::TryState(try_command) => try_command,
        LoadedTry::Unreadable(why) => {
            return end(paths, &format!("what was tried is not known any more: {why}"));
        }
    };
    // No window meanwhile, and no other judge.
    let LockResult::Acquired(_turn) = lock::take(paths) else { return };
    let why = match try_command.stage.clone() {
        Stage::Command => "the command was cut off before it ended".to_owned(),
        Stage::Stacks => {
            let well = still(&try_command, stacks);
            let known = health::volumes(paths, args, stacks).await;
            match health::unwell(paths, &well, &known).await {
                Some(why) => why,
                None => {
                    let names = health::names(&well);
                    return end(paths, &format!("what was tried is kept; well before and after it: {names}"));
                }
            }
        }
        Stage::Back { why } => why,
        Stage::RollbackRequested { why, operation } => {
            return asked(paths, args, &try_command, &why, operation).await;
        }
    };
    if let Err(error) = try_command.reach(paths, Stage::Back { why: why.clone() }) {
        warn!(error = chain(&error), "a trial cannot be gone on with");
        return;
    }
    back(paths, args, try_command, &why).await;
}

/// What was well and is a stack still.
fn still(try_command: &TryState, stacks: &Stacks) -> Vec<HealthyStack> {
    let well = |stack: &crate::stacks::Stack| {
        let was = try_command.well.iter().find(|was| was.stack == stack.name)?;
        Some(HealthyStack { stack: stack.clone(), groups: was.groups.clone() })
    };
    stacks.stacks.iter().filter_map(well).collect()
}

async fn back(paths: &Paths, args: &PathArgs, mut try_command: TryState, why: &str) {
    let snapshot = try_command.snapshot.clone();
    let session = match Session::open(args) {
        Ok(session) => session,
        Err(error) => return info!(error = chain(&error), "the agent cannot be asked for a rollback yet"),
    };
    let held = match session.agent.look::<SnapshotsView>(&session.token, "/v1/snapshots").await {
        Ok(view) => match snapshot_state(&snapshot, &view) {
            SnapshotState::Last => None,
            SnapshotState::Followed(other) => Some(format!("snapshot {other} came after it")),
            SnapshotState::None | SnapshotState::Gone => {
                Some("its snapshot is not there any more".to_owned())
            }
            SnapshotState::Unknown(why) => Some(why),
        },
        Err(error) => return info!(error = chain(&error), "the agent does not tell its snapshots yet"),
    };
    if let Some(held) = held {
        return end(paths, &format!("{why}; it is not rolled back: {held}"));
    }
    say(paths, &format!("{why}: rolling back to snapshot {snapshot}; the guest restarts"));
    let body = RollBackRequest { guest: None, snapshot: snapshot.clone() };
    match session.ask("/v1/rollback", &body).await {
        Ok(accepted) => {
            let stage = Stage::RollbackRequested { why: why.to_owned(), operation: accepted.operation };
            if let Err(error) = try_command.reach(paths, stage) {
                warn!(error = chain(&error), "that a rollback was asked for is not written down");
            }
        }
        Err(WorkError::Agent(error @ AgentError::Refused { .. })) => {
            let held = chain(&error);
            end(
                paths,
                &format!("{why}; it was not rolled back: {held}; by hand: guestd rollback {snapshot}"),
            );
        }
        Err(error) => info!(error = chain(&error), "the agent cannot be asked for a rollback yet"),
    }
}

/// A rollback shuts the guest down and removes this file. A process that still reads it checks what happened to the
/// rollback.
async fn asked(paths: &Paths, args: &PathArgs, try_command: &TryState, why: &str, operation: OperationId) {
    let Ok(session) = Session::open(args) else { return };
    match session.agent.operation(&session.token, operation).await {
        Ok(view) if view.status.is_end() => {
            let name = &try_command.snapshot;
            let said = end_text(&view, Some(name));
            end(paths, &format!("{why}; {}; by hand: guestd rollback {name}", said.trim()));
        }
        Ok(_) => {}
        Err(error @ AgentError::Refused { .. }) => end(paths, &format!("{why}; {}", chain(&error))),
        Err(error) => info!(error = chain(&error), "state of a rollback is unknown"),
    }
}

fn say(paths: &Paths, said: &str) {
    warn!(said, "guestd try");
    status_file::update(paths, |status| {
        status.last_try = Some(Note { at: clock::now(), message: said.to_owned() })
    });
}

fn end(paths: &Paths, said: &str) {
    say(paths, said);
    if let Err(error) = try_file::forget(paths) {
        warn!(error = chain(&error), "cannot remove try.json");
    }
}
