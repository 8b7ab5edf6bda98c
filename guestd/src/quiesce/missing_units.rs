//! Stopped parts that were removed and cannot be started.
//!
//! A container that another of its service replaced is not missed: who deploys meanwhile has the newer one. Everything else
//! is, until it is made again or a person says that it may stay away.

use std::time::Duration;

use super::lock::{self, LockResult};
use super::marker::{Marker, MarkerError, Stopped};
use super::stack::{self, StackError};
use crate::driver::{self, Engine, Part, PartState};
use crate::paths::Paths;
use crate::program::run_well;

/// Why it is missed on.
#[derive(Debug, thiserror::Error)]
pub enum MissingUnitsError {
    #[error(transparent)]
    Marker(#[from] MarkerError),
    /// What is there cannot be told.
    #[error(transparent)]
    Act(#[from] StackError),
    /// A window, or another resume.
    #[error("another guestd process is stopping or starting stacks: try again when it has ended")]
    Taken,
    /// The turn cannot be told.
    #[error("{why}")]
    Lock { why: String },
}

/// An error when one of these parts is gone, and nothing has taken its place.
pub async fn require_all_present(stack: &Stopped, parts: &[Part]) -> Result<(), StackError> {
    let is_gone = |part: &Part| part.state == PartState::Gone;
    if !parts.iter().any(is_gone) {
        return Ok(());
    }
    let replaced = match &stack.home {
        Some(home) => run_well(&driver::services(home)).await?.out,
        None => String::new(),
    };
    let names = stack::names(parts, |part| is_gone(part) && !replaced.lines().any(|name| name == part.name));
    if names.is_empty() { Ok(()) } else { Err(StackError::Removed { names, way: way(stack) }) }
}

/// How to have it again, or not.
fn way(stack: &Stopped) -> String {
    let again = match (&stack.home, stack.engine) {
        (Some(home), _) => format!("`{}` makes them again", home.up.join(" ")),
        (None, Engine::Docker) => "make them again".to_owned(),
        (None, Engine::Systemd) => "install them again".to_owned(),
    };
    format!("{again}; if they were removed on purpose, `guestd resume --without-removed`")
}

/// Takes what is gone out of the marker: what is left of it is all that should run. What it was called.
pub async fn forget_missing(paths: &Paths, patience: Duration) -> Result<String, MissingUnitsError> {
    let _turn = match lock::take_within(paths, patience).await {
        LockResult::Acquired(lock) => lock,
        LockResult::Taken => return Err(MissingUnitsError::Taken),
        LockResult::Unknown(why) => return Err(MissingUnitsError::Lock { why }),
    };
    let Some(mut marker) = Marker::load(paths)? else { return Ok(String::new()) };
    let mut gone = Vec::new();
    for stack in &mut marker.stacks {
        let mut parts = stack::check(stack.engine, &stack.groups).await?;
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
        marker.rewrite(paths)?;
    }
    Ok(gone.join(", "))
}
