//! A guest with a backup that a restore test proved.

use holdfast_protocol::restore_certificate::Check;

use super::records::{BackupRecord, GuestRecord, TestRecord};

/// All that a restore certificate says of a guest, as the records have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestedGuest {
    pub guest: GuestRecord,
    pub backup: BackupRecord,
    pub test: TestRecord,
    /// What was checked.
    pub checks: Vec<Check>,
}
