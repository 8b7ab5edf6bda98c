//! Daily quotas of a guest, and their use.
//!
//! Counted by the hour, in the transaction that writes the request, so that a request which was cancelled or refused later
//! counts as well: each one costs rows here and calls to Proxmox. An idempotent repeat is no new request.

use std::collections::BTreeMap;

use holdfast_protocol::id::GuestUid;
use holdfast_protocol::operation::OperationKind;
use jiff::Timestamp;
use rusqlite::{Connection, Transaction};

use super::StoreError;
use super::columns::{micros, parsed};
use super::request::{AskError, NewRequest};
use agent_core::model::limits;
use agent_core::model::request::{Ask, BackupsSpent};

const HOUR_S: i64 = 3_600;

/// Hours that count: the present one and the twenty-four before it.
const HOURS: i64 = 24;

fn hour(at: Timestamp) -> i64 {
    at.as_second().div_euclid(HOUR_S)
}

/// How often this guest asked for this within a day. A request dated ahead was made under a wrong clock and is left
/// out: it would count until that time comes.
pub(super) fn within_a_day(
    connection: &Connection,
    guest: GuestUid,
    kind: OperationKind,
    now: Timestamp,
) -> Result<u32, StoreError> {
    let until = hour(now.checked_add(limits::CLOCKS_APART).unwrap_or(Timestamp::MAX));
    connection
        .prepare_cached(
            "SELECT coalesce(sum(count), 0) FROM asked WHERE guest = ?1 AND kind = ?2 AND hour BETWEEN ?3 AND ?4",
        )
        .and_then(|mut select| {
            select.query_row((guest.to_string(), kind.as_str(), hour(now) - HOURS, until), |row| row.get(0))
        })
        .map_err(StoreError::sqlite("count what a guest asked for"))
}

/// Counts one more, and forgets hours that are over. A guest has at most one row for each kind and hour.
pub(super) fn count(
    transaction: &Transaction<'_>,
    guest: GuestUid,
    kind: OperationKind,
    now: Timestamp,
) -> Result<(), StoreError> {
    let failed = || StoreError::sqlite("count what a guest asks for");
    let guest = guest.to_string();
    transaction
        .execute(
            "DELETE FROM asked WHERE guest = ?1 AND hour NOT BETWEEN ?2 AND ?3",
            (&guest, hour(now) - HOURS, hour(now) + 1),
        )
        .map_err(failed())?;
    transaction
        .execute(
            "INSERT INTO asked (guest, kind, hour, count) VALUES (?1, ?2, ?3, 1)
             ON CONFLICT (guest, kind, hour) DO UPDATE SET count = count + 1",
            (&guest, kind.as_str(), hour(now)),
        )
        .map_err(failed())?;
    Ok(())
}

/// How many backups that were not due each guest requested lately: those that wait, and those that were begun, with any
/// outcome. A request that was cancelled before it began does not count.
pub(super) fn asked_backups(
    connection: &Connection,
    now: Timestamp,
) -> Result<BTreeMap<GuestUid, u32>, StoreError> {
    // A request dated ahead of now was made under a wrong clock: it would count until that time comes.
    let (since, until) = (
        micros(now).saturating_sub(limits::ASKED_BACKUPS_S.saturating_mul(1_000_000)),
        micros(now.checked_add(limits::CLOCKS_APART).unwrap_or(Timestamp::MAX)),
    );
    let rows: Vec<(String, u32)> = connection
        .prepare_cached(
            "SELECT r.guest, count(*) FROM request AS r LEFT JOIN operation AS o ON o.id = r.id
             WHERE r.kind IN ('backup', 'quiesced_backup') AND r.state IN ('queued', 'opened') AND r.asked_at BETWEEN ?1 AND ?2
             AND json_extract(r.body, '$.ordered') IS NULL
             AND coalesce(json_extract(o.spec, '$.quiesced_backup.backup.due'), json_extract(o.spec, '$.backup.due')) IS NULL
             GROUP BY r.guest",
        )
        .and_then(|mut select| select.query_map([since, until], |row| Ok((row.get(0)?, row.get(1)?)))?.collect())
        .map_err(StoreError::sqlite("count the backups that were asked for"))?;
    rows.into_iter().map(|(guest, count)| Ok((parsed("a guest", &guest)?, count))).collect()
}

/// Whether the guest may ask for more of it today. A window may be for a backup that is due: that is judged when the
/// request is opened.
pub(super) fn judge(connection: &Connection, new: &NewRequest) -> Result<(), AskError> {
    let kind = new.ask.kind();
    if within_a_day(connection, new.guest, kind, new.at)? >= limits::asked_per_day(kind) {
        return Err(AskError::Daily(kind));
    }
    if !matches!(new.ask, Ask::Backup { .. }) {
        return Ok(());
    }
    let asked = asked_backups(connection, new.at)?.get(&new.guest).copied().unwrap_or_default();
    if asked < limits::ASKED_BACKUPS_PER_DAY { Ok(()) } else { Err(AskError::Backups(BackupsSpent)) }
}

#[cfg(test)]
mod tests;
