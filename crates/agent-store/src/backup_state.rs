//! The state of one guest's backups, in one read.

use holdfast_protocol::id::GuestUid;
use holdfast_protocol::operation::OperationKind;
use holdfast_protocol::protection::Protection;
use holdfast_trust::limits::BackupLimits;
use jiff::{SignedDuration, Timestamp};
use rusqlite::Connection;

use super::{Store, StoreError, backup, journal_read, protection, records, request, roster, tier, window};
use agent_core::model::records::{BackupRecord, Renumbered, TierRecord};

/// The state of one guest's backups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BackupState {
    /// The promise about its backups.
    pub promise: Option<Protection>,
    /// Its backups, oldest first.
    pub backups: Vec<BackupRecord>,
    /// The attempts for its tiers.
    pub tiers: Vec<TierRecord>,
    /// How it got its VMID, where it had another one before.
    pub renumbered: Option<Renumbered>,
    /// How long its programs were stopped for backups within the last 24 hours.
    pub stood_still: SignedDuration,
    /// The limits of the operators' policy for backups.
    pub limits: BackupLimits,
    /// The operations that run on it, and those that wait.
    pub at_work: Vec<OperationKind>,
}

fn outstanding(connection: &Connection, uid: GuestUid, now: Timestamp) -> Result<BackupState, StoreError> {
    let open = journal_read::open_on(connection, uid)?.map(|progress| progress.operation.kind());
    let waits = request::queued(connection)?.into_iter().filter(|request| request.guest == uid);
    Ok(BackupState {
        promise: protection::of(connection, uid)?,
        backups: backup::of_guest(connection, uid)?,
        tiers: tier::of(connection, uid)?,
        stood_still: window::stood_still(connection, Some(uid), now)?.remove(&uid).unwrap_or_default(),
        limits: roster::backup_limits(connection)?,
        renumbered: records::renumbered(connection, Some(uid))?.remove(&uid),
        at_work: open.into_iter().chain(waits.map(|request| request.ask.kind())).collect(),
    })
}

impl Store {
    /// The state of a guest's backups, as of one moment.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn outstanding(&self, guest: GuestUid, now: Timestamp) -> Result<BackupState, StoreError> {
        self.read(move |connection| outstanding(connection, guest, now)).await
    }
}
