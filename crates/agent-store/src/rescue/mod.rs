//! The records, read without a running agent.
//!
//! In: a state folder, or a copy of one, on a disk that may take no writes. Out: what can be read of it, each part by itself, so
//! that a damaged page hides one part and not all. Nothing in the folder is written. No secret is selected: no hash of a token,
//! no sealed credential, no wrapped key. Deliberately absent: what to do about it, which `plan::rescue_advice` says.
//!
//! | module | contents |
//! | --- | --- |
//! | [`open`] | the file opened so that nothing is written |
//! | [`rows`] | what is read of it |
//! | [`chain`] | the audit, verified and exported |

pub mod chain;
pub mod open;
pub mod rows;

use std::path::Path;

use jiff::Timestamp;
use serde::Serialize;

pub use self::chain::AuditState;
pub use self::open::{AgentProcess, OpenedAs, RescueFile, RescueOpenError};
pub use self::rows::{BackupRow, FileState, GuestRow, OpenOperation, Rows, TargetRow, TestRow, WindowRow};
use agent_core::model::parked::ParkedEntry;

/// All that was read.
#[derive(Debug, Serialize)]
pub struct RescueState {
    pub agent: AgentProcess,
    pub opened: OpenedAs,
    pub file: FileState,
    pub open: Rows<OpenOperation>,
    pub parked: Rows<ParkedEntry>,
    pub windows: Rows<WindowRow>,
    pub guests: Rows<GuestRow>,
    pub backups: Rows<BackupRow>,
    pub tests: Rows<TestRow>,
    pub targets: Rows<TargetRow>,
    pub audit: AuditState,
}

/// Reads everything once.
#[must_use]
pub fn read(file: &RescueFile, folder: &Path, now: Timestamp) -> RescueState {
    let connection = file.connection();
    let audit = chain::verify(connection, folder);
    RescueState {
        agent: file.agent(),
        opened: file.opened(),
        file: rows::file_state(connection, folder, &audit),
        open: rows::open_operations(connection, now),
        parked: rows::parked(connection),
        windows: rows::windows(connection),
        guests: rows::guests(connection),
        backups: rows::backups(connection),
        tests: rows::tests(connection),
        targets: rows::targets(connection),
        audit,
    }
}

#[cfg(test)]
mod tests;
