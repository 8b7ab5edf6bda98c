//! Our guests: ids, places and every VMID they had.

use holdfast_protocol::desired::DesiredGuest;
use holdfast_protocol::id::{GoldenVersion, GuestUid, OperationId, Vmid};
use rusqlite::{Connection, OptionalExtension, Row, Transaction};

use super::columns::{from_json, json, parsed, time, vmid};
use super::{Part, Store, StoreError, snapshot};
use agent_core::model::policy::Sha256Hex;
use agent_core::model::records::{Access, GuestRecord, HelloRecord, Place, ReportedConditions, VolumeId};
use agent_core::model::warrant::SignedState;
use agent_core::operation::{Adopt, Provision};

/// The result of a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reserved {
    /// The number is this guest's.
    Yes,
    /// Another guest of ours has it or had it.
    Anothers,
}

pub(super) const COLUMNS: &str = "uid, name, customer, golden, place, vmid, made_by, volumes, access, token_generation, \
     hello_version, hello_health, hello_boot_id, hello_at, gone_by, hello_build, hello_reported";

/// A row as SQLite gives it, before its texts are parsed.
pub(super) struct RawGuest {
    who: [String; 4],
    place: String,
    vmid: Option<i64>,
    made_by: Option<String>,
    gone_by: Option<String>,
    volumes: String,
    access: String,
    token_generation: u32,
    hello: Option<(String, String, String, i64)>,
    build: Option<String>,
    reported: Option<String>,
}

pub(super) fn raw(row: &Row<'_>) -> Result<RawGuest, rusqlite::Error> {
    let hello_at: Option<i64> = row.get(13)?;
    let hello = match hello_at {
        Some(at) => Some((row.get(10)?, row.get(11)?, row.get(12)?, at)),
        None => None,
    };
    Ok(RawGuest {
        who: [row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?],
        place: row.get(4)?,
        vmid: row.get(5)?,
        made_by: row.get(6)?,
        gone_by: row.get(14)?,
        volumes: row.get(7)?,
        access: row.get(8)?,
        token_generation: row.get(9)?,
        hello,
        build: row.get(15)?,
        reported: row.get(16)?,
    })
}

impl RawGuest {
    pub(super) fn record(self) -> Result<GuestRecord, StoreError> {
        let [uid, name, customer, golden] = &self.who;
        let place = self.place()?;
        let access = match self.access.as_str() {
            "open" => Access::Open,
            // The column's CHECK allows no other value, and `frozen` is the safe one.
            _ => Access::Frozen,
        };
        let hello = self.hello.as_ref().map(|(version, health, boot_id, at)| {
            Ok::<_, StoreError>(HelloRecord {
                version: version.clone(),
                health: from_json("a health", &format!("\"{health}\""))?,
                boot_id: boot_id.clone(),
                build: self.build()?,
                reported: self.reported.as_deref().map_or_else(
                    || Ok(ReportedConditions::default()),
                    |reported| from_json("what a guest reported", reported),
                )?,
                at: time(*at)?,
            })
        });
        Ok(GuestRecord {
            uid: parsed("a guest's uid", uid)?,
            name: parsed("a guest's name", name)?,
            customer: parsed("a customer", customer)?,
            golden: parsed("a golden version", golden)?,
            place,
            access,
            token_generation: self.token_generation,
            hello: hello.transpose()?,
        })
    }

    fn build(&self) -> Result<Option<Sha256Hex>, StoreError> {
        let build = self.build.clone().map(Sha256Hex::try_from);
        build.transpose().map_err(StoreError::unreadable("a digest"))
    }

    fn place(&self) -> Result<Place, StoreError> {
        let number = self.vmid.map(vmid).transpose()?;
        let by =
            self.made_by.as_deref().map(|text| parsed::<OperationId>("an operation", text)).transpose()?;
        let half = || StoreError::Unreadable {
            what: "a guest's place",
            source: "made, but not by whom or where".into(),
        };
        match self.place.as_str() {
            "nowhere" => Ok(match self.gone_by.as_deref() {
                Some(by) => Place::Gone { by: parsed("an operation", by)? },
                None => Place::Nowhere,
            }),
            "making" => Ok(Place::Making { by: by.ok_or_else(half)?, vmid: number }),
            _ => {
                let volumes: std::collections::BTreeSet<VolumeId> = from_json("volumes", &self.volumes)?;
                Ok(Place::Made { vmid: number.ok_or_else(half)?, volumes, by: by.ok_or_else(half)? })
            }
        }
    }
}

pub(super) fn find(connection: &Connection, uid: GuestUid) -> Result<Option<GuestRecord>, StoreError> {
    connection
        .query_row(&format!("SELECT {COLUMNS} FROM guest WHERE uid = ?1"), [uid.to_string()], raw)
        .optional()
        .map_err(StoreError::sqlite("read a guest"))?
        .map(RawGuest::record)
        .transpose()
}

/// A provision begins: the guest is known from here on.
pub(super) fn begin_making(
    transaction: &Transaction<'_>,
    guest: &DesiredGuest,
    by: OperationId,
) -> Result<(), StoreError> {
    transaction
        .execute(
            "INSERT INTO guest (uid, name, customer, golden, place, made_by) VALUES (?1, ?2, ?3, ?4, 'making', ?5)
             ON CONFLICT (uid) DO UPDATE SET name = excluded.name, customer = excluded.customer,
                 golden = excluded.golden, place = 'making', vmid = NULL, made_by = excluded.made_by, volumes = '[]'",
            (
                guest.uid.to_string(),
                guest.name.as_str(),
                guest.customer.as_str(),
                guest.golden.as_str(),
                by.to_string(),
            ),
        )
        .map_err(StoreError::sqlite("note a guest"))?;
    Ok(())
}

/// A guest is being taken over: it is known from here on, under its number.
pub(super) fn begin_adopting(
    transaction: &Transaction<'_>,
    adopt: &Adopt,
    by: OperationId,
) -> Result<(), StoreError> {
    let guest = adopt.guest();
    transaction
        .execute(
            "INSERT INTO guest (uid, name, customer, golden, place, vmid, made_by) VALUES (?1, ?2, ?3, ?4, 'making', ?5, ?6)
             ON CONFLICT (uid) DO UPDATE SET name = excluded.name, customer = excluded.customer,
                 golden = excluded.golden, place = 'making', vmid = excluded.vmid, made_by = excluded.made_by,
                 volumes = '[]'",
            (
                guest.uid.to_string(),
                guest.name.as_str(),
                adopt.customer().as_str(),
                adopt.golden().as_str(),
                guest.vmid.number(),
                by.to_string(),
            ),
        )
        .map_err(StoreError::sqlite("note a guest"))?;
    Ok(())
}

pub(super) fn set_vmid(transaction: &Transaction<'_>, uid: GuestUid, vmid: Vmid) -> Result<(), StoreError> {
    transaction
        .execute("UPDATE guest SET vmid = ?2 WHERE uid = ?1", (uid.to_string(), vmid.number()))
        .map_err(StoreError::sqlite("note a guest's number"))?;
    Ok(())
}

pub(super) fn set_made(
    transaction: &Transaction<'_>,
    uid: GuestUid,
    volumes: &std::collections::BTreeSet<VolumeId>,
) -> Result<(), StoreError> {
    transaction
        .execute(
            "UPDATE guest SET place = 'made', volumes = ?2 WHERE uid = ?1",
            (uid.to_string(), json("volumes", volumes)?),
        )
        .map_err(StoreError::sqlite("note a guest as made"))?;
    Ok(())
}

/// A guest is under another number from now on, with the volumes that are there.
pub(super) fn moved(
    transaction: &Transaction<'_>,
    now: &SignedState,
    by: OperationId,
) -> Result<(), StoreError> {
    transaction
        .execute(
            "UPDATE guest SET vmid = ?2, volumes = ?3, made_by = ?4 WHERE uid = ?1 AND place = 'made'",
            (now.uid.to_string(), now.vmid.number(), json("volumes", &now.volumes)?, by.to_string()),
        )
        .and_then(|_| {
            transaction.execute(
                "INSERT OR IGNORE INTO used_vmid (vmid, uid) VALUES (?1, ?2)",
                (now.vmid.number(), now.uid.to_string()),
            )
        })
        .map_err(StoreError::sqlite("note a guest under another number"))?;
    Ok(())
}

/// A guest is on another image from now on.
pub(super) fn set_golden(
    transaction: &Transaction<'_>,
    uid: GuestUid,
    golden: &GoldenVersion,
) -> Result<(), StoreError> {
    transaction
        .execute("UPDATE guest SET golden = ?2 WHERE uid = ?1", (uid.to_string(), golden.as_str()))
        .map_err(StoreError::sqlite("note a guest's image"))?;
    Ok(())
}

/// A guest that was made has one volume more.
pub(super) fn add_volume(
    transaction: &Transaction<'_>,
    uid: GuestUid,
    volume: &VolumeId,
) -> Result<(), StoreError> {
    match find(transaction, uid)?.map(|record| record.place) {
        Some(Place::Made { mut volumes, .. }) => {
            volumes.insert(volume.clone());
            set_made(transaction, uid, &volumes)
        }
        _ => Err(StoreError::Unknown { what: "guest that was made", id: uid.to_string() }),
    }
}

/// Its creation was undone. It has its former place again: nowhere, or lost at the place in our records.
pub(super) fn set_back(transaction: &Transaction<'_>, provision: &Provision) -> Result<(), StoreError> {
    let Some(lost) = provision.lost() else {
        return set_nowhere(transaction, provision.guest.uid);
    };
    transaction
        .execute(
            "UPDATE guest SET place = 'made', vmid = ?2, volumes = ?3, made_by = ?4 WHERE uid = ?1",
            (
                provision.guest.uid.to_string(),
                lost.vmid.number(),
                json("volumes", &lost.volumes)?,
                lost.by.to_string(),
            ),
        )
        .map_err(StoreError::sqlite("note a guest as lost again"))?;
    Ok(())
}

/// Removes a volume from a guest that was made. A volume that it does not have counts as removed.
pub(super) fn take_volume(
    transaction: &Transaction<'_>,
    uid: GuestUid,
    volume: &VolumeId,
) -> Result<(), StoreError> {
    match find(transaction, uid)?.map(|record| record.place) {
        Some(Place::Made { mut volumes, .. }) => {
            volumes.remove(volume);
            set_made(transaction, uid, &volumes)
        }
        _ => Err(StoreError::Unknown { what: "guest that was made", id: uid.to_string() }),
    }
}

/// Its making was taken back: nothing of it is left, and its token is worth nothing.
pub(super) fn set_nowhere(transaction: &Transaction<'_>, uid: GuestUid) -> Result<(), StoreError> {
    transaction
        .execute(
            "UPDATE guest SET place = 'nowhere', vmid = NULL, volumes = '[]', token_hash = NULL, claim_hash = NULL,
                 claim_state = 'none', claim_redeemer = NULL, hello_at = NULL WHERE uid = ?1",
            [uid.to_string()],
        )
        .map_err(StoreError::sqlite("forget a guest's place"))?;
    snapshot::gone_with(transaction, uid)
}

/// It was destroyed by a signature. Its number stays used, its token is worth nothing, and it is not made again.
pub(super) fn set_gone(
    transaction: &Transaction<'_>,
    uid: GuestUid,
    by: OperationId,
) -> Result<(), StoreError> {
    set_nowhere(transaction, uid)?;
    transaction
        .execute("DELETE FROM snapshot WHERE guest = ?1", [uid.to_string()])
        .and_then(|_| {
            transaction
                .execute("UPDATE guest SET gone_by = ?2 WHERE uid = ?1", (uid.to_string(), by.to_string()))
        })
        .map_err(StoreError::sqlite("note a guest as gone"))?;
    Ok(())
}

impl Store {
    /// One guest.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn guest(&self, uid: GuestUid) -> Result<Option<GuestRecord>, StoreError> {
        let mut found = self.read(move |connection| find(connection, uid)).await?;
        if let Some(record) = &mut found {
            self.heard.freshen(record);
        }
        Ok(found)
    }

    /// Reserves a number for a guest, for ever. The same guest may reserve it again.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn reserve_vmid(&self, uid: GuestUid, vmid: Vmid) -> Result<Reserved, StoreError> {
        self.write(Part::Nothing, "reserve a VMID", move |transaction| {
            let failed = || StoreError::sqlite("reserve a VMID");
            let (uid, number) = (uid.to_string(), vmid.number());
            let anothers: i64 = transaction
                .query_row(
                    "SELECT (SELECT count(*) FROM used_vmid WHERE vmid = ?1 AND uid <> ?2)
                          + (SELECT count(*) FROM guest WHERE vmid = ?1 AND uid <> ?2)",
                    (number, &uid),
                    |row| row.get(0),
                )
                .map_err(failed())?;
            if anothers > 0 {
                return Ok(Reserved::Anothers);
            }
            transaction
                .execute("INSERT OR IGNORE INTO used_vmid (vmid, uid) VALUES (?1, ?2)", (number, &uid))
                .map_err(failed())?;
            Ok(Reserved::Yes)
        })
        .await
    }

    /// Every number that was ever reserved, with the guest it was reserved for.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn used_vmids(&self) -> Result<Vec<(Vmid, GuestUid)>, StoreError> {
        self.read(used_vmids).await
    }
}

pub(super) fn used_vmids(connection: &Connection) -> Result<Vec<(Vmid, GuestUid)>, StoreError> {
    let rows = connection
        .prepare_cached("SELECT vmid, uid FROM used_vmid ORDER BY vmid")
        .and_then(|mut select| {
            select
                .query_map([], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?)))?
                .collect::<Result<Vec<_>, _>>()
        })
        .map_err(StoreError::sqlite("read the used VMIDs"))?;
    rows.into_iter().map(|(number, uid)| Ok((vmid(number)?, parsed("a guest's uid", &uid)?))).collect()
}
