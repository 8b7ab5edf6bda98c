//! Audit records about guests, bounded by guest and by host.

use std::collections::BTreeSet;

use async_trait::async_trait;
use holdfast_protocol::guest_audit::{GuestAuditKept, GuestAuditView};
use holdfast_protocol::id::GuestUid;
use jiff::Timestamp;

use super::alerts::Json;
use super::checkin::admit;
use super::columns::{Id, Time};
use super::host_row::find;
use super::sql::{self, OptionalExtension as _, params};
use super::writer::Tx;
use super::{Failed, Postgres};
use crate::domain::host::HostRef;
use crate::domain::identity::IdentityError;
use crate::store::{AuditDelivery, GuestAudits, RECORDS_PER_GUEST, RECORDS_PER_HOST, StoreError, WriteError};

/// How far the records of a host go; 0 without any.
fn through(tx: &Tx<'_>, host: i64) -> sql::Result<u64> {
    let sql = "SELECT through FROM guest_audit_ends WHERE host = $1";
    let found: Option<i64> = tx.prepare_cached(sql)?.query_row([host], |row| row.get(0)).optional()?;
    Ok(found.and_then(|through| u64::try_from(through).ok()).unwrap_or_default())
}

fn put(tx: &Tx<'_>, host: i64, delivery: &AuditDelivery) -> Result<GuestAuditKept, Failed<IdentityError>> {
    let mut guests = BTreeSet::new();
    for (guest, record) in &delivery.records {
        let sql = "INSERT INTO guest_audit (host, guest, number, chain, received_at, record)
                   VALUES ($1, $2, $3, $4, $5, $6)
                   ON CONFLICT (host, guest, number, chain) DO UPDATE SET ended_at = NULL";
        tx.prepare_cached(sql)?.execute(params![
            host,
            Id(guest.uuid()),
            record.line.number,
            record.line.chain,
            Time(delivery.at),
            serde_json::to_string(record)?
        ])?;
        guests.insert(*guest);
    }
    for guest in guests {
        thin_guest(tx, host, guest)?;
    }
    if let Some(through) = delivery.through {
        let sql = "INSERT INTO guest_audit_ends (host, through) VALUES ($1, $2)
                   ON CONFLICT (host) DO UPDATE SET through = excluded.through";
        tx.prepare_cached(sql)?.execute(params![host, i64::try_from(through).unwrap_or(i64::MAX)])?;
        thin_host(tx, host)?;
    }
    Ok(GuestAuditKept { through: through(tx, host)? })
}

/// Removes what is more than is kept of a guest.
fn thin_guest(tx: &Tx<'_>, host: i64, guest: GuestUid) -> sql::Result<()> {
    let sql = "DELETE FROM guest_audit WHERE host = $1 AND guest = $2 AND (number, chain) IN (
                   SELECT number, chain FROM guest_audit WHERE host = $1 AND guest = $2
                   ORDER BY received_at DESC, number DESC OFFSET $3)";
    tx.prepare_cached(sql)?.execute(params![host, Id(guest.uuid()), RECORDS_PER_GUEST])?;
    Ok(())
}

/// Removes what is more than is kept of a host.
fn thin_host(tx: &Tx<'_>, host: i64) -> sql::Result<()> {
    let sql = "DELETE FROM guest_audit WHERE host = $1 AND (guest, number, chain) IN (
                   SELECT guest, number, chain FROM guest_audit WHERE host = $1
                   ORDER BY received_at DESC, number DESC OFFSET $2)";
    tx.prepare_cached(sql)?.execute(params![host, RECORDS_PER_HOST])?;
    Ok(())
}

/// The next epoch has a chain of its own.
pub(super) fn end_epoch(tx: &Tx<'_>, host: i64, at: Timestamp) -> sql::Result<()> {
    let sql = "UPDATE guest_audit SET ended_at = $2 WHERE host = $1 AND ended_at IS NULL";
    tx.prepare_cached(sql)?.execute(params![host, Time(at)])?;
    tx.prepare_cached("DELETE FROM guest_audit_ends WHERE host = $1")?.execute([host])?;
    Ok(())
}

#[async_trait]
impl GuestAudits for Postgres {
    async fn put_guest_audit(
        &self,
        delivery: AuditDelivery,
    ) -> Result<GuestAuditKept, WriteError<IdentityError>> {
        // A refusal may freeze the host, and that must stay: the answer of the transaction is itself a result.
        let answer = self.write("keep audit records", move |tx| {
            match admit(tx, delivery.presented, delivery.at, delivery.correlation)? {
                Ok(admitted) => put(tx, admitted.number, &delivery).map(Ok),
                Err(error) => Ok(Err(error)),
            }
        });
        answer.await?.map_err(WriteError::Refused)
    }

    async fn guest_audit(
        &self,
        host: HostRef,
        guest: GuestUid,
    ) -> Result<Option<GuestAuditView>, StoreError> {
        self.read("read audit records", move |connection| {
            let Some(record) = find(connection, &host)? else { return Ok(None) };
            let sql = "SELECT record, ended_at FROM guest_audit WHERE host = $1 AND guest = $2
                       ORDER BY received_at, number, chain";
            let mut view = GuestAuditView { records: Vec::new(), earlier: Vec::new() };
            let select = connection.prepare_cached(sql)?;
            let rows = select.query(params![record.number, Id(guest.uuid())])?;
            for row in &rows {
                let row = sql::Row(row);
                let of_epoch = match row.get::<_, Option<Time>>(1)? {
                    None => &mut view.records,
                    Some(_) => &mut view.earlier,
                };
                of_epoch.push(row.get::<_, Json<_>>(0)?.0);
            }
            Ok(Some(view))
        })
        .await
    }
}
