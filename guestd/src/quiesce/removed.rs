//! What somebody removed while it stood still: it cannot be started, and must not count as running again.
//!
//! A container that another of its service replaced is not missed: who deploys meanwhile has the newer one. Everything else
//! is, until it is made again or a person says that it may stay away.

use std::time::Duration;

use super::act::{self, ActError};
use super::marker::{Marker, MarkerError, Stopped};
use super::turn::{self, Asked};
use crate::driver::{self, Engine, Part, PartState};
use crate::place::Place;
use crate::program::run_well;

/// Why it is missed on.
#[derive(Debug, thiserror::Error)]
pub enum RemovedError {
    /// The marker.
    #[error(transparent)]
    Marker(#[from] MarkerError),
    /// What is there cannot be told.
    #[error(transparent)]
    Act(#[from] ActError),
    /// A window, or another resume.
    #[error("another process of guestd stops or starts stacks just now: ask again when it is done")]
    Taken,
    /// The turn cannot be told.
    #[error("{why}")]
    Turn { why: String },
}

/// An error when one of these parts is gone, and nothing has taken its place.
pub async fn none_missed(stack: &Stopped, parts: &[Part]) -> Result<(), ActError> {
    let is_gone = |part: &Part| part.state == PartState::Gone;
    if !parts.iter().any(is_gone) {
        return Ok(());
    }
    let replaced = match &stack.home {
        Some(home) => run_well(&driver::services(home)).await?.out,
        None => String::new(),
    };
    let names = act::names(parts, |part| is_gone(part) && !replaced.lines().any(|name| name == part.name));
    if names.is_empty() { Ok(()) } else { Err(ActError::Removed { names, way: way(stack) }) }
}

/// How to have it again, or not.
fn way(stack: &Stopped) -> String {
    let again = match (&stack.home, stack.engine) {
        (Some(home), _) => format!("`{}` makes them again", home.up.join(" ")),
        (None, Engine::Docker) => "make them again".to_owned(),
        (None, Engine::Systemd) => "install them again".to_owned(),
    };
    format!("{again}; should they stay away, `guestd resume --without-removed`")
}

/// Takes what is gone out of the marker: what is left of it is all that should run. What it was called.
pub async fn let_be(place: &Place, patience: Duration) -> Result<String, RemovedError> {
    let _turn = match turn::take_patiently(place, patience).await {
        Asked::Ours(turn) => turn,
        Asked::Taken => return Err(RemovedError::Taken),
        Asked::Unknown(why) => return Err(RemovedError::Turn { why }),
    };
    let Some(mut marker) = Marker::load(place)? else { return Ok(String::new()) };
    let mut gone = Vec::new();
    for stack in &mut marker.stacks {
        let mut parts = act::check(stack.engine, &stack.groups).await?;
        parts.retain(|part| part.state == PartState::Gone);
        for group in &mut stack.groups {
            group.ids.retain(|id| parts.iter().all(|part| part.id != *id));
        }
        stack.groups.retain(|group| !group.ids.is_empty());
        gone.extend(parts.into_iter().map(|part| part.name));
    }
    gone.dedup();
    marker.stacks.retain(|stack| !stack.groups.is_empty());
    if !gone.is_empty() {
        marker.rewrite(place)?;
    }
    Ok(gone.join(", "))
}
