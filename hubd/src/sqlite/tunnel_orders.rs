//! The newest order that gave each tunnel its token.
//!
//! In: a submitted job and the tunnel that its submitter names. Out: its text, for operators who carry the token over to
//! a host that replaces this one. It outlives the job, which is removed after a while. Deliberately absent: what the text
//! holds; the hub can read neither the token nor its copies.

use holdfast_protocol::id::{JobId, OperatorName, TunnelName};
use holdfast_protocol::operator::TunnelOrder;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::columns::{Id, Text, Time};
use super::writer::Tx;
use crate::store::{By, SubmitJob};

/// An agent has eight tunnels; a few names may be of earlier ones. The oldest of more is removed.
const KEPT_MAX: u32 = 16;

pub(super) fn put(
    tx: &Tx<'_>,
    host: i64,
    by: &By,
    tunnel: &TunnelName,
    leave: &SubmitJob,
) -> rusqlite::Result<()> {
    let sql = "INSERT INTO tunnel_orders (host, tunnel, id, blob, operator, submitted_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
               ON CONFLICT (host, tunnel) DO UPDATE SET id = excluded.id, blob = excluded.blob,
                   operator = excluded.operator, submitted_at = excluded.submitted_at";
    tx.prepare_cached(sql)?.execute(params![
        host,
        tunnel.as_str(),
        Id(leave.id.uuid()),
        leave.blob,
        by.operator.as_str(),
        Time(by.at)
    ])?;
    let sql = "DELETE FROM tunnel_orders WHERE host = ?1 AND tunnel NOT IN
               (SELECT tunnel FROM tunnel_orders WHERE host = ?1 ORDER BY submitted_at DESC, tunnel LIMIT ?2)";
    tx.prepare_cached(sql)?.execute(params![host, KEPT_MAX])?;
    Ok(())
}

pub(super) fn newest(
    connection: &Connection,
    host: i64,
    tunnel: &TunnelName,
) -> rusqlite::Result<Option<TunnelOrder>> {
    let sql = "SELECT id, operator, submitted_at, blob FROM tunnel_orders WHERE host = ?1 AND tunnel = ?2";
    let read = |row: &Row<'_>| {
        Ok(TunnelOrder {
            job: JobId::new(row.get::<_, Id>("id")?.0),
            by: row.get::<_, Text<OperatorName>>("operator")?.0,
            submitted_at: row.get::<_, Time>("submitted_at")?.0,
            blob: row.get("blob")?,
        })
    };
    connection.prepare_cached(sql)?.query_row(params![host, tunnel.as_str()], read).optional()
}
