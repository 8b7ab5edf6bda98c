//! What is stored of the hosts of a batch.
//!
//! One query reads all rows, and a second one the ends of audits, where check-ins have some.

use holdfast_protocol::operator::KeptHead;
use uuid::Uuid;

use super::super::checkin::{HostRow, look, look_columns};
use super::super::columns::Time;
use super::super::sql::{self, Connection, Error, Row, Value};
use super::super::waiting::{nothing_waits, waits_for_host};
use super::Report;

/// What is stored of the host of one check-in.
pub(super) struct StoredHost {
    /// Of the check-in in its batch.
    pub place: usize,
    pub row: HostRow,
    /// Names this state of the row: another one has another.
    pub version: String,
    pub waits: Waits,
    pub labels: Labels,
    pub heads: StoredHeads,
}

/// Whether something waits for the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waits {
    Nothing,
    Something,
}

/// How the guests' labels of a check-in compare to the stored ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Labels {
    /// The same, or the check-in has none.
    Same,
    Others,
}

/// Ends of the host's audit, where the check-in has one.
#[derive(Clone, Debug, Default)]
pub(super) struct StoredHeads {
    pub newest: Option<KeptHead>,
    /// The one of the number that the check-in has.
    pub same: Option<KeptHead>,
    pub count: u32,
}

/// Whether rows are locked as they are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Locking {
    /// They are written with a look at their version.
    No,
    /// In the order of their ids. A row that another transaction holds is passed over.
    InOrder,
}

/// The columns of `look`, then those of [`stored_host`].
macro_rules! stored {
    () => {
        concat!(
            "SELECT ",
            look_columns!(),
            ", arrived.place, hosts.xmin::text, CASE WHEN ",
            nothing_waits!(),
            " THEN false ELSE ",
            waits_for_host!(),
            " END,
            arrived.labels IS NULL OR coalesce((SELECT reports.guest_labels = arrived.labels FROM reports
                WHERE reports.host = hosts.number), false)
            FROM unnest($1::bytea[], $2::text[]) WITH ORDINALITY AS arrived (id, labels, place)
            JOIN hosts ON hosts.id = arrived.id
            ORDER BY hosts.id"
        )
    };
}

const STORED: &str = stored!();

/// Ends of audits of some hosts. They change with the row of their host alone, so its version covers them.
const HEADS: &str = "SELECT asked.place, newest.number, newest.chain, newest.at, same.number, same.chain, same.at,
        (SELECT count(*) FROM audit_heads AS kept WHERE kept.host = asked.host AND kept.ended_at IS NULL)
    FROM unnest($1::bigint[], $2::bigint[]) WITH ORDINALITY AS asked (host, audit, place)
    LEFT JOIN LATERAL (SELECT kept.number, kept.chain, kept.at FROM audit_heads AS kept
        WHERE kept.host = asked.host AND kept.ended_at IS NULL ORDER BY kept.number DESC LIMIT 1) AS newest ON true
    LEFT JOIN LATERAL (SELECT kept.number, kept.chain, kept.at FROM audit_heads AS kept
        WHERE kept.host = asked.host AND kept.number = asked.audit AND kept.ended_at IS NULL LIMIT 1) AS same ON true";

const STORED_LOCKED: &str = concat!(stored!(), " FOR NO KEY UPDATE OF hosts SKIP LOCKED");

/// What is stored, in the order of the batch. A host that is not there, or whose row is passed over, is left out.
pub(super) fn stored(
    connection: &Connection,
    batch: &[Report],
    locking: Locking,
) -> sql::Result<Vec<StoredHost>> {
    let ids: Vec<Uuid> = batch.iter().map(|report| report.checkin.presented.host.uuid()).collect();
    let ids: Vec<&[u8]> = ids.iter().map(|id| id.as_bytes().as_slice()).collect();
    let labels = batch.iter().map(|report| {
        let labels = report.checkin.conditions.guests.as_ref().map(serde_json::to_string);
        labels.transpose().map_err(Error::unwritable)
    });
    let labels = labels.collect::<sql::Result<Vec<Option<String>>>>()?;
    let labels: Vec<Value<'_>> =
        labels.iter().map(|labels| labels.as_deref().map_or(Value::Null, Value::Text)).collect();
    let sql = match locking {
        Locking::No => STORED,
        Locking::InOrder => STORED_LOCKED,
    };
    let rows = connection.query_arrays(sql, &[&ids, &labels])?;
    let mut stored =
        rows.iter().map(|row| stored_host(&Row(row))).collect::<sql::Result<Vec<StoredHost>>>()?;
    add_heads(connection, batch, &mut stored)?;
    Ok(stored)
}

fn stored_host(row: &Row<'_>) -> sql::Result<StoredHost> {
    // The columns before are those of `look`.
    Ok(StoredHost {
        place: place(row, 15)?,
        row: look(row)?,
        version: row.get(16)?,
        waits: if row.get(17)? { Waits::Something } else { Waits::Nothing },
        labels: if row.get(18)? { Labels::Same } else { Labels::Others },
        heads: StoredHeads::default(),
    })
}

/// The server counts from 1.
fn place(row: &Row<'_>, column: usize) -> sql::Result<usize> {
    usize::try_from(row.get::<_, i64>(column)?.saturating_sub(1)).map_err(Error::unreadable)
}

fn add_heads(connection: &Connection, batch: &[Report], stored: &mut [StoredHost]) -> sql::Result<()> {
    let mut asked: Vec<(&mut StoredHost, i64)> = Vec::new();
    for host in stored {
        let audit = batch.get(host.place).and_then(|report| report.checkin.summary.audit.as_ref());
        if let Some(audit) = audit {
            asked.push((host, i64::try_from(audit.number).unwrap_or(i64::MAX)));
        }
    }
    if asked.is_empty() {
        return Ok(());
    }
    let hosts: Vec<i64> = asked.iter().map(|(host, _)| host.row.host.number).collect();
    let audits: Vec<i64> = asked.iter().map(|(_, audit)| *audit).collect();
    for row in &connection.query_arrays(HEADS, &[&hosts, &audits])? {
        let row = Row(row);
        if let Some((host, _)) = asked.get_mut(place(&row, 0)?) {
            host.heads = StoredHeads { newest: head(&row, 1)?, same: head(&row, 4)?, count: row.get(7)? };
        }
    }
    Ok(())
}

fn head(row: &Row<'_>, column: usize) -> sql::Result<Option<KeptHead>> {
    let Some(number) = row.get::<_, Option<u64>>(column)? else { return Ok(None) };
    let (chain, at) = (row.get(column + 1)?, row.get::<_, Time>(column + 2)?.0);
    Ok(Some(KeptHead { number, chain, at }))
}
