//! What was begun for the tiers that guests are promised, and since when each is promised.
//!
//! A row comes with the promise, in its transaction; it changes in the transaction that opens an operation for a point of
//! the schedule. So no point is begun twice for want of memory, and no promise made again moves what is owed already.

use std::collections::BTreeSet;

use holdfast_protocol::id::GuestUid;
use holdfast_protocol::protection::{Protection, Tier};
use jiff::Timestamp;
use rusqlite::{Connection, Transaction};

use super::StoreError;
use super::rows::{from_json, micros, parsed, time, word};
use crate::model::record::{TierRecord, Tried};
use crate::operation::{Begun, DuePoint};

const SELECT: &str = "SELECT guest, tier, since, point, times, late, last_at FROM tier";

type Raw = (String, String, i64, Option<i64>, u32, u32, Option<i64>);

fn record((guest, tier, since, point, times, late, last): Raw) -> Result<TierRecord, StoreError> {
    let tried = match (point, last) {
        (Some(point), Some(last)) => Some(Tried { point: time(point)?, times, late, last: time(last)? }),
        _ => None,
    };
    Ok(TierRecord {
        guest: parsed("a guest", &guest)?,
        tier: from_json("a tier", &format!("\"{tier}\""))?,
        since: time(since)?,
        tried,
    })
}

fn select(
    connection: &Connection,
    rest: &str,
    params: impl rusqlite::Params,
) -> Result<Vec<TierRecord>, StoreError> {
    let read = |row: &rusqlite::Row<'_>| {
        Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?, row.get(6)?))
    };
    let rows: Vec<Raw> = connection
        .prepare_cached(&format!("{SELECT} {rest}"))
        .and_then(|mut select| select.query_map(params, read)?.collect())
        .map_err(StoreError::sqlite("read what was begun for tiers"))?;
    let mut all = rows.into_iter().map(record).collect::<Result<Vec<_>, _>>()?;
    // The text of a tier does not sort as the tier does.
    all.sort_by_key(|record| (record.guest, record.tier));
    Ok(all)
}

/// All of them, sorted by guest and tier.
pub(super) fn all(connection: &Connection) -> Result<Vec<TierRecord>, StoreError> {
    select(connection, "", ())
}

/// One guest's.
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

/// A promise was put in another's place: tiers that are new are owed from now on, those that were there from when they were.
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
