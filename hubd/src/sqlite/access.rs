//! Scopes as parts of statements, and facts of objects.
//!
//! A statement that narrows a list takes two parameters: the labels of a scope as JSON, and its customer. Both are NULL
//! where the scope is everything.

use async_trait::async_trait;
use holdfast_protocol::access::{AccessScope, Grant, ObjectFacts};
use holdfast_protocol::host_label::HostLabels;
use holdfast_protocol::id::{CustomerId, GuestUid, JobId};
use holdfast_protocol::operator::Role;
use rusqlite::types::FromSqlError;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::Sqlite;
use super::alerts::{Json, json};
use super::columns::Id;
use super::host_row::find;
use crate::store::{ObjectRef, Objects, StoreError};

/// A scope as parameters.
pub(super) struct ScopeColumns {
    pub labels: Option<String>,
    pub customer: Option<String>,
}

impl ScopeColumns {
    pub(super) fn of(scope: &AccessScope) -> rusqlite::Result<Self> {
        Ok(match scope {
            AccessScope::Everything {} => Self { labels: None, customer: None },
            AccessScope::Hosts { labels } => Self { labels: Some(json(labels)?), customer: None },
            AccessScope::Customer { customer } => {
                Self { labels: None, customer: Some(customer.as_str().to_owned()) }
            }
        })
    }
}

/// That a row of `hosts` has the labels in this parameter, if there are any. Keys of labels have no quotes.
pub(super) fn has_labels(labels: &str) -> String {
    format!(
        "({labels} IS NULL OR NOT EXISTS (SELECT 1 FROM json_each({labels}) AS term
            WHERE json_extract(coalesce(hosts.labels, '{{}}'), '$.\"' || term.key || '\"') IS NOT term.value))"
    )
}

/// How a scope is kept: NULL is everything.
pub(super) fn scope_column(scope: &AccessScope) -> rusqlite::Result<Option<String>> {
    if scope.is_everything() { Ok(None) } else { json(scope).map(Some) }
}

/// The columns `role` and `scope` of a person or a token.
pub(super) fn read_grant(row: &Row<'_>) -> rusqlite::Result<Grant> {
    let word: String = row.get("role")?;
    let role = Role::ALL.into_iter().find(|role| role.as_str() == word);
    let odd = || FromSqlError::Other(format!("{word} is no role").into());
    let scope = row.get::<_, Option<Json<AccessScope>>>("scope")?.map(|scope| scope.0).unwrap_or_default();
    Ok(Grant::new(role.ok_or_else(odd)?, scope).map_err(FromSqlError::other)?)
}

/// Whose a guest is: as its host last reported, or else as the newest document that names it says.
pub(super) fn guest_customer(
    connection: &Connection,
    host: i64,
    guest: GuestUid,
) -> rusqlite::Result<Option<CustomerId>> {
    let sql = "SELECT coalesce(
            (SELECT json_extract(guest.value, '$.customer')
             FROM reports, json_each(reports.guest_labels) AS guest
             WHERE reports.host = ?1 AND guest.key = ?2),
            (SELECT json_extract(guest.value, '$.customer')
             FROM desired, json_each(desired.document, '$.guests') AS guest
             WHERE desired.host = ?1 AND json_extract(guest.value, '$.uid') = ?2
             ORDER BY desired.generation DESC LIMIT 1))";
    let key = params![host, guest.to_string()];
    let customer: Option<String> = connection.prepare_cached(sql)?.query_row(key, |row| row.get(0))?;
    // A document of an earlier hub may name it in a way that is none any more.
    Ok(customer.and_then(|customer| customer.parse().ok()))
}

fn job(connection: &Connection, job: JobId) -> rusqlite::Result<Option<ObjectFacts>> {
    let sql = "SELECT hosts.labels AS labels, jobs.customer AS customer FROM jobs JOIN hosts ON hosts.number = jobs.host
               WHERE jobs.id = ?1 AND jobs.guest IS NOT NULL ORDER BY jobs.number LIMIT 1";
    let read = |row: &Row<'_>| {
        let labels = row.get::<_, Option<Json<HostLabels>>>("labels")?.map(|labels| labels.0);
        let customer = row.get::<_, Option<String>>("customer")?.and_then(|customer| customer.parse().ok());
        Ok(ObjectFacts { labels: labels.unwrap_or_default(), customer })
    };
    connection.prepare_cached(sql)?.query_row([Id(job.uuid())], read).optional()
}

#[async_trait]
impl Objects for Sqlite {
    async fn object_facts(&self, object: ObjectRef) -> Result<Option<ObjectFacts>, StoreError> {
        self.read("look up an object", move |connection| {
            let (host, guest) = match object {
                ObjectRef::Job(id) => return job(connection, id),
                ObjectRef::Host(host) => (host, None),
                ObjectRef::Guest(host, guest) => (host, Some(guest)),
            };
            let Some(record) = find(connection, &host)? else { return Ok(None) };
            let customer = match guest {
                Some(guest) => guest_customer(connection, record.number, guest)?,
                None => None,
            };
            Ok(Some(ObjectFacts { labels: record.view.labels, customer }))
        })
        .await
    }
}
