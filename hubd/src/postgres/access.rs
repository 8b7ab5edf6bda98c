//! Scopes as parts of statements, and facts of objects.
//!
//! A statement that narrows a list takes two parameters: the labels of a scope as JSON, and its customer. Both are NULL
//! where the scope is everything.

use async_trait::async_trait;
use holdfast_protocol::access::{AccessScope, Grant, ObjectFacts};
use holdfast_protocol::host_label::HostLabels;
use holdfast_protocol::id::{CustomerId, GuestUid, JobId};
use holdfast_protocol::operator::Role;

use super::Postgres;
use super::alerts::{Json, json};
use super::columns::Id;
use super::host_row::find;
use super::sql::{self, Connection, Error, OptionalExtension as _, Row, params};
use crate::store::{ObjectRef, Objects, StoreError};

/// A scope as parameters.
pub(super) struct ScopeColumns {
    pub labels: Option<String>,
    pub customer: Option<String>,
}

impl ScopeColumns {
    pub(super) fn of(scope: &AccessScope) -> sql::Result<Self> {
        Ok(match scope {
            AccessScope::Everything {} => Self { labels: None, customer: None },
            AccessScope::Hosts { labels } => Self { labels: Some(json(labels)?), customer: None },
            AccessScope::Customer { customer } => {
                Self { labels: None, customer: Some(customer.as_str().to_owned()) }
            }
        })
    }
}

/// That a row of `hosts` has the labels in this parameter, if there are any.
pub(super) fn has_labels(labels: &str) -> String {
    format!("({labels}::text IS NULL OR coalesce(hosts.labels, '{{}}')::jsonb @> {labels}::text::jsonb)")
}

/// How a scope is kept: NULL is everything.
pub(super) fn scope_column(scope: &AccessScope) -> sql::Result<Option<String>> {
    if scope.is_everything() { Ok(None) } else { json(scope).map(Some) }
}

/// The columns `role` and `scope` of a person or a token.
pub(super) fn read_grant(row: &Row<'_>) -> sql::Result<Grant> {
    let word: String = row.get("role")?;
    let role = Role::ALL.into_iter().find(|role| role.as_str() == word);
    let odd = || Error::unreadable(format!("{word} is no role"));
    let scope = row.get::<_, Option<Json<AccessScope>>>("scope")?.map(|scope| scope.0).unwrap_or_default();
    Grant::new(role.ok_or_else(odd)?, scope).map_err(Error::unreadable)
}

/// Whose a guest is: as its host last reported, or else as the newest document that names it says.
pub(super) fn guest_customer(
    connection: &Connection,
    host: i64,
    guest: GuestUid,
) -> sql::Result<Option<CustomerId>> {
    let sql = "SELECT coalesce(
            (SELECT stored_json(reports.guest_labels) -> $2::text ->> 'customer'
             FROM reports WHERE reports.host = $1),
            (SELECT guest ->> 'customer'
             FROM desired, jsonb_path_query(stored_json(desired.document), '$.guests[*]') AS guest
             WHERE desired.host = $1 AND guest ->> 'uid' = $2
             ORDER BY desired.generation DESC LIMIT 1))";
    let key = params![host, guest.to_string()];
    let customer: Option<String> = connection.prepare_cached(sql)?.query_row(key, |row| row.get(0))?;
    // A document of an earlier hub may name it in a way that is none any more.
    Ok(customer.and_then(|customer| customer.parse().ok()))
}

fn job(connection: &Connection, job: JobId) -> sql::Result<Option<ObjectFacts>> {
    let sql = "SELECT hosts.labels AS labels, jobs.customer AS customer FROM jobs JOIN hosts ON hosts.number = jobs.host
               WHERE jobs.id = $1 AND jobs.guest IS NOT NULL ORDER BY jobs.number LIMIT 1";
    let read = |row: &Row<'_>| {
        let labels = row.get::<_, Option<Json<HostLabels>>>("labels")?.map(|labels| labels.0);
        let customer = row.get::<_, Option<String>>("customer")?.and_then(|customer| customer.parse().ok());
        Ok(ObjectFacts { labels: labels.unwrap_or_default(), customer })
    };
    connection.prepare_cached(sql)?.query_row([Id(job.uuid())], read).optional()
}

#[async_trait]
impl Objects for Postgres {
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
