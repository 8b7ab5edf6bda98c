//! Copies of wrapped keys on one disk.
//!
//! In: the disk, and which files should and should not be stored on it. Out: what was found and done about each, in the
//! order in which it happened. The time is bounded even when the disk hangs. Deliberately absent: deciding which copies
//! belong where, and recording the findings.

use std::path::PathBuf;
use std::time::Duration;

use holdfast_recovery::escrow::{CodeNumber, EscrowFile};

use crate::port::disk_marker::Expected;
use crate::port::escrow_copy::{CopyFolder, FoundCopy};

/// A wrapped key is a kilobyte; a sleeping disk takes some seconds to spin up.
const DISK_MAX: Duration = Duration::from_secs(60);

#[derive(Clone, Debug)]
pub struct Order {
    /// Where it is mounted.
    pub place: PathBuf,
    /// Which it must be.
    pub expected: Expected,
    /// The files that should be stored there.
    pub wanted: Vec<(CodeNumber, EscrowFile)>,
    /// What should not.
    pub given_up: Vec<CodeNumber>,
}

/// How one copy was found, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CopyOutcome {
    /// As it should be.
    Same,
    /// Lost or changed, as text; and repaired, or why not.
    Repaired(&'static str, Result<(), String>),
    /// It cannot be read.
    Unread(String),
    /// It was to be deleted, and is deleted; or why not.
    Gone(Result<(), String>),
}

/// Does it. The error is one sentence for the whole disk, when it is another disk or does not answer.
///
/// # Errors
/// Why nothing on it was looked at.
pub async fn perform(order: Order) -> Result<Vec<(CodeNumber, CopyOutcome)>, String> {
    let look = tokio::task::spawn_blocking(move || look(&order));
    match tokio::time::timeout(DISK_MAX, look).await {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(_)) => Err("looking at it broke off: this is a fault of this program".to_owned()),
        Err(_) => Err(format!("it did not answer within {} s", DISK_MAX.as_secs())),
    }
}

fn look(order: &Order) -> Result<Vec<(CodeNumber, CopyOutcome)>, String> {
    let listing = CopyFolder::open(&order.place, &order.expected)?;
    let mut reported = Vec::new();
    for (code, file) in &order.wanted {
        reported.push((*code, copy(&listing, *code, file)));
    }
    for code in &order.given_up {
        reported
            .push((*code, CopyOutcome::Gone(listing.take_away(*code).map_err(|error| error.to_string()))));
    }
    Ok(reported)
}

fn copy(listing: &CopyFolder, code: CodeNumber, file: &EscrowFile) -> CopyOutcome {
    let was = match listing.look(code, file) {
        FoundCopy::Same => return CopyOutcome::Same,
        FoundCopy::Unread(why) => return CopyOutcome::Unread(why),
        FoundCopy::Missing => "it was not there",
        FoundCopy::Other => "something else was in its place",
    };
    let put = listing.put(code, file).map_err(|error| format!("it cannot be put back: {error}"));
    let put = put.and_then(|()| match listing.look(code, file) {
        FoundCopy::Same => Ok(()),
        _ => Err("it was put back, and reads as something else: the disk is failing".to_owned()),
    });
    CopyOutcome::Repaired(was, put)
}
