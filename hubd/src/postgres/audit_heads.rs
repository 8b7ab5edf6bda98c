//! Kept ends of audit chains.

use async_trait::async_trait;
use holdfast_protocol::operator::{AuditBreak, AuditEvidence, KeptHead};
use holdfast_protocol::report::AuditHead;
use jiff::Timestamp;

use super::Postgres;
use super::authenticated_host::AuthenticatedHost;
use super::columns::Time;
use super::events::emit;
use super::host_row::find;
use super::sql::{self, Connection, OptionalExtension as _, Row, params};
use super::writer::Tx;
use crate::domain::audit_heads::{BREAKS_MAX, HEADS_MAX, HeadVerdict, judge, superfluous};
use crate::domain::event::{EventKind, NewEvent};
use crate::domain::host::HostRef;
use crate::store::{AuditHeads, Checkin, StoreError};

fn number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn count(row: &Row<'_>, place: usize) -> sql::Result<u64> {
    Ok(u64::try_from(row.get::<_, i64>(place)?).unwrap_or_default())
}

fn read(row: &Row<'_>) -> sql::Result<KeptHead> {
    Ok(KeptHead { number: count(row, 0)?, chain: row.get(1)?, at: row.get::<_, Time>(2)?.0 })
}

/// Of the present epoch, the newest first.
fn heads(connection: &Connection, host: i64) -> sql::Result<Vec<KeptHead>> {
    let sql = "SELECT number, chain, at FROM audit_heads
               WHERE host = $1 AND ended_at IS NULL ORDER BY number DESC";
    connection.prepare_cached(sql)?.query_map([host], read)?.collect()
}

fn breaks(connection: &Connection, host: i64) -> sql::Result<Vec<AuditBreak>> {
    let sql = "SELECT at, kept_number, kept_chain, found_number, found_chain FROM audit_breaks
               WHERE host = $1 AND ended_at IS NULL ORDER BY at";
    let read = |row: &Row<'_>| {
        Ok(AuditBreak {
            at: row.get::<_, Time>(0)?.0,
            kept: AuditHead { number: count(row, 1)?, chain: row.get(2)? },
            found: AuditHead { number: count(row, 3)?, chain: row.get(4)? },
        })
    };
    connection.prepare_cached(sql)?.query_map([host], read)?.collect()
}

/// Takes in the end that a host reported.
pub(super) fn keep(tx: &Tx<'_>, checkin: &Checkin, host: &AuthenticatedHost) -> sql::Result<()> {
    let Some(found) = &checkin.summary.audit else { return Ok(()) };
    let sql = "SELECT number, chain, at FROM audit_heads
               WHERE host = $1 AND ended_at IS NULL ORDER BY number DESC LIMIT 1";
    let newest = tx.prepare_cached(sql)?.query_row([host.number], read).optional()?;
    let sql =
        "SELECT number, chain, at FROM audit_heads WHERE host = $1 AND number = $2 AND ended_at IS NULL";
    let same =
        tx.prepare_cached(sql)?.query_row(params![host.number, number(found.number)], read).optional()?;
    match judge(newest.as_ref(), same.as_ref(), found) {
        HeadVerdict::Known => Ok(()),
        HeadVerdict::New => {
            let sql = "INSERT INTO audit_heads (host, number, chain, at) VALUES ($1, $2, $3, $4)";
            let row = params![host.number, number(found.number), found.chain, Time(checkin.at)];
            tx.prepare_cached(sql)?.execute(row)?;
            thin(tx, host.number, checkin.at)
        }
        HeadVerdict::Break => match same.filter(|same| same.chain != found.chain).or(newest) {
            Some(kept) => write_break(tx, checkin, host, (&kept, found)),
            None => Ok(()),
        },
    }
}

/// Removes what is not kept any longer, once there are more than are kept at most.
fn thin(tx: &Tx<'_>, host: i64, now: Timestamp) -> sql::Result<()> {
    let sql = "SELECT count(*) FROM audit_heads WHERE host = $1 AND ended_at IS NULL";
    let kept: u32 = tx.prepare_cached(sql)?.query_row([host], |row| row.get(0))?;
    if usize::try_from(kept).is_ok_and(|kept| kept <= HEADS_MAX) {
        return Ok(());
    }
    for gone in superfluous(&heads(tx, host)?, now) {
        let sql = "DELETE FROM audit_heads WHERE host = $1 AND number = $2 AND ended_at IS NULL";
        tx.prepare_cached(sql)?.execute(params![host, number(gone)])?;
    }
    Ok(())
}

fn write_break(
    tx: &Tx<'_>,
    checkin: &Checkin,
    host: &AuthenticatedHost,
    (kept, found): (&KeptHead, &AuditHead),
) -> sql::Result<()> {
    let sql =
        "SELECT count(*), coalesce(bool_or(found_number = $2 AND found_chain = $3), false) FROM audit_breaks
               WHERE host = $1 AND ended_at IS NULL";
    let key = params![host.number, number(found.number), found.chain];
    let (count, is_known): (u32, bool) =
        tx.prepare_cached(sql)?.query_row(key, |row| Ok((row.get(0)?, row.get(1)?)))?;
    if is_known || count >= BREAKS_MAX {
        return Ok(());
    }
    let sql = "INSERT INTO audit_breaks (host, at, kept_number, kept_chain, found_number, found_chain)
               VALUES ($1, $2, $3, $4, $5, $6)";
    let (kept_number, found_number) = (number(kept.number), number(found.number));
    tx.prepare_cached(sql)?.execute(params![
        host.number,
        Time(checkin.at),
        kept_number,
        kept.chain,
        found_number,
        found.chain
    ])?;
    let message = format!(
        "the audit of {} ends at line {found_number}, and line {kept_number} was seen before with another history",
        host.name
    );
    let event = NewEvent {
        at: checkin.at,
        kind: EventKind::AuditChainBroken,
        host: Some(checkin.presented.host),
        actor: None,
        correlation: checkin.correlation,
        message,
    };
    emit(tx, &event)
}

/// The next epoch has a chain of its own.
pub(super) fn end_epoch(tx: &Tx<'_>, host: i64, at: Timestamp) -> sql::Result<()> {
    for table in ["audit_heads", "audit_breaks"] {
        let sql = format!("UPDATE {table} SET ended_at = $2 WHERE host = $1 AND ended_at IS NULL");
        tx.prepare_cached(&sql)?.execute(params![host, Time(at)])?;
    }
    Ok(())
}

#[async_trait]
impl AuditHeads for Postgres {
    async fn audit_evidence(&self, host: HostRef) -> Result<Option<AuditEvidence>, StoreError> {
        self.read("read the ends of an audit", move |connection| {
            let Some(record) = find(connection, &host)? else { return Ok(None) };
            let (heads, breaks) = (heads(connection, record.number)?, breaks(connection, record.number)?);
            Ok(Some(AuditEvidence { heads, breaks }))
        })
        .await
    }
}
