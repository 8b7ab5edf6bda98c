//! Signed jobs, their delivery and their reports.

use async_trait::async_trait;
use holdfast_protocol::checkin::JOBS_PER_ANSWER;
use holdfast_protocol::id::{CorrelationId, CustomerId, HostId, JobId, OperatorName, TunnelName};
use holdfast_protocol::job::{JobReport, QueuedJob};
use holdfast_protocol::operator::{HostState, JobDetail, JobView, QueueState, TunnelOrder};
use sha2::{Digest as _, Sha256};

use super::access::guest_customer;
use super::authenticated_host::AuthenticatedHost;
use super::columns::{Id, Text, Time};
use super::events::{EventGuest, emit, emit_of};
use super::host_row::find;
use super::objections::objections;
use super::sql::{self, Connection, Error, FromColumn, OptionalExtension as _, Row, ValueRef, params};
use super::tunnel_orders;
use super::writer::Tx;
use super::{Failed, Postgres, escrow_notices};
use crate::domain::event::{EventKind, NewEvent};
use crate::domain::host::HostRef;
use crate::domain::job_notice;
use crate::domain::job_queue::{self, Acceptance, JobQueueError, KEPT_MAX, StoredJob, TextMatch};
use crate::store::{By, Checkin, JobDone, SignedJobs, StoreError, SubmitJob, WriteError};

struct QueueStateColumn(QueueState);

impl FromColumn for QueueStateColumn {
    fn column(value: ValueRef<'_>) -> sql::Result<Self> {
        Ok(Self(match value.as_str()? {
            "queued" => QueueState::Queued,
            "answered" => QueueState::Answered,
            "withdrawn" => QueueState::Withdrawn,
            other => return Err(Error::Unreadable(format!("{other} is no way of a job").into())),
        }))
    }
}

pub(super) struct ReportColumn(pub(super) JobReport);

impl FromColumn for ReportColumn {
    fn column(value: ValueRef<'_>) -> sql::Result<Self> {
        serde_json::from_str(value.as_str()?).map(Self).map_err(Error::unreadable)
    }
}

const COLUMNS: &str = "number, id, operator, submitted_at, queue_state, report, correlation,
    length(coalesce((SELECT a.blob FROM image_approvals a WHERE a.number = approval), blob)) AS bytes";

struct JobRow {
    number: i64,
    job: JobView,
}

fn read(row: &Row<'_>) -> sql::Result<JobRow> {
    let job = JobView {
        id: JobId::new(row.get::<_, Id>("id")?.0),
        by: row.get::<_, Text<OperatorName>>("operator")?.0,
        submitted_at: row.get::<_, Time>("submitted_at")?.0,
        bytes: row.get("bytes")?,
        queue_state: row.get::<_, QueueStateColumn>("queue_state")?.0,
        report: row.get::<_, Option<ReportColumn>>("report")?.map(|report| report.0),
        correlation_id: row.get::<_, Option<Id>>("correlation")?.map(|id| CorrelationId::new(id.0)),
        objections: Vec::new(),
    };
    Ok(JobRow { number: row.get("number")?, job })
}

fn one(connection: &Connection, host: i64, id: JobId) -> sql::Result<Option<JobRow>> {
    let sql = format!("SELECT {COLUMNS} FROM jobs WHERE host = $1 AND id = $2");
    connection.prepare_cached(&sql)?.query_row(params![host, Id(id.uuid())], read).optional()
}

/// The first that the host has not spoken of.
pub(super) fn queued(connection: &Connection, host: i64) -> sql::Result<Vec<QueuedJob>> {
    let sql = "SELECT id, coalesce((SELECT a.blob FROM image_approvals a WHERE a.number = approval), blob), correlation
               FROM jobs WHERE host = $1 AND queue_state = 'queued' ORDER BY number";
    let read = |row: &Row<'_>| {
        let id = JobId::new(row.get::<_, Id>(0)?.0);
        let correlation_id = row.get::<_, Option<Id>>(2)?.map(|id| CorrelationId::new(id.0));
        Ok(QueuedJob { id, blob: row.get(1)?, correlation_id })
    };
    let statement = connection.prepare_cached(sql)?;
    statement.query_map([host], read)?.take(JOBS_PER_ANSWER as usize).collect()
}

/// Takes in what a host says of its jobs. What it says of a text that is not kept is no answer to anything.
pub(super) fn heard(tx: &Tx<'_>, checkin: &Checkin, host: &AuthenticatedHost) -> sql::Result<()> {
    for report in &checkin.jobs {
        let sql = "SELECT hash, report, correlation FROM jobs WHERE host = $1 AND id = $2";
        let key = params![host.number, Id(report.id.uuid())];
        let kept = tx
            .prepare_cached(sql)?
            .query_row(key, |row| {
                let report = row.get::<_, Option<ReportColumn>>(1)?;
                Ok((row.get::<_, [u8; 32]>(0)?, report, row.get::<_, Option<Id>>(2)?))
            })
            .optional()?;
        let Some((hash, before, correlation)) = kept else { continue };
        let before = before.map(|before| before.0);
        if hex::encode(hash) != report.blob || before.as_ref() == Some(report) {
            continue;
        }
        let text = serde_json::to_string(report).map_err(Error::unwritable)?;
        let owner = report.guest.map(|guest| guest_customer(tx, host.number, guest)).transpose()?.flatten();
        let sql = "UPDATE jobs SET queue_state = 'answered', report = $3, guest = $4, customer = coalesce(customer, $5)
                   WHERE host = $1 AND id = $2";
        let (guest, customer) =
            (report.guest.map(|guest| guest.to_string()), owner.as_ref().map(CustomerId::as_str));
        let row = params![host.number, Id(report.id.uuid()), text, guest, customer];
        tx.prepare_cached(sql)?.execute(row)?;
        let state = before.map(|before| before.state);
        let correlation = correlation.map_or(checkin.correlation, |id| CorrelationId::new(id.0));
        if let Some(owner) = &owner
            && let Some(notice) = job_notice::notice(state, report, &host.name, owner, checkin.at)
        {
            escrow_notices::queue_job(tx, &notice, checkin.presented.host, correlation)?;
        }
        let Some(kind) = job_queue::event(state, report) else { continue };
        let verb = report.verb.map_or("a signed job", |verb| verb.as_str());
        let why = report.problem.as_ref().map_or_else(String::new, |problem| format!(": {problem}"));
        let event = NewEvent {
            at: checkin.at,
            kind,
            host: Some(checkin.presented.host),
            actor: None,
            // The hub's own record of the click, not what the host says of it.
            correlation,
            message: format!(
                "{} says of job {} ({verb}): {}{why}",
                host.name,
                report.id,
                report.state.as_str()
            ),
        };
        let about = report.guest.map(|uid| EventGuest::of(uid, owner));
        emit_of(tx, &event, about.as_ref())?;
    }
    Ok(())
}

fn insert(tx: &Tx<'_>, host: i64, by: &By, leave: &SubmitJob, hash: &[u8; 32]) -> sql::Result<()> {
    let id = Id(leave.id.uuid());
    // A text in place of another one waits anew, behind those that wait.
    tx.prepare_cached("DELETE FROM jobs WHERE host = $1 AND id = $2")?.execute(params![host, id])?;
    let sql = "INSERT INTO jobs (host, id, blob, hash, operator, submitted_at, queue_state, correlation)
               VALUES ($1, $2, $3, $4, $5, $6, 'queued', $7)";
    tx.prepare_cached(sql)?.execute(params![
        host,
        id,
        leave.blob,
        hash,
        by.operator.as_str(),
        Time(by.at),
        Id(by.correlation.uuid())
    ])?;
    let sql = "DELETE FROM jobs WHERE host = $1 AND queue_state <> 'queued' AND number NOT IN
               (SELECT number FROM jobs WHERE host = $1 ORDER BY number DESC LIMIT $2)";
    tx.prepare_cached(sql)?.execute(params![host, KEPT_MAX])?;
    Ok(())
}

fn kept(tx: &Tx<'_>, host: i64, leave: &SubmitJob, hash: &[u8; 32]) -> sql::Result<Option<StoredJob>> {
    let Some(row) = one(tx, host, leave.id)? else { return Ok(None) };
    let sql = "SELECT hash FROM jobs WHERE number = $1";
    let before: [u8; 32] = tx.prepare_cached(sql)?.query_row([row.number], |row| row.get(0))?;
    Ok(Some(StoredJob {
        queue_state: row.job.queue_state,
        state: row.job.report.map(|report| report.state),
        text: if before == *hash { TextMatch::Yes } else { TextMatch::No },
    }))
}

fn job_event(by: &By, kind: EventKind, host: HostId, message: String) -> NewEvent {
    let (actor, correlation) = (Some(by.operator.clone()), by.correlation);
    NewEvent { at: by.at, kind, host: Some(host), actor, correlation, message }
}

#[async_trait]
impl SignedJobs for Postgres {
    async fn jobs(
        &self,
        host: HostRef,
        before: Option<i64>,
        limit: u32,
    ) -> Result<Option<Vec<(i64, JobView)>>, StoreError> {
        self.read("list signed jobs", move |connection| {
            let Some(record) = find(connection, &host)? else { return Ok(None) };
            let sql = format!(
                "SELECT {COLUMNS} FROM jobs WHERE host = $1 AND number < $2 ORDER BY number DESC LIMIT $3"
            );
            let rows: sql::Result<Vec<JobRow>> = connection
                .prepare_cached(&sql)?
                .query_map(params![record.number, before.unwrap_or(i64::MAX), limit], read)?
                .collect();
            let all = rows?.into_iter().map(|JobRow { number, mut job }| {
                job.objections = objections(connection, job.id)?;
                Ok((number, job))
            });
            all.collect::<sql::Result<Vec<_>>>().map(Some)
        })
        .await
    }

    async fn job(&self, host: HostRef, id: JobId) -> Result<Option<JobDetail>, StoreError> {
        self.read("read a signed job", move |connection| {
            let Some(record) = find(connection, &host)? else { return Ok(None) };
            let Some(JobRow { number, mut job }) = one(connection, record.number, id)? else {
                return Ok(None);
            };
            job.objections = objections(connection, id)?;
            let sql =
                "SELECT coalesce((SELECT a.blob FROM image_approvals a WHERE a.number = approval), blob)
                       FROM jobs WHERE number = $1";
            let blob = connection.prepare_cached(sql)?.query_row([number], |row| row.get(0))?;
            Ok(Some(JobDetail { job, blob }))
        })
        .await
    }

    async fn tunnel_order(
        &self,
        host: HostRef,
        tunnel: TunnelName,
    ) -> Result<Option<TunnelOrder>, StoreError> {
        self.read("read the order of a tunnel", move |connection| {
            let Some(record) = find(connection, &host)? else { return Ok(None) };
            tunnel_orders::newest(connection, record.number, &tunnel)
        })
        .await
    }

    async fn submit_job(
        &self,
        by: By,
        leave: SubmitJob,
    ) -> Result<Option<JobDone>, WriteError<JobQueueError>> {
        self.mutate("keep a signed job", by, move |tx, by| {
            let Some(record) = find(tx, &leave.host)? else { return Ok(None) };
            if record.view.state == HostState::Revoked {
                return Ok(None);
            }
            let hash: [u8; 32] = Sha256::digest(leave.blob.as_bytes()).into();
            let waits = "SELECT count(*) FROM jobs WHERE host = $1 AND queue_state = 'queued'";
            let waits: u32 = tx.prepare_cached(waits)?.query_row([record.number], |row| row.get(0))?;
            let kept = kept(tx, record.number, &leave, &hash)?;
            if job_queue::judge(kept, waits, leave.blob.len()).map_err(Failed::Refused)? == Acceptance::Queue
            {
                insert(tx, record.number, by, &leave, &hash)?;
                if let Some(tunnel) = &leave.tunnel {
                    tunnel_orders::put(tx, record.number, by, tunnel, &leave)?;
                }
                let text = format!("signed job {} waits for {}", leave.id, record.view.name);
                emit(tx, &job_event(by, EventKind::JobQueued, record.view.id, text))?;
            }
            let row = one(tx, record.number, leave.id)?;
            Ok(row.map(|row| JobDone { host: record.view.id, job: row.job }))
        })
        .await
    }

    async fn withdraw_job(
        &self,
        by: By,
        host: HostRef,
        id: JobId,
    ) -> Result<Option<JobView>, WriteError<JobQueueError>> {
        self.mutate("withdraw a signed job", by, move |tx, by| {
            let Some(record) = find(tx, &host)? else { return Ok(None) };
            let Some(row) = one(tx, record.number, id)? else { return Ok(None) };
            match row.job.queue_state {
                QueueState::Withdrawn => return Ok(Some(row.job)),
                QueueState::Answered => return Err(Failed::Refused(JobQueueError::Answered)),
                QueueState::Queued => {}
            }
            tx.prepare_cached("UPDATE jobs SET queue_state = 'withdrawn' WHERE number = $1")?
                .execute([row.number])?;
            let text = format!("signed job {id} for {} was withdrawn", record.view.name);
            emit(tx, &job_event(by, EventKind::JobWithdrawn, record.view.id, text))?;
            Ok(Some(JobView { queue_state: QueueState::Withdrawn, ..row.job }))
        })
        .await
    }
}
