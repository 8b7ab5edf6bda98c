//! Restored copies that our operations made.

use std::collections::BTreeSet;

use holdfast_protocol::id::{GuestName, GuestUid, OperationId, Vmid};
use rusqlite::{Connection, Row, Transaction};

use super::columns::{from_json, json, parsed, time, vmid};
use super::{Part, Store, StoreError, guest, snapshot};
use agent_core::model::records::{CopyStage, Origin, RestoredCopyRecord, VolumeId};
use agent_core::model::warrant::SignedState;
use agent_core::operation::progress::OperationState;
use agent_core::operation::{RebaseGuest, SwapGuest};

const COLUMNS: &str = "operation, guest, name, archive, stage, volumes,
     CASE WHEN origin = 'demoted' AND EXISTS (SELECT 1 FROM operation WHERE id = restored_copy.operation
     AND kind = 'rebase_guest') THEN 'rebased' ELSE origin END, vmid,
     (SELECT ended_at FROM operation WHERE id = restored_copy.operation)";

struct Raw {
    texts: [String; 7],
    vmid: i64,
    ended_at: Option<i64>,
}

fn raw(row: &Row<'_>) -> Result<Raw, rusqlite::Error> {
    let texts = [row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?, row.get(6)?];
    Ok(Raw { texts, vmid: row.get(7)?, ended_at: row.get(8)? })
}

impl Raw {
    fn record(self) -> Result<RestoredCopyRecord, StoreError> {
        let [operation, guest, name, archive, stage, volumes, origin] = self.texts;
        Ok(RestoredCopyRecord {
            made_by: parsed("an operation", &operation)?,
            guest: parsed("a guest's uid", &guest)?,
            name: parsed("a guest's name", &name)?,
            vmid: vmid(self.vmid)?,
            origin: match origin.as_str() {
                "demoted" => Origin::Demoted,
                "rebased" => Origin::Rebased,
                // The column's CHECK allows nothing else.
                _ => Origin::Restored(VolumeId::new(archive)),
            },
            stage: match stage.as_str() {
                "made" => CopyStage::Made { volumes: from_json("volumes", &volumes)? },
                // The column's CHECK allows nothing else.
                _ => CopyStage::Making,
            },
            since: self.ended_at.map(time).transpose()?,
        })
    }
}

/// All of them, sorted by number.
pub(super) fn all(connection: &Connection) -> Result<Vec<RestoredCopyRecord>, StoreError> {
    let rows: Vec<Raw> = connection
        .prepare_cached(&format!("SELECT {COLUMNS} FROM restored_copy ORDER BY vmid"))
        .and_then(|mut select| select.query_map((), raw)?.collect())
        .map_err(StoreError::sqlite("read the copies"))?;
    rows.into_iter().map(Raw::record).collect()
}

/// A number was chosen. An earlier copy that had it is gone, else the number would not be free.
pub(super) fn begin(
    transaction: &Transaction<'_>,
    (guest, name, archive): (GuestUid, &GuestName, &VolumeId),
    by: OperationId,
    number: Vmid,
) -> Result<(), StoreError> {
    transaction
        .execute(
            "INSERT OR REPLACE INTO restored_copy (operation, guest, name, vmid, archive, stage)
             VALUES (?1, ?2, ?3, ?4, ?5, 'making')",
            (by.to_string(), guest.to_string(), name.as_str(), number.number(), archive.as_str()),
        )
        .map_err(StoreError::sqlite("note a copy"))?;
    Ok(())
}

/// It was made and checked.
pub(super) fn made(
    transaction: &Transaction<'_>,
    by: OperationId,
    volumes: &BTreeSet<VolumeId>,
) -> Result<(), StoreError> {
    transaction
        .execute(
            "UPDATE restored_copy SET stage = 'made', volumes = ?2 WHERE operation = ?1",
            (by.to_string(), json("volumes", volumes)?),
        )
        .map_err(StoreError::sqlite("note a copy as made"))?;
    Ok(())
}

/// A copy took its guest's place: the former guest is kept next to it as a copy from now on, with its snapshots.
pub(super) fn swapped(
    transaction: &Transaction<'_>,
    swap: &SwapGuest,
    by: OperationId,
) -> Result<(), StoreError> {
    let (was, now) = (swap.guest(), swap.copy());
    guest::moved(transaction, now, by)?;
    snapshot::gone_with(transaction, was.uid)?;
    gone(transaction, swap.made_by)?;
    demoted(transaction, was, by)
}

/// A container of a newer image took its guest's place, with the guest's volumes: the former guest is kept with its root
/// disk.
pub(super) fn rebased(
    transaction: &Transaction<'_>,
    rebase: &RebaseGuest,
    after: &OperationState,
) -> Result<(), StoreError> {
    let guest = rebase.guest();
    let version = rebase.version().map_err(StoreError::unreadable("an image's version"))?;
    let vmid = after.vmid().filter(|vmid| *vmid != guest.vmid).ok_or_else(|| StoreError::Unreadable {
        what: "a guest's number",
        source: "the operation chose none".into(),
    })?;
    let volumes = after.volumes().into_iter().chain(after.moved().into_values()).collect();
    guest::moved(transaction, &SignedState { vmid, volumes, ..guest.clone() }, after.id)?;
    guest::set_golden(transaction, guest.uid, version)?;
    snapshot::gone_with(transaction, guest.uid)?;
    gone(transaction, after.id)?;
    demoted(transaction, &SignedState { volumes: rebase.stays(), ..guest.clone() }, after.id)
}

/// What was the guest is kept as a copy of it.
fn demoted(transaction: &Transaction<'_>, was: &SignedState, by: OperationId) -> Result<(), StoreError> {
    transaction
        .execute(
            "INSERT INTO restored_copy (operation, guest, name, vmid, archive, stage, volumes, origin)
             VALUES (?1, ?2, ?3, ?4, '', 'made', ?5, 'demoted')",
            (
                by.to_string(),
                was.uid.to_string(),
                was.name.as_str(),
                was.vmid.number(),
                json("volumes", &was.volumes)?,
            ),
        )
        .map_err(StoreError::sqlite("note a guest as laid aside"))?;
    Ok(())
}

/// The copies of one guest.
pub(super) fn of(connection: &Connection, guest: GuestUid) -> Result<Vec<RestoredCopyRecord>, StoreError> {
    Ok(all(connection)?.into_iter().filter(|record| record.guest == guest).collect())
}

/// Nothing of it is left that we know of.
pub(super) fn gone(transaction: &Transaction<'_>, by: OperationId) -> Result<(), StoreError> {
    transaction
        .execute("DELETE FROM restored_copy WHERE operation = ?1", [by.to_string()])
        .map_err(StoreError::sqlite("forget a copy"))?;
    Ok(())
}

/// The same, where it was not finished: what the operation laid aside is kept under its id as well.
pub(super) fn gone_making(transaction: &Transaction<'_>, by: OperationId) -> Result<(), StoreError> {
    transaction
        .execute("DELETE FROM restored_copy WHERE operation = ?1 AND stage = 'making'", [by.to_string()])
        .map_err(StoreError::sqlite("forget a copy"))?;
    Ok(())
}

impl Store {
    /// Copies next to guests, sorted by number.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn copies(&self) -> Result<Vec<RestoredCopyRecord>, StoreError> {
        self.read(all).await
    }

    /// Copies that were seen to be gone.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn forget_copies(&self, made_by: Vec<OperationId>) -> Result<(), StoreError> {
        self.write(Part::Guests, "forget a copy", move |transaction| {
            made_by.into_iter().try_for_each(|by| gone(transaction, by))
        })
        .await
    }
}
