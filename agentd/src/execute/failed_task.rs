//! The error of a step after a failed Proxmox task.
//!
//! A failed restore is blamed on the archive only by Proxmox's own message (`pve_client::restore_errors`), and only if
//! the scratch guest's storage is healthy afterwards: a pool that ran full ends a restore with many different messages.
//! It is not blamed on the archive either when a read-only twin of the storage lacks the key.

use holdfast_protocol::code::ErrorCode;

use super::context::Context;
use super::step_read_only_entry::without_key;
use super::step_room::too_full;
use super::trouble::StepError;
use crate::operation::step::Step;
use crate::operation::{Makes, RestoreTest};
use crate::port::pve::restore_errors::{Culprit, RestoreLog, shortened};

/// How a task of `pct start` ends when the container itself does not come up.
const NO_START: &str = "startup for container '";

/// A backup that its own log explains.
pub(super) fn no_backup(code: ErrorCode, why: &str) -> StepError {
    StepError::again(code, format!("Proxmox could not take the backup: {why}"))
}

pub(super) async fn trouble(context: &Context<'_>, text: &str, reported: &RestoreLog) -> StepError {
    let mut message = format!("Proxmox could not {}: {}", context.step.name(), shortened(text));
    let mut code = ErrorCode::Unavailable;
    let scratch = match context.progress.operation.makes() {
        Makes::Scratch(test) => Some(test),
        Makes::Guest(_) | Makes::Adopted(_) | Makes::Copy(_) | Makes::Successor(_) | Makes::Nothing => None,
    };
    if context.step == Step::Restore {
        if let Some(why) = reported.why() {
            message.push_str(&format!(" ({why})"));
        }
        if reported.culprit(text) == Culprit::Archive {
            code = ErrorCode::ArchiveUnusable;
        }
        if let (ErrorCode::ArchiveUnusable, Some(test)) = (code, scratch)
            && let Some(why) = without_key(test, &message)
        {
            code = ErrorCode::Unavailable;
            message.push_str(&format!("; {why}"));
        }
        if let (ErrorCode::ArchiveUnusable, Some(test)) = (code, scratch)
            && let Some(why) = unwell(context, test).await
        {
            code = ErrorCode::StorageFull;
            message.push_str(&format!("; {} {why}, so this says nothing of the archive", test.place.storage));
        }
    }
    if context.step == Step::FirstStart && scratch.is_some() && text.starts_with(NO_START) {
        code = ErrorCode::Broken;
    }
    StepError::again(code, message)
}

/// What is wrong with the storage for a scratch guest's disks. A storage that cannot be queried is not healthy.
async fn unwell(context: &Context<'_>, test: &RestoreTest) -> Option<String> {
    match context.ports.pve.storage_status(&test.place.storage).await {
        Ok(status) => too_full(&status),
        Err(error) => Some(format!("cannot be asked ({error})")),
    }
}
