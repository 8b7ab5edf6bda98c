//! Signed jobs about guests, and objections to them.

use async_trait::async_trait;
use holdfast_protocol::access::AccessScope;
use holdfast_protocol::desired::Reason;
use holdfast_protocol::id::{GuestUid, HostId, JobId};
use holdfast_protocol::job::JobState;
use holdfast_protocol::objection::{GuestJobView, ObjectionView};

use super::access::{ScopeColumns, has_labels};
use super::alerts::json;
use super::columns::{Id, Text};
use super::events::{EventGuest, emit_of};
use super::jobs::ReportColumn;
use super::objections::objections;
use super::sql::{self, Connection, OptionalExtension as _, Row, params};
use super::{Failed, Postgres};
use crate::domain::event::{EventKind, NewEvent};
use crate::store::{By, GuestJobs, OBJECTIONS_MAX, ObjectionError, StoreError, WriteError};

const COLUMNS: &str =
    "jobs.number AS number, jobs.id AS id, hosts.id AS host_id, hosts.name AS host, jobs.guest AS guest,
    jobs.customer AS customer, jobs.report AS report FROM jobs JOIN hosts ON hosts.number = jobs.host";

fn read(row: &Row<'_>) -> sql::Result<(i64, GuestJobView)> {
    let report = row.get::<_, ReportColumn>("report")?.0;
    let view = GuestJobView {
        id: JobId::new(row.get::<_, Id>("id")?.0),
        host_id: HostId::new(row.get::<_, Id>("host_id")?.0),
        host: row.get::<_, Text<_>>("host")?.0,
        guest: row.get::<_, Text<GuestUid>>("guest")?.0,
        customer: row.get::<_, Option<String>>("customer")?.and_then(|customer| customer.parse().ok()),
        verb: report.verb,
        state: report.state,
        taken_at: report.taken_at,
        due_at: report.due_at,
        ended_at: report.ended_at,
        objections: Vec::new(),
    };
    Ok((row.get("number")?, view))
}

fn with_objections(connection: &Connection, mut view: GuestJobView) -> sql::Result<GuestJobView> {
    view.objections = objections(connection, view.id)?;
    Ok(view)
}

#[async_trait]
impl GuestJobs for Postgres {
    async fn guest_jobs(
        &self,
        scope: AccessScope,
        before: Option<i64>,
        limit: u32,
    ) -> Result<Vec<(i64, GuestJobView)>, StoreError> {
        self.read("list jobs about guests", move |connection| {
            let ScopeColumns { labels, customer } = ScopeColumns::of(&scope)?;
            let sql = format!(
                "SELECT {COLUMNS} WHERE jobs.guest IS NOT NULL AND jobs.number < $1
                     AND ($2::text IS NULL OR jobs.customer = $2) AND {}
                 ORDER BY jobs.number DESC LIMIT $4",
                has_labels("$3")
            );
            let parameters = params![before.unwrap_or(i64::MAX), customer, labels, limit];
            let statement = connection.prepare_cached(&sql)?;
            let rows: sql::Result<Vec<(i64, GuestJobView)>> =
                statement.query_map(parameters, read)?.collect();
            let all =
                rows?.into_iter().map(|(number, view)| Ok((number, with_objections(connection, view)?)));
            all.collect()
        })
        .await
    }

    async fn object_to_job(
        &self,
        by: By,
        job: JobId,
        reason: Reason,
    ) -> Result<Option<GuestJobView>, WriteError<ObjectionError>> {
        self.mutate("write down an objection", by, move |tx, by| {
            let sql = format!(
                "SELECT {COLUMNS} WHERE jobs.id = $1 AND jobs.guest IS NOT NULL ORDER BY jobs.number LIMIT 1"
            );
            let found = tx.prepare_cached(&sql)?.query_row([Id(job.uuid())], read).optional()?;
            let Some((_, view)) = found else { return Ok(None) };
            if view.state != JobState::Waiting {
                return Err(Failed::Refused(ObjectionError::Late { state: view.state }));
            }
            let sql = "SELECT count(*) FROM job_objections WHERE job = $1";
            let count: u32 = tx.prepare_cached(sql)?.query_row([Id(job.uuid())], |row| row.get(0))?;
            if count >= OBJECTIONS_MAX {
                return Err(Failed::Refused(ObjectionError::TooMany));
            }
            let objection = ObjectionView { by: by.operator.clone(), reason, at: by.at };
            let sql = "INSERT INTO job_objections (job, body) VALUES ($1, $2)";
            tx.prepare_cached(sql)?.execute(params![Id(job.uuid()), json(&objection)?])?;
            let verb = view.verb.map_or("a signed job", |verb| verb.as_str());
            let event = NewEvent {
                at: by.at,
                kind: EventKind::JobObjected,
                host: Some(view.host_id),
                actor: Some(by.operator.clone()),
                correlation: by.correlation,
                message: format!(
                    "{} objects to job {job} ({verb}) on {}: {}. It goes on unless an operator signs a cancel",
                    by.operator,
                    view.host,
                    objection.reason.as_str()
                ),
            };
            let about = EventGuest::of(view.guest, view.customer.clone());
            emit_of(tx, &event, Some(&about))?;
            Ok(Some(with_objections(tx, view)?))
        })
        .await
    }
}
