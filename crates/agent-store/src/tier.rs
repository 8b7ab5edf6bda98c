//! Attempts for tiers, and the start of each promise.
//!
//! A row is written in the transaction of its promise. It changes in the transaction that opens an operation for a
//! point of the schedule. So no point is started twice because it was not recorded, and repeating a promise does not
//! move a due time.

use std::collections::BTreeSet;

use holdfast_protocol::id::GuestUid;
use holdfast_protocol::protection::{Consistency, Protection, Schedule, Tier};
use jiff::{SignedDuration, Timestamp};
use rusqlite::{Connection, OptionalExtension, Transaction};
use serde::{Deserialize, Serialize};

use super::StoreError;
use super::columns::{from_json, json, micros, parsed, time, word};
use agent_core::model::records::{EarlierSchedule, PointAttempt, TierRecord};
use agent_core::operation::{Begun, DuePoint};
use agent_core::plan::schedule::promised as tiers_of;

const SELECT: &str =
    "SELECT guest, tier, since, point, times, late, last_at, took, earlier, earlier_until FROM tier";

/// The promise before a document raised it, as it is kept.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Earlier {
    schedule: Schedule,
    consistency: Consistency,
}

struct Raw {
    words: (String, String),
    since: i64,
    tried: (Option<i64>, u32, u32, Option<i64>),
    took: Option<i64>,
    earlier: (Option<String>, Option<i64>),
}

fn raw(row: &rusqlite::Row<'_>) -> Result<Raw, rusqlite::Error> {
    Ok(Raw {
        words: (row.get(0)?, row.get(1)?),
        since: row.get(2)?,
        tried: (row.get(3)?, row.get(4)?, row.get(5)?, row.get(6)?),
        took: row.get(7)?,
        earlier: (row.get(8)?, row.get(9)?),
    })
}

impl Raw {
    fn record(self) -> Result<TierRecord, StoreError> {
        let (guest, tier) = self.words;
        let tried = match self.tried {
            (Some(point), times, late, Some(last)) => {
                Some(PointAttempt { point: time(point)?, times, late, last: time(last)? })
            }
            _ => None,
        };
        let earlier = match self.earlier {
            (Some(text), Some(until)) => {
                let Earlier { schedule, consistency } = from_json("an earlier schedule", &text)?;
                Some(Box::new(EarlierSchedule { schedule, consistency, until: time(until)? }))
            }
            _ => None,
        };
        Ok(TierRecord {
            guest: parsed("a guest", &guest)?,
            tier: from_json("a tier", &format!("\"{tier}\""))?,
            since: time(self.since)?,
            tried,
            took: self.took.map(SignedDuration::from_micros),
            earlier,
        })
    }
}

fn select(
    connection: &Connection,
    rest: &str,
    params: impl rusqlite::Params,
) -> Result<Vec<TierRecord>, StoreError> {
    let rows: Vec<Raw> = connection
        .prepare_cached(&format!("{SELECT} {rest}"))
        .and_then(|mut select| select.query_map(params, raw)?.collect())
        .map_err(StoreError::sqlite("read what was begun for tiers"))?;
    let mut all = rows.into_iter().map(Raw::record).collect::<Result<Vec<_>, _>>()?;
    // The text of a tier does not sort as the tier does.
    all.sort_by_key(|record| (record.guest, record.tier));
    Ok(all)
}

/// All of them, sorted by guest and tier.
pub(super) fn all(connection: &Connection) -> Result<Vec<TierRecord>, StoreError> {
    select(connection, "", ())
}

pub(super) fn of(connection: &Connection, guest: GuestUid) -> Result<Vec<TierRecord>, StoreError> {
    select(connection, "WHERE guest = ?1", [guest.to_string()])
}

fn names(promise: Option<&Protection>) -> BTreeSet<Tier> {
    let Some(Protection { tiers, .. }) = promise else { return BTreeSet::new() };
    let there = [
        (Tier::Snapshot, tiers.snapshot.is_some()),
        (Tier::Local, tiers.local.is_some()),
        (Tier::OffSite, tiers.off_site.is_some()),
    ];
    there.into_iter().filter(|(_, there)| *there).map(|(tier, _)| tier).collect()
}

/// A promise replaced another one: new tiers are due from now on, existing tiers from their earlier start.
pub(super) fn promised(
    transaction: &Transaction<'_>,
    guest: GuestUid,
    (from, to): (Option<&Protection>, &Protection),
    at: Timestamp,
) -> Result<(), StoreError> {
    let (before, after) = (names(from), names(Some(to)));
    for tier in before.difference(&after) {
        transaction
            .execute(
                "DELETE FROM tier WHERE guest = ?1 AND tier = ?2",
                (guest.to_string(), word("a tier", tier)?),
            )
            .map_err(StoreError::sqlite("forget a tier"))?;
    }
    for tier in after.difference(&before) {
        transaction
            .execute(
                "INSERT OR REPLACE INTO tier (guest, tier, since) VALUES (?1, ?2, ?3)",
                (guest.to_string(), word("a tier", tier)?, micros(at)),
            )
            .map_err(StoreError::sqlite("note a tier"))?;
    }
    Ok(())
}

/// A document raised a promise: the earlier due state of each tier is kept with it. An earlier raise that produced no
/// backup yet keeps its own. So a series of raises does not lose what was due before the first of them.
pub(super) fn raised(
    transaction: &Transaction<'_>,
    guest: GuestUid,
    (from, to): (Option<&Protection>, &Protection),
    at: Timestamp,
) -> Result<(), StoreError> {
    let Some(from) = from else { return Ok(()) };
    let new = tiers_of(to);
    for old in tiers_of(from) {
        let same = |new: &&agent_core::plan::schedule::Promised<'_>| {
            new.tier == old.tier && new.schedule == old.schedule && new.consistency == old.consistency
        };
        if new.iter().any(|new| same(&new)) || waits_for_backup(transaction, guest, old.tier)? {
            continue;
        }
        let earlier = Earlier { schedule: old.schedule.clone(), consistency: old.consistency };
        transaction
            .execute(
                "UPDATE tier SET earlier = ?3, earlier_until = ?4 WHERE guest = ?1 AND tier = ?2",
                (
                    guest.to_string(),
                    word("a tier", &old.tier)?,
                    json("an earlier schedule", &earlier)?,
                    micros(at),
                ),
            )
            .map_err(StoreError::sqlite("keep what was due before"))?;
    }
    Ok(())
}

/// Whether a tier was raised before, and nothing was taken for it since.
fn waits_for_backup(transaction: &Transaction<'_>, guest: GuestUid, tier: Tier) -> Result<bool, StoreError> {
    let waits = "SELECT 1 FROM tier AS t WHERE guest = ?1 AND tier = ?2 AND earlier_until IS NOT NULL AND NOT EXISTS
                 (SELECT 1 FROM backup AS b WHERE b.guest = t.guest AND b.tier = t.tier AND b.taken_at >= t.earlier_until)";
    let found: Option<i64> = transaction
        .query_row(waits, (guest.to_string(), word("a tier", &tier)?), |row| row.get(0))
        .optional()
        .map_err(StoreError::sqlite("look for an earlier schedule"))?;
    Ok(found.is_some())
}

/// A signature changed a promise: nothing of before is due any more.
pub(super) fn signed(transaction: &Transaction<'_>, guest: GuestUid) -> Result<(), StoreError> {
    transaction
        .execute("UPDATE tier SET earlier = NULL, earlier_until = NULL WHERE guest = ?1", [guest.to_string()])
        .map_err(StoreError::sqlite("forget what was due before"))?;
    Ok(())
}

/// A backup of a tier succeeded: records how long it took.
pub(super) fn took(
    transaction: &Transaction<'_>,
    (guest, tier): (GuestUid, Tier),
    serial: i64,
) -> Result<(), StoreError> {
    transaction
        .execute(
            "UPDATE tier SET took = (SELECT max(ended_at - opened_at, 0) FROM operation WHERE serial = ?3)
             WHERE guest = ?1 AND tier = ?2",
            (guest.to_string(), word("a tier", &tier)?, serial),
        )
        .map_err(StoreError::sqlite("note how long a backup took"))?;
    Ok(())
}

/// Something was begun for a point.
pub(super) fn begun(
    transaction: &Transaction<'_>,
    guest: GuestUid,
    due: &DuePoint,
) -> Result<(), StoreError> {
    let late = match due.begun {
        Begun::InTime => 0,
        Begun::Late => 1,
    };
    transaction
        .execute(
            "INSERT INTO tier (guest, tier, since, point, times, late, last_at) VALUES (?1, ?2, ?3, ?3, 1, ?4, ?5)
             ON CONFLICT (guest, tier) DO UPDATE SET
                 times = CASE WHEN point IS excluded.point THEN times + 1 ELSE 1 END,
                 late = CASE WHEN point IS excluded.point THEN late + excluded.late ELSE excluded.late END,
                 point = excluded.point, last_at = excluded.last_at",
            (guest.to_string(), word("a tier", &due.tier)?, micros(due.point), late, micros(due.at)),
        )
        .map_err(StoreError::sqlite("note what was begun for a tier"))?;
    Ok(())
}
