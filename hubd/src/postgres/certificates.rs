//! Hosts and their certificates, written in one transaction.

use holdfast_protocol::id::{HostId, HostName};
use jiff::Timestamp;

use super::columns::{Id, Text, Time};
use super::image_approvals;
use super::sql::{self, Connection, OptionalExtension as _, params};
use super::writer::Tx;
use crate::authority::Issued;
use crate::store::{CertificateRecord, POLL_WITHOUT_DOCUMENT_S};

/// Whether a host that is not revoked has this name.
pub(super) fn name_is_taken(tx: &Tx<'_>, name: &HostName) -> sql::Result<bool> {
    tx.prepare_cached("SELECT 1 FROM hosts WHERE name = $1 AND status <> 'revoked'")?.exists([name.as_str()])
}

/// Whether another host has, or ever had, a certificate of this key. The holder of that host's key would hold this
/// host's key, too.
pub(super) fn key_is_anothers(tx: &Tx<'_>, key: [u8; 32], host: Option<i64>) -> sql::Result<bool> {
    tx.prepare_cached("SELECT 1 FROM certificates WHERE spki = $1 AND host IS DISTINCT FROM $2")?
        .exists(params![key, host])
}

/// The host whose latest key this is: the key of a certificate that it uses, or was given and has not used yet. A revoked
/// or frozen host is none: its key may have been stolen.
pub(super) fn holder(connection: &Connection, key: [u8; 32]) -> sql::Result<Option<KeyHolder>> {
    let sql = "SELECT number, id, name, issued_generation FROM certificates JOIN hosts ON number = host
               WHERE spki = $1 AND status = 'active' AND generation >= used_generation
               ORDER BY generation DESC LIMIT 1";
    connection
        .prepare_cached(sql)?
        .query_row(params![key], |row| {
            Ok(KeyHolder {
                number: row.get("number")?,
                id: HostId::new(row.get::<_, Id>("id")?.0),
                name: row.get::<_, Text<_>>("name")?.0,
                issued: row.get("issued_generation")?,
            })
        })
        .optional()
}

/// A host that is known by its key.
pub(super) struct KeyHolder {
    pub number: i64,
    pub id: HostId,
    pub name: HostName,
    /// The newest certificate issued.
    pub issued: u32,
}

/// Writes a new host; its first certificate follows in the same transaction.
pub(super) fn insert_host(tx: &Tx<'_>, id: HostId, name: &HostName, now: Timestamp) -> sql::Result<i64> {
    let sql = "INSERT INTO hosts (id, name, enrolled_at, status, issued_generation, used_generation,
                   certificate_ends_at, liveness, poll_interval_s, wanted, held)
               VALUES ($1, $2, $3, 'active', 0, 0, 0, 'new', $4, 0, 0) RETURNING number";
    let row = params![Id(id.uuid()), name.as_str(), Time(now), POLL_WITHOUT_DOCUMENT_S];
    let number = tx.prepare_cached(sql)?.query_row(row, |row| row.get(0))?;
    image_approvals::queue_for_host(tx, number, now)?;
    Ok(number)
}

/// Writes a host's next certificate.
pub(super) fn insert_certificate(
    tx: &Tx<'_>,
    host: i64,
    generation: u32,
    key: [u8; 32],
    issued: &Issued,
) -> sql::Result<()> {
    let sql = "INSERT INTO certificates (host, generation, spki, pem, not_before, not_after)
               VALUES ($1, $2, $3, $4, $5, $6)";
    let (from, to) = (Time(issued.not_before), Time(issued.not_after));
    tx.prepare_cached(sql)?.execute(params![host, generation, key, issued.pem, from, to])?;
    let sql = "UPDATE hosts SET issued_generation = $2, certificate_ends_at = $3 WHERE number = $1";
    tx.prepare_cached(sql)?.execute(params![host, generation, to])?;
    Ok(())
}

/// A host's certificate of this generation, with the hash of its key.
pub(super) fn certificate(
    tx: &Tx<'_>,
    host: i64,
    generation: u32,
) -> sql::Result<Option<(CertificateRecord, [u8; 32])>> {
    let sql = "SELECT id, name, generation, pem, not_before, not_after, spki FROM certificates
               JOIN hosts ON number = host WHERE host = $1 AND generation = $2";
    tx.prepare_cached(sql)?
        .query_row(params![host, generation], |row| {
            let record = CertificateRecord {
                host: HostId::new(row.get::<_, Id>("id")?.0),
                name: row.get::<_, Text<_>>("name")?.0,
                generation: row.get("generation")?,
                pem: row.get("pem")?,
                not_before: row.get::<_, Time>("not_before")?.0,
                not_after: row.get::<_, Time>("not_after")?.0,
            };
            Ok((record, row.get("spki")?))
        })
        .optional()
}
