//! Stopped parts that were removed and cannot be started.
//!
//! A container that another of its service replaced is not missed: who deploys meanwhile has the newer one. Everything else
//! is, until it is made again or a person says that it may stay away.

use std::time::Duration;

use super::lock::{self, LockResult};
use super::marker::{Marker, MarkerError};
use super::stack::{self, StackError};
use crate::driver::PartState;
use crate::paths::Paths;

/// Why it is missed on.
#[derive(Debug, thiserror::Error)]
pub enum MissingUnitsError {
    #[error(transparent)]
    Marker(#[from] MarkerError),
    /// The state of the parts is unknown.
    #[error(transparent)]
    Act(#[from] StackError),
    /// A window, or another resume.
    #[error("another guestd process is stopping or starting stacks: try again when it has ended")]
    Taken,
    /// The state of the lock is unknown.
    #[error("{why}")]
    Lock { why: String },
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
