//! The readmission of a revoked host: its next certificate, and what ends.

use holdfast_protocol::id::{HostId, HostName};
use holdfast_protocol::operator::{EpochEnd, RevokedHost};

use super::Failed;
use super::certificates::insert_certificate;
use super::columns::{Id, Text, Time};
use super::epochs::close_epoch;
use super::image_approvals;
use super::sql::{self, Connection, OptionalExtension as _, params};
use super::writer::Tx;
use crate::authority::AgentKey;
use crate::domain::event::EventKind;
use crate::domain::identity::HostStatus;
use crate::domain::readmission::{NameUse, ReadmitError, RevokedRecord, judge};
use crate::store::{By, EnrollmentRequestError, Issue, REVOKED_NAMESAKES_SHOWN};

/// A readmission that an operator approved.
pub(super) struct Readmission<'a> {
    /// The revoked host.
    pub host: HostId,
    /// The name that the operator wrote.
    pub name: &'a HostName,
    /// Whether a host that is not revoked has it.
    pub name_use: NameUse,
    /// The host's new key.
    pub key: &'a AgentKey,
}

/// Readmits a revoked host. Reports, documents, wrapped keys and events of its id stay. What was meant for the old
/// certificate does not reach the new one: queued signed jobs are withdrawn, and unused restore invites end.
pub(super) fn readmit(
    tx: &Tx<'_>,
    by: &By,
    wanted: &Readmission<'_>,
    issue: Issue,
) -> Result<Decision, Failed<EnrollmentRequestError>> {
    let refuse = |error: ReadmitError| Failed::Refused(EnrollmentRequestError::Readmit(error));
    let sql = "SELECT number, name, status, issued_generation FROM hosts WHERE id = $1";
    let found = tx.prepare_cached(sql)?.query_row([Id(wanted.host.uuid())], read).optional()?;
    let (number, former) = found.ok_or(refuse(ReadmitError::Unknown(wanted.host)))?;
    let generation = judge(&former, wanted.name, wanted.name_use).map_err(refuse)?;
    let issued = issue(wanted.host, generation, wanted.key, by.at)
        .map_err(|error| Failed::Refused(EnrollmentRequestError::Issue(error)))?;
    insert_certificate(tx, number, generation, wanted.key.hash(), &issued)?;
    close_epoch(tx, number, generation, EpochEnd::Readmitted, by.at)?;
    let sql =
        "UPDATE hosts SET status = 'active', liveness = 'new', readmitted_from = $2, used_generation = $2,
                   run_started_at = NULL, sequence = NULL, farewell_at = NULL, held = 0, refused = NULL
               WHERE number = $1";
    tx.prepare_cached(sql)?.execute(params![number, generation])?;
    let sql = "UPDATE jobs SET queue_state = 'withdrawn' WHERE host = $1 AND queue_state = 'queued'";
    let withdrawn = tx.prepare_cached(sql)?.execute([number])?;
    image_approvals::queue_for_host(tx, number, by.at)?;
    let sql = "UPDATE restores SET expires_at = least(expires_at, $2) WHERE host = $1 AND used_at IS NULL";
    tx.prepare_cached(sql)?.execute(params![number, Time(by.at)])?;
    let message = format!(
        "{}, which was revoked, was readmitted: key {}, certificate {generation}; queued signed jobs withdrawn: {withdrawn}",
        wanted.name,
        wanted.key.fingerprint()
    );
    let kind = EventKind::HostReadmitted;
    Ok(Decision::Approved { host: number, id: wanted.host, generation, kind, message })
}

/// The table's check allows these three values only.
fn read(row: &sql::Row<'_>) -> sql::Result<(i64, RevokedRecord)> {
    let status = match row.get_ref(2)?.as_str()? {
        "active" => HostStatus::Active,
        "revoked" => HostStatus::Revoked,
        _ => HostStatus::Frozen,
    };
    let name = row.get::<_, Text<_>>(1)?.0;
    Ok((row.get(0)?, RevokedRecord { name, status, issued: row.get(3)? }))
}

/// The newest revoked hosts of a name.
pub(super) fn namesakes(connection: &Connection, name: &HostName) -> sql::Result<Vec<RevokedHost>> {
    let sql =
        "SELECT id, seen_at FROM hosts WHERE name = $1 AND status = 'revoked' ORDER BY number DESC LIMIT $2";
    let read = |row: &sql::Row<'_>| {
        Ok(RevokedHost {
            id: HostId::new(row.get::<_, Id>(0)?.0),
            seen_at: row.get::<_, Option<Time>>(1)?.map(|at| at.0),
        })
    };
    connection
        .prepare_cached(sql)?
        .query_map(params![name.as_str(), REVOKED_NAMESAKES_SHOWN], read)?
        .collect()
}

/// What an operator decided.
pub(super) enum Decision {
    /// Let in, as a new host or as one that comes back.
    Approved {
        /// The host's number.
        host: i64,
        id: HostId,
        /// The certificate that it is given.
        generation: u32,
        /// The event to record.
        kind: EventKind,
        message: String,
    },
    /// Turned away for good.
    Refused,
}
