//! Goes on with a trial whose `guestd try` was ended: by a shutdown, mostly.
//!
//! A command that was cut off failed. After one that ended well the stacks are asked, as `guestd try` does. The guest goes back
//! only while the trial's snapshot is the last one: who took another one since has a plan of their own.

use holdfast_protocol::id::OperationId;
use holdfast_protocol::local::work::{RollBackRequest, SnapshotsView};
use holdfast_protocol::strict::chain;
use tracing::{info, warn};

use super::kept::{self, Found, Stage, Trial};
use crate::agent::AgentError;
use crate::args::PlaceArgs;
use crate::board::{self, Said};
use crate::clock;
use crate::people::apt::{Stands, stands};
use crate::people::tried;
use crate::people::well::{self, Well};
use crate::place::Place;
use crate::quiesce::marker::Marker;
use crate::quiesce::turn::{self, Asked};
use crate::stacks::Stacks;
use crate::work::{Session, WorkError, told_end};

/// Goes on, where there is something to go on with.
pub async fn go_on(place: &Place, args: &PlaceArgs, stacks: &Stacks) {
    if !kept::is_there(place) || tried::goes_on(place) || Marker::is_there(place) {
        return;
    }
    let mut trial = match kept::load(place) {
        Found::None => return,
        Found::Trial(trial) => trial,
        Found::Unreadable(why) => return end(place, &format!("what was tried is not known any more: {why}")),
    };
    // No window meanwhile, and no other judge.
    let Asked::Ours(_turn) = turn::take(place) else { return };
    let why = match trial.stage.clone() {
        Stage::Command => "the command was cut off before it ended".to_owned(),
        Stage::Stacks => {
            let well = still(&trial, stacks);
            let known = well::volumes(place, args, stacks).await;
            match well::unwell(place, &well, &known).await {
                Some(why) => why,
                None => {
                    let names = well::names(&well);
                    return end(place, &format!("what was tried is kept; well before and after it: {names}"));
                }
            }
        }
        Stage::Back { why } => why,
        Stage::Asked { why, operation } => return asked(place, args, &trial, &why, operation).await,
    };
    if let Err(error) = trial.reach(place, Stage::Back { why: why.clone() }) {
        warn!(error = chain(&error), "a trial cannot be gone on with");
        return;
    }
    back(place, args, trial, &why).await;
}

/// What was well and is a stack still.
fn still(trial: &Trial, stacks: &Stacks) -> Vec<Well> {
    let well = |stack: &crate::stacks::Stack| {
        let was = trial.well.iter().find(|was| was.stack == stack.name)?;
        Some(Well { stack: stack.clone(), groups: was.groups.clone() })
    };
    stacks.stacks.iter().filter_map(well).collect()
}

async fn back(place: &Place, args: &PlaceArgs, mut trial: Trial, why: &str) {
    let snapshot = trial.snapshot.clone();
    let session = match Session::open(args) {
        Ok(session) => session,
        Err(error) => return info!(error = chain(&error), "the agent cannot be asked for a rollback yet"),
    };
    let held = match session.agent.look::<SnapshotsView>(&session.token, "/v1/snapshots").await {
        Ok(view) => match stands(&snapshot, &view) {
            Stands::Last => None,
            Stands::Followed(other) => Some(format!("snapshot {other} came after it")),
            Stands::None | Stands::Gone => Some("its snapshot is not there any more".to_owned()),
            Stands::Unknown(why) => Some(why),
        },
        Err(error) => return info!(error = chain(&error), "the agent does not tell its snapshots yet"),
    };
    if let Some(held) = held {
        return end(place, &format!("{why}; it is not rolled back: {held}"));
    }
    say(place, &format!("{why}: the guest goes back to snapshot {snapshot}, and restarts"));
    let wish = RollBackRequest { guest: None, snapshot: snapshot.clone() };
    match session.ask("/v1/rollback", &wish).await {
        Ok(accepted) => {
            let stage = Stage::Asked { why: why.to_owned(), operation: accepted.operation };
            if let Err(error) = trial.reach(place, stage) {
                warn!(error = chain(&error), "that a rollback was asked for is not written down");
            }
        }
        Err(WorkError::Agent(error @ AgentError::Refused { .. })) => {
            let held = chain(&error);
            end(
                place,
                &format!("{why}; it was not rolled back: {held}; by hand: guestd rollback {snapshot}"),
            );
        }
        Err(error) => info!(error = chain(&error), "the agent cannot be asked for a rollback yet"),
    }
}

/// The guest goes down under a rollback, and this file with it. Who still reads it looks what became of that.
async fn asked(place: &Place, args: &PlaceArgs, trial: &Trial, why: &str, operation: OperationId) {
    let Ok(session) = Session::open(args) else { return };
    match session.agent.operation(&session.token, operation).await {
        Ok(view) if view.status.is_end() => {
            let name = &trial.snapshot;
            let said = told_end(&view, Some(name));
            end(place, &format!("{why}; {}; by hand: guestd rollback {name}", said.trim()));
        }
        Ok(_) => {}
        Err(error @ AgentError::Refused { .. }) => end(place, &format!("{why}; {}", chain(&error))),
        Err(error) => info!(error = chain(&error), "what became of a rollback is not told yet"),
    }
}

fn say(place: &Place, said: &str) {
    warn!(said, "a trial");
    board::update(place, |told| told.tried = Some(Said { at: clock::now(), said: said.to_owned() }));
}

fn end(place: &Place, said: &str) {
    say(place, said);
    if let Err(error) = kept::forget(place) {
        warn!(error = chain(&error), "a trial that is over is not forgotten");
    }
}
