//! Guests of a replaced host, taken up in one transaction.
//!
//! Input: the guests to take up, and those to leave out. Output: rows of guests that our records call made although
//! they exist nowhere; later the backups found for them. A repeat changes nothing. Deliberately absent: which guests
//! are taken up (`plan/left`), and restoring any of them.

use std::collections::BTreeSet;

use holdfast_protocol::id::{GuestUid, KeyFingerprint, OperationId, Vmid};
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Transaction};

use super::columns::{from_json, json, micros, time, word};
use super::{Part, Store, StoreError, audit, guest};
use agent_core::model::inherited::{Away, InheritedGuests, Return, WayBack};
use agent_core::model::records::{BackupRecord, Place};
use agent_core::plan::inherited::{LostGuest, Taking};

/// What became of the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TakenUp {
    /// It is written down.
    Yes(InheritedGuests),
    /// A number is another guest's of ours; nothing was changed.
    Anothers {
        vmid: Vmid,
        /// The guest of the lost host that had it.
        name: String,
    },
}

pub(super) fn find(connection: &Connection) -> Result<Option<InheritedGuests>, StoreError> {
    let text: Option<String> = connection
        .prepare_cached("SELECT value FROM meta WHERE key = 'left'")
        .and_then(|mut select| select.query_row([], |row| row.get(0)).optional())
        .map_err(StoreError::sqlite("read what a lost box left"))?;
    text.map(|text| from_json("what a lost box left", &text)).transpose()
}

fn is_anothers(connection: &Connection, uid: GuestUid, vmid: Vmid) -> Result<bool, StoreError> {
    connection
        .query_row(
            "SELECT (SELECT count(*) FROM used_vmid WHERE vmid = ?1 AND uid <> ?2)
                  + (SELECT count(*) FROM guest WHERE vmid = ?1 AND uid <> ?2)",
            (vmid.number(), uid.to_string()),
            |row| row.get::<_, i64>(0),
        )
        .map(|count| count > 0)
        .map_err(StoreError::sqlite("look whose a VMID is"))
}

fn put(transaction: &Transaction<'_>, lost: &LostGuest, left: &InheritedGuests) -> Result<(), StoreError> {
    let uid = lost.uid.to_string();
    transaction
        .execute("INSERT OR IGNORE INTO used_vmid (vmid, uid) VALUES (?1, ?2)", (lost.vmid.number(), &uid))
        .and_then(|_| {
            transaction.execute("INSERT OR IGNORE INTO guest (uid, name, customer, golden, place) VALUES (?1, ?2, ?3, ?4, 'nowhere')",
                (&uid, lost.name.as_str(), lost.customer.as_str(), lost.golden.as_str()))
        })
        .and_then(|_| {
            transaction.execute(
                "UPDATE guest SET place = 'made', vmid = ?2, made_by = ?3 WHERE uid = ?1",
                (&uid, lost.vmid.number(), left.by.to_string()),
            )
        })
        .map_err(StoreError::sqlite("note a guest of a lost box"))?;
    guest::set_made(transaction, lost.uid, &lost.volumes)
}

/// Reserves a guest's former VMIDs for it alone: its backups are searched under them, and no other guest gets them.
/// Returns those it has now, and those that already belong to another guest.
fn put_former(transaction: &Transaction<'_>, lost: &LostGuest) -> Result<(Vec<Vmid>, Vec<Vmid>), StoreError> {
    let (mut own, mut others) = (Vec::new(), Vec::new());
    for vmid in &lost.former {
        if is_anothers(transaction, lost.uid, *vmid)? {
            others.push(*vmid);
            continue;
        }
        transaction
            .execute(
                "INSERT OR IGNORE INTO used_vmid (vmid, uid) VALUES (?1, ?2)",
                (vmid.number(), lost.uid.to_string()),
            )
            .map_err(StoreError::sqlite("note a former VMID"))?;
        own.push(*vmid);
    }
    Ok((own, others))
}

fn listed(vmids: &[Vmid]) -> String {
    vmids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn take_up(
    transaction: &Transaction<'_>,
    taking: &Taking,
    (new, by): (OperationId, &str),
    at: Timestamp,
) -> Result<TakenUp, StoreError> {
    let before = find(transaction)?;
    let mut left = before.unwrap_or(InheritedGuests { by: new, at, guests: Vec::new() });
    // A guest that was reported before may be back under another number, or was let go. A guest that a signed job
    // destroyed stays destroyed.
    let mut new_ones = Vec::new();
    for lost in &taking.guests {
        let known = guest::find(transaction, lost.uid)?;
        let spoken_of = left.guests.contains(&lost.uid);
        if !spoken_of && known.is_none_or(|record| record.place == Place::Nowhere) {
            new_ones.push(lost);
        }
    }
    for lost in &new_ones {
        if is_anothers(transaction, lost.uid, lost.vmid)? {
            return Ok(TakenUp::Anothers { vmid: lost.vmid, name: lost.name.to_string() });
        }
    }
    for lost in &new_ones {
        put(transaction, lost, &left)?;
    }
    // Only now: the last VMID of one guest is not recorded as a former VMID of another guest.
    for lost in new_ones {
        let (former, others) = put_former(transaction, lost)?;
        left.guests.push(lost.uid);
        let mut detail = format!("{} had VMID {} on the lost box", lost.name, lost.vmid);
        if !former.is_empty() {
            detail.push_str(&format!(", before that {}", listed(&former)));
        }
        if !others.is_empty() {
            let others = listed(&others);
            detail.push_str(&format!(
                "; {others} of those it had is another guest's here, so no backup is looked for under it"
            ));
        }
        detail.push_str(&format!("; taken up by {by}"));
        note(transaction, at, "guest_left", lost.uid, &detail)?;
    }
    for uid in &taking.away {
        if !left.guests.contains(uid) {
            left.guests.push(*uid);
        }
        let Some(record) = guest::find(transaction, *uid)?.filter(|record| left.is_away(record)) else {
            continue;
        };
        guest::set_nowhere(transaction, *uid)?;
        let detail = format!("{} of the lost box stays away, by {by}", record.name);
        note(transaction, at, "guest_stays_away", *uid, &detail)?;
    }
    transaction
        .execute(
            "INSERT OR REPLACE INTO meta (key, value) VALUES ('left', ?1)",
            [json("what a lost box left", &left)?],
        )
        .map_err(StoreError::sqlite("note what a lost box left"))?;
    Ok(TakenUp::Yes(left))
}

fn note(
    transaction: &Transaction<'_>,
    at: Timestamp,
    action: &str,
    guest: GuestUid,
    detail: &str,
) -> Result<(), StoreError> {
    audit::append(transaction, &audit::Line { at, action, guest: Some(guest), operation: None, detail })
}

fn put_backup(transaction: &Transaction<'_>, backup: &BackupRecord) -> Result<usize, StoreError> {
    transaction
        .execute(
            "INSERT OR IGNORE INTO backup (volid, guest, vmid, storage, bytes, taken_at, operation, why, sealed)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            (
                backup.archive.as_str(),
                backup.guest.to_string(),
                backup.vmid.number(),
                backup.storage.as_str(),
                i64::try_from(backup.bytes).map_err(StoreError::unreadable("a size"))?,
                micros(backup.taken_at),
                backup.taken_by.to_string(),
                word("why a backup was taken", &backup.why)?,
                backup.sealed.as_ref().map(KeyFingerprint::as_str),
            ),
        )
        .map_err(StoreError::sqlite("note a backup of a lost box"))
}

fn size(connection: &Connection, guest: GuestUid, until: Timestamp) -> Result<Option<u64>, StoreError> {
    let sql = "SELECT bytes FROM backup WHERE guest = ?1 AND taken_at <= ?2 ORDER BY taken_at DESC LIMIT 1";
    let bytes: Option<i64> = connection
        .prepare_cached(sql)
        .and_then(|mut select| {
            select.query_row((guest.to_string(), micros(until)), |row| row.get(0)).optional()
        })
        .map_err(StoreError::sqlite("read a backup's size"))?;
    bytes.map(|bytes| u64::try_from(bytes).map_err(StoreError::unreadable("a size"))).transpose()
}

fn way_back(connection: &Connection, left: &InheritedGuests) -> Result<WayBack, StoreError> {
    let mut way = WayBack::default();
    for uid in &left.guests {
        let Some(record) = guest::find(connection, *uid)? else { continue };
        let ended = match &record.place {
            // It is left out, by an operator's choice or a signed job.
            Place::Nowhere | Place::Gone { .. } => continue,
            Place::Made { by, .. } if *by != left.by => Some(*by),
            Place::Made { .. } | Place::Making { .. } => None,
        };
        let Some(by) = ended else {
            let bytes = size(connection, *uid, Timestamp::MAX)?;
            way.away.push(Away { name: record.name.to_string(), bytes });
            continue;
        };
        let times: Option<(i64, Option<i64>)> = connection
            .prepare_cached("SELECT opened_at, ended_at FROM operation WHERE id = ?1")
            .and_then(|mut select| {
                select.query_row([by.to_string()], |row| Ok((row.get(0)?, row.get(1)?))).optional()
            })
            .map_err(StoreError::sqlite("read when a guest came back"))?;
        let Some((began, ended)) = times else { continue };
        let (began_at, ended_at) = (time(began)?, time(ended.unwrap_or(began))?);
        let bytes = size(connection, *uid, began_at)?.unwrap_or(0);
        way.returned.push(Return { began_at, ended_at, bytes });
    }
    Ok(way)
}

impl Store {
    /// Records the guests of the lost host, and lets go of those that are to be left out. Each audit line names who
    /// decided it.
    ///
    /// # Errors
    /// [`StoreError`]; nothing changed then.
    pub async fn take_up(
        &self,
        taking: Taking,
        new: OperationId,
        by: String,
        at: Timestamp,
    ) -> Result<TakenUp, StoreError> {
        self.write(Part::Guests, "take up what a lost box left", move |transaction| {
            take_up(transaction, &taking, (new, &by), at)
        })
        .await
    }

    /// The guests that were taken up, if any were.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn left(&self) -> Result<Option<InheritedGuests>, StoreError> {
        self.read(find).await
    }

    /// The progress of restoring a lost host's guests.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn way_back(&self) -> Result<Option<WayBack>, StoreError> {
        self.read(|connection| find(connection)?.map(|left| way_back(connection, &left)).transpose()).await
    }

    /// When a guest was made by this operation, or taken up from a lost host.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn made_at(&self, by: OperationId) -> Result<Option<Timestamp>, StoreError> {
        if let Some(made) = self.operation_view(by).await? {
            return Ok(made.ended_at);
        }
        Ok(self.left().await?.filter(|left| left.by == by).map(|left| left.at))
    }

    /// Notes backups of guests of a lost host that a storage lists. Those on record already stay as they are.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn note_left_backups(&self, found: Vec<BackupRecord>, at: Timestamp) -> Result<(), StoreError> {
        self.write(Part::Guests, "note backups of a lost box", move |transaction| {
            let mut noted: BTreeSet<(GuestUid, &str)> = BTreeSet::new();
            for backup in &found {
                if put_backup(transaction, backup)? > 0 {
                    noted.insert((backup.guest, backup.storage.as_str()));
                }
            }
            for (guest, storage) in noted {
                let count = found.iter().filter(|one| one.guest == guest && one.storage.as_str() == storage);
                let detail =
                    format!("{} that {storage} lists under its VMIDs on the lost box", count.count());
                note(transaction, at, "backups_found", guest, &detail)?;
            }
            Ok(())
        })
        .await
    }
}
