//! Image approvals for all hosts, and the job of each host.

use std::convert::Infallible;

use async_trait::async_trait;
use holdfast_protocol::id::{GoldenVersion, HostId, HostName, JobId, OperatorName};
use holdfast_protocol::image_approval::{ImageApprovalDetail, ImageApprovalHost, ImageApprovalView};
use jiff::Timestamp;
use sha2::{Digest as _, Sha256};

use super::columns::{Id, Text, Time, digest};
use super::events::emit;
use super::jobs::ReportColumn;
use super::sql::{self, Connection, Error, OptionalExtension as _, Row, params};
use super::writer::Tx;
use super::{Failed, Postgres};
use crate::domain::event::{EventKind, NewEvent};
use crate::domain::image_approval::{ImageApprovalError, KEPT_MAX, StoredApproval, SubmittedApproval, judge};
use crate::store::{By, ImageApprovalDone, ImageApprovals, StoreError, WriteError};

const SELECT: &str = "
    SELECT a.number, a.id, a.version, a.sha256, a.operator, a.submitted_at, a.expires_at, a.withdrawn_at,
        count(h.number) FILTER (WHERE stored_json(j.report) ->> 'state' IN ('waiting', 'under_way', 'done')) AS admitted,
        count(h.number) FILTER (WHERE j.queue_state = 'queued') AS on_its_way,
        count(h.number) FILTER (WHERE stored_json(j.report) ->> 'state' IN ('refused', 'failed', 'cancelled')) AS refused
    FROM image_approvals a
    LEFT JOIN jobs j ON j.approval = a.number
    LEFT JOIN hosts h ON h.number = j.host AND h.status <> 'revoked'";

fn view(row: &Row<'_>) -> sql::Result<ImageApprovalView> {
    Ok(ImageApprovalView {
        id: JobId::new(row.get::<_, Id>("id")?.0),
        version: row.get::<_, Text<GoldenVersion>>("version")?.0,
        sha256: digest(row, "sha256")?,
        by: row.get::<_, Text<OperatorName>>("operator")?.0,
        submitted_at: row.get::<_, Time>("submitted_at")?.0,
        expires_at: row.get::<_, Time>("expires_at")?.0,
        withdrawn_at: row.get::<_, Option<Time>>("withdrawn_at")?.map(|at| at.0),
        admitted: row.get("admitted")?,
        on_its_way: row.get("on_its_way")?,
        refused: row.get("refused")?,
    })
}

fn one(connection: &Connection, id: JobId) -> sql::Result<Option<(i64, ImageApprovalView)>> {
    let sql = format!("{SELECT} WHERE a.id = $1 GROUP BY a.number");
    let read = |row: &Row<'_>| Ok((row.get("number")?, view(row)?));
    connection.prepare_cached(&sql)?.query_row([Id(id.uuid())], read).optional()
}

/// Writes the job of an approval for hosts. What a host has taken stays; what it refused is offered anew.
const QUEUE: &str = "
    INSERT INTO jobs (host, id, blob, hash, operator, submitted_at, queue_state, correlation, approval)
    SELECT h.number, a.id, '', a.hash, a.operator, $1::bigint, 'queued', a.correlation, a.number
    FROM hosts h, image_approvals a
    WHERE h.status <> 'revoked' AND a.withdrawn_at IS NULL AND a.expires_at > $1
        AND ($2::bigint IS NULL OR a.number = $2) AND ($3::bigint IS NULL OR h.number = $3)
    ORDER BY a.number, h.number
    ON CONFLICT (host, id) DO UPDATE SET hash = excluded.hash, operator = excluded.operator,
        submitted_at = excluded.submitted_at, queue_state = 'queued', report = NULL,
        correlation = excluded.correlation
    WHERE jobs.approval IS NOT NULL
        AND (jobs.queue_state <> 'answered' OR stored_json(jobs.report) ->> 'state' = 'refused')";

/// Queues what is open for a host that is new, or whose state began anew: its ledger knows none of it.
pub(super) fn queue_for_host(tx: &Tx<'_>, host: i64, at: Timestamp) -> sql::Result<()> {
    let sql = "DELETE FROM jobs WHERE host = $1 AND approval IS NOT NULL";
    tx.prepare_cached(sql)?.execute([host])?;
    tx.prepare_cached(QUEUE)?.execute(params![Time(at), None::<i64>, host])?;
    Ok(())
}

/// Deletes the approvals that ended before this, with the hosts' jobs of them, and all but the newest.
pub(super) fn prune(tx: &Tx<'_>, before: Time) -> sql::Result<()> {
    let old = "SELECT number FROM image_approvals WHERE expires_at < $1 OR number NOT IN
        (SELECT number FROM image_approvals ORDER BY number DESC LIMIT $2)";
    let params = params![before, KEPT_MAX];
    tx.execute(&format!("DELETE FROM jobs WHERE approval IN ({old})"), params)?;
    tx.execute(&format!("DELETE FROM image_approvals WHERE number IN ({old})"), params)?;
    Ok(())
}

fn stored(tx: &Tx<'_>, id: JobId) -> sql::Result<Option<StoredApproval>> {
    let sql = "SELECT payload_hash FROM image_approvals WHERE id = $1";
    let read = |row: &Row<'_>| Ok(StoredApproval { payload: row.get(0)? });
    tx.prepare_cached(sql)?.query_row([Id(id.uuid())], read).optional()
}

fn write(tx: &Tx<'_>, by: &By, submitted: &SubmittedApproval) -> sql::Result<()> {
    let approval = &submitted.approval;
    let hash: [u8; 32] = Sha256::digest(submitted.blob.as_bytes()).into();
    let sql = "INSERT INTO image_approvals (id, blob, hash, payload_hash, version, sha256, operator, submitted_at,
                   expires_at, withdrawn_at, correlation)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, NULL, $10)
               ON CONFLICT (id) DO UPDATE SET blob = excluded.blob, hash = excluded.hash, operator = excluded.operator,
                   submitted_at = excluded.submitted_at, withdrawn_at = NULL, correlation = excluded.correlation";
    tx.prepare_cached(sql)?.execute(params![
        Id(approval.job_id.uuid()),
        submitted.blob,
        hash,
        submitted.payload,
        approval.version.as_str(),
        approval.sha256.as_str(),
        by.operator.as_str(),
        Time(by.at),
        Time(approval.expires_at.at()),
        Id(by.correlation.uuid()),
    ])?;
    Ok(())
}

fn event(by: &By, kind: EventKind, message: String) -> NewEvent {
    let (actor, correlation) = (Some(by.operator.clone()), by.correlation);
    NewEvent { at: by.at, kind, host: None, actor, correlation, message }
}

#[async_trait]
impl ImageApprovals for Postgres {
    async fn image_approvals(&self) -> Result<Vec<ImageApprovalView>, StoreError> {
        self.read("list approvals of images", |connection| {
            let sql = format!("{SELECT} GROUP BY a.number ORDER BY a.number DESC LIMIT {KEPT_MAX}");
            connection.prepare_cached(&sql)?.query_map([], view)?.collect()
        })
        .await
    }

    async fn image_approval(&self, id: JobId) -> Result<Option<ImageApprovalDetail>, StoreError> {
        self.read("read an approval of an image", move |connection| {
            let Some((number, approval)) = one(connection, id)? else { return Ok(None) };
            let sql = "SELECT blob FROM image_approvals WHERE number = $1";
            let blob = connection.prepare_cached(sql)?.query_row([number], |row| row.get(0))?;
            let sql = "SELECT h.name, j.report FROM jobs j JOIN hosts h ON h.number = j.host
                       WHERE j.approval = $1 AND h.status <> 'revoked' ORDER BY h.name";
            let host = |row: &Row<'_>| {
                let report = row.get::<_, Option<ReportColumn>>(1)?.map(|report| report.0);
                Ok(ImageApprovalHost { host: row.get::<_, Text<HostName>>(0)?.0, report })
            };
            let select = connection.prepare_cached(sql)?;
            let hosts = select.query_map([number], host)?.collect::<sql::Result<_>>()?;
            Ok(Some(ImageApprovalDetail { approval, blob, hosts }))
        })
        .await
    }

    async fn submit_image_approval(
        &self,
        by: By,
        submitted: SubmittedApproval,
    ) -> Result<ImageApprovalDone, WriteError<ImageApprovalError>> {
        self.mutate("keep an approval of an image", by, move |tx, by| {
            let id = submitted.approval.job_id;
            let sql = "SELECT count(*) FROM image_approvals WHERE withdrawn_at IS NULL AND expires_at > $1 AND id <> $2";
            let open =
                tx.prepare_cached(sql)?.query_row(params![Time(by.at), Id(id.uuid())], |row| row.get(0))?;
            judge(stored(tx, id)?, open, &submitted).map_err(Failed::Refused)?;
            write(tx, by, &submitted)?;
            let (number, _) = one(tx, id)?.ok_or(Error::NoRow)?;
            tx.prepare_cached(QUEUE)?.execute(params![Time(by.at), number, None::<i64>])?;
            let sql = "SELECT h.id FROM jobs j JOIN hosts h ON h.number = j.host
                       WHERE j.approval = $1 AND j.queue_state = 'queued'";
            let waiting = tx.prepare_cached(sql)?;
            let hosts = waiting.query_map([number], |row| Ok(HostId::new(row.get::<_, Id>(0)?.0)))?;
            let hosts: Vec<HostId> = hosts.collect::<Result<_, _>>()?;
            let approval = &submitted.approval;
            let message = format!(
                "approval {id} of golden {} (sha256 {}) waits for {} hosts",
                approval.version,
                approval.sha256.as_str(),
                hosts.len()
            );
            emit(tx, &event(by, EventKind::JobQueued, message))?;
            let (_, approval) = one(tx, id)?.ok_or(Error::NoRow)?;
            Ok(ImageApprovalDone { hosts, approval })
        })
        .await
    }

    async fn withdraw_image_approval(
        &self,
        by: By,
        id: JobId,
    ) -> Result<Option<ImageApprovalView>, WriteError<Infallible>> {
        self.mutate("withdraw an approval of an image", by, move |tx, by| {
            let Some((number, approval)) = one(tx, id)? else { return Ok(None) };
            if approval.withdrawn_at.is_some() {
                return Ok(Some(approval));
            }
            let sql = "UPDATE image_approvals SET withdrawn_at = $2 WHERE number = $1";
            tx.prepare_cached(sql)?.execute(params![number, Time(by.at)])?;
            let sql =
                "UPDATE jobs SET queue_state = 'withdrawn' WHERE approval = $1 AND queue_state = 'queued'";
            tx.prepare_cached(sql)?.execute([number])?;
            let message = format!("approval {id} of golden {} was withdrawn", approval.version);
            emit(tx, &event(by, EventKind::JobWithdrawn, message))?;
            Ok(one(tx, id)?.map(|(_, approval)| approval))
        })
        .await
    }
}
