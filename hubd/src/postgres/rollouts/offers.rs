//! Offers of rollouts to hosts.

use holdfast_protocol::id::{CorrelationId, HostId};
use holdfast_protocol::release::VersionNumber;
use holdfast_protocol::release::rollout::RolloutSubject;
use holdfast_protocol::release::stored::WithdrawalReason;
use jiff::Timestamp;

use super::super::sql::{self, Connection, OptionalExtension as _, Row, params};
use super::guest_agents;
use super::rows::{KeptRollout, json_or_default, stage, version};
use crate::domain::rollout::times::AllowedTimes;
use crate::domain::rollout::{HostPlace, PausedTrials, offered, withdrawal};
use crate::postgres::columns::{Id, Time};
use crate::postgres::writer::Tx;

/// Keeps who is newly offered the release, from now on. For guest agents the documents of these hosts ask for it.
pub(super) fn offer(
    tx: &Tx<'_>,
    kept: &KeptRollout,
    hosts: &[HostId],
    (now, correlation): (Timestamp, CorrelationId),
) -> sql::Result<()> {
    for host in hosts {
        let sql = "UPDATE rollout_hosts SET offered_at = $3
                   WHERE rollout = $1 AND host = (SELECT number FROM hosts WHERE id = $2)";
        tx.prepare_cached(sql)?.execute(params![kept.number, Id(host.uuid()), Time(now)])?;
        match kept.subject {
            RolloutSubject::Agent | RolloutSubject::Golden => {}
            RolloutSubject::GuestAgent => guest_agents::ask(tx, kept, *host, (now, correlation))?,
        }
    }
    Ok(())
}

/// The versions that rollouts offer to a host now.
pub(in crate::postgres) fn offered_versions(
    connection: &Connection,
    host: HostId,
    now: Timestamp,
) -> sql::Result<Vec<VersionNumber>> {
    let sql =
        "SELECT rollouts.version AS version, state, reason, rollouts.wave AS wave, opened_at, settled_at, held_at,
                   times, fallback, rolls_back, rollout_hosts.wave AS of_host, offered_at, update_windows
               FROM hosts JOIN rollout_hosts ON rollout_hosts.host = hosts.number
               JOIN rollouts ON rollouts.number = rollout_hosts.rollout
               WHERE hosts.id = $1 AND rollouts.subject = 'agent'";
    let read = |row: &Row<'_>| {
        let (times, windows) = (json_or_default(row, "times")?, json_or_default(row, "update_windows")?);
        let allowed = AllowedTimes::at(&times, &windows, now);
        let place = HostPlace {
            wave: row.get::<_, u32>("of_host")? as usize,
            offered_at: row.get::<_, Option<Time>>("offered_at")?.map(|time| time.0),
            allowed: &allowed,
        };
        Ok(offered(&stage(row)?, place, version(row)?, now))
    };
    let select = connection.prepare_cached(sql)?;
    let rows = select.query_map([Id(host.uuid())], read)?.collect::<sql::Result<Vec<_>>>()?;
    Ok(rows.into_iter().flatten().collect())
}

/// Why the newest rollout that offered a version to a host offers it no more, where somebody stopped it.
pub(in crate::postgres) fn withdrawn_by_rollout(
    connection: &Connection,
    host: HostId,
    of: VersionNumber,
) -> sql::Result<Option<WithdrawalReason>> {
    let sql =
        "SELECT rollouts.version AS version, state, reason, rollouts.wave AS wave, opened_at, settled_at, held_at,
                   fallback, rolls_back, takes_back
               FROM hosts JOIN rollout_hosts ON rollout_hosts.host = hosts.number
               JOIN rollouts ON rollouts.number = rollout_hosts.rollout
               WHERE hosts.id = $1 AND rollouts.version = $2 AND rollouts.subject = 'agent' AND offered_at IS NOT NULL
               ORDER BY rollouts.number DESC LIMIT 1";
    let read = |row: &Row<'_>| {
        let paused = if row.get("takes_back")? { PausedTrials::TakenBack } else { PausedTrials::GoOn };
        Ok(withdrawal(&stage(row)?, paused))
    };
    let select = connection.prepare_cached(sql)?;
    Ok(select.query_row(params![Id(host.uuid()), of.to_string()], read).optional()?.flatten())
}
