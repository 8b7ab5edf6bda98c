//! Objections to signed jobs.

use holdfast_protocol::id::JobId;
use holdfast_protocol::objection::ObjectionView;

use super::alerts::Json;
use super::columns::Id;
use super::sql::{self, Connection, Row};

/// Objections to a job, the oldest first.
pub(super) fn objections(connection: &Connection, job: JobId) -> sql::Result<Vec<ObjectionView>> {
    let sql = "SELECT body FROM job_objections WHERE job = $1 ORDER BY number";
    let read = |row: &Row<'_>| Ok(row.get::<_, Json<ObjectionView>>(0)?.0);
    connection.prepare_cached(sql)?.query_map([Id(job.uuid())], read)?.collect()
}
