//! Customers: those that were added, and those that are only named.

use async_trait::async_trait;
use holdfast_protocol::access::AccessScope;
use holdfast_protocol::customer::{
    Contact, CustomerChange, CustomerFields, CustomerOrigin, CustomerView, NewCustomer,
};
use holdfast_protocol::id::CustomerId;

use super::access::{ScopeColumns, has_labels};
use super::alerts::{Json, json};
use super::columns::Time;
use super::events::emit;
use super::sql::{self, Connection, OptionalExtension as _, Row, params};
use super::writer::Tx;
use super::{Failed, Postgres};
use crate::domain::event::{EventKind, NewEvent};
use crate::store::{By, CUSTOMERS_MAX, CustomerError, CustomerUse, Customers, StoreError, WriteError};

/// Each guest with its customer, by the newest document and the last report of each host that was not revoked.
fn named(labels: &str) -> String {
    let inside = has_labels(labels);
    format!(
        "SELECT guest ->> 'customer' AS customer, guest ->> 'uid' AS uid
    FROM hosts JOIN desired ON desired.host = hosts.number,
        jsonb_path_query(stored_json(desired.document), '$.guests[*]') AS guest
    WHERE hosts.status <> 'revoked' AND {inside}
        AND desired.generation = (SELECT max(generation) FROM desired AS newer WHERE newer.host = desired.host)
    UNION
    SELECT guest ->> 'customer', guest ->> 'uid'
    FROM hosts JOIN reports ON reports.host = hosts.number,
        jsonb_path_query(stored_json(reports.guests), '$[*]') AS guest
    WHERE hosts.status <> 'revoked' AND {inside} AND guest ->> 'customer' IS NOT NULL"
    )
}

/// A name that is none any more is left out, so a page may be shorter than its limit.
fn read(row: &Row<'_>) -> sql::Result<Option<CustomerView>> {
    let name: Option<CustomerId> = row.get::<_, String>("name")?.parse().ok();
    let fields = row.get::<_, Option<Json<CustomerFields>>>("body")?.map(|body| body.0);
    let origin = if fields.is_some() { CustomerOrigin::Registered } else { CustomerOrigin::Named };
    let time = |column| row.get::<_, Option<Time>>(column).map(|time| time.map(|time| time.0));
    let version = row.get::<_, Option<i64>>("version")?.unwrap_or(0);
    let (created_at, changed_at, guests) = (time("created_at")?, time("changed_at")?, row.get("guests")?);
    Ok(name.map(|name| CustomerView {
        name,
        origin,
        fields: fields.unwrap_or_default(),
        version: u64::try_from(version).unwrap_or_default(),
        created_at,
        changed_at,
        guests,
    }))
}

fn list(
    connection: &Connection,
    scope: &AccessScope,
    only: Option<&CustomerId>,
    after: Option<&CustomerId>,
    limit: u32,
) -> sql::Result<Vec<CustomerView>> {
    let sql = format!(
        "WITH named AS ({}), all_names AS (
             SELECT name FROM customers WHERE $4::text IS NULL UNION SELECT customer COLLATE \"C\" FROM named)
         SELECT all_names.name AS name, body, version, created_at, changed_at,
             (SELECT count(DISTINCT uid) FROM named WHERE named.customer = all_names.name) AS guests
         FROM all_names LEFT JOIN customers ON customers.name = all_names.name
         WHERE all_names.name COLLATE \"C\" > $1 AND ($2::text IS NULL OR all_names.name = $2)
             AND ($5::text IS NULL OR all_names.name = $5)
         ORDER BY all_names.name COLLATE \"C\" LIMIT $3",
        named("$4")
    );
    let ScopeColumns { labels, customer } = ScopeColumns::of(scope)?;
    let (after, only) = (after.map_or("", CustomerId::as_str), only.map(CustomerId::as_str));
    let statement = connection.prepare_cached(&sql)?;
    let rows: sql::Result<Vec<Option<CustomerView>>> =
        statement.query_map(params![after, only, limit, labels, customer], read)?.collect();
    Ok(rows?.into_iter().flatten().collect())
}

fn one(tx: &Tx<'_>, name: &CustomerId) -> sql::Result<Option<CustomerView>> {
    Ok(list(tx, &AccessScope::Everything {}, Some(name), None, 1)?.pop())
}

/// A customer that was added and is at this version.
fn at_version(tx: &Tx<'_>, name: &CustomerId, version: u64) -> Result<CustomerView, Failed<CustomerError>> {
    let name = name.clone();
    let Some(view) = one(tx, &name)? else { return Err(Failed::Refused(CustomerError::Unknown { name })) };
    match view.origin {
        CustomerOrigin::Named => Err(Failed::Refused(CustomerError::OnlyNamed { name })),
        CustomerOrigin::Registered if view.version != version => {
            Err(Failed::Refused(CustomerError::Moved { name, current: view.version }))
        }
        CustomerOrigin::Registered => Ok(view),
    }
}

fn scopes(tx: &Tx<'_>, name: &CustomerId) -> sql::Result<u32> {
    let sql = "SELECT (SELECT count(*) FROM operators
                   WHERE revoked_at IS NULL AND stored_json(scope) ->> 'customer' = $1::text)
               + (SELECT count(*) FROM machine_tokens
                   WHERE revoked_at IS NULL AND stored_json(scope) ->> 'customer' = $1::text)";
    tx.prepare_cached(sql)?.query_row([name.as_str()], |row| row.get(0))
}

fn log(tx: &Tx<'_>, by: &By, kind: EventKind, message: String) -> sql::Result<()> {
    let (at, actor, correlation) = (by.at, Some(by.operator.clone()), by.correlation);
    emit(tx, &NewEvent { at, kind, host: None, actor, correlation, message })
}

#[async_trait]
impl Customers for Postgres {
    async fn customers_within(
        &self,
        scope: AccessScope,
        only: Option<CustomerId>,
        after: Option<CustomerId>,
        limit: u32,
    ) -> Result<Vec<CustomerView>, StoreError> {
        self.read("list customers", move |connection| {
            list(connection, &scope, only.as_ref(), after.as_ref(), limit)
        })
        .await
    }

    async fn customer_contact(&self, name: CustomerId) -> Result<Option<Contact>, StoreError> {
        self.read("read the contact of a customer", move |connection| contact(connection, &name)).await
    }

    async fn add_customer(
        &self,
        by: By,
        new: NewCustomer,
    ) -> Result<CustomerView, WriteError<CustomerError>> {
        self.mutate("add a customer", by, move |tx, by| {
            let NewCustomer { name, fields } = new;
            let before = one(tx, &name)?;
            if before.as_ref().is_some_and(|view| view.origin == CustomerOrigin::Registered) {
                return Err(Failed::Refused(CustomerError::Taken { name }));
            }
            let sql = "SELECT count(*) FROM customers";
            let count: u32 = tx.prepare_cached(sql)?.query_row([], |row| row.get(0))?;
            if count >= CUSTOMERS_MAX {
                return Err(Failed::Refused(CustomerError::TooMany));
            }
            let sql = "INSERT INTO customers (name, version, created_at, changed_at, body) VALUES ($1, 1, $2, $2, $3)";
            tx.prepare_cached(sql)?.execute(params![name.as_str(), Time(by.at), json(&fields)?])?;
            log(tx, by, EventKind::CustomerAdded, format!("customer {name} was added"))?;
            Ok(CustomerView {
                guests: before.map_or(0, |view| view.guests),
                name,
                origin: CustomerOrigin::Registered,
                fields,
                version: 1,
                created_at: Some(by.at),
                changed_at: Some(by.at),
            })
        })
        .await
    }

    async fn change_customer(
        &self,
        by: By,
        name: CustomerId,
        version: u64,
        change: CustomerChange,
    ) -> Result<CustomerView, WriteError<CustomerError>> {
        self.mutate("change a customer", by, move |tx, by| {
            let view = at_version(tx, &name, version)?;
            let fields = view
                .fields
                .changed(&change)
                .map_err(|error| Failed::Refused(CustomerError::Labels(error)))?;
            let sql =
                "UPDATE customers SET version = version + 1, changed_at = $2, body = $3 WHERE name = $1";
            tx.prepare_cached(sql)?.execute(params![name.as_str(), Time(by.at), json(&fields)?])?;
            log(tx, by, EventKind::CustomerChanged, format!("customer {name} was changed"))?;
            Ok(CustomerView { fields, version: version.saturating_add(1), changed_at: Some(by.at), ..view })
        })
        .await
    }

    async fn remove_customer(
        &self,
        by: By,
        name: CustomerId,
        version: u64,
    ) -> Result<CustomerView, WriteError<CustomerError>> {
        self.mutate("remove a customer", by, move |tx, by| {
            let view = at_version(tx, &name, version)?;
            let (guests, scopes) = (view.guests, scopes(tx, &name)?);
            let mut uses = Vec::new();
            if guests > 0 {
                uses.push(CustomerUse::Guests(guests));
            }
            if scopes > 0 {
                uses.push(CustomerUse::Scopes(scopes));
            }
            if !uses.is_empty() {
                return Err(Failed::Refused(CustomerError::InUse { name, by: uses }));
            }
            tx.prepare_cached("DELETE FROM customers WHERE name = $1")?.execute([name.as_str()])?;
            log(tx, by, EventKind::CustomerRemoved, format!("customer {name} was removed"))?;
            Ok(view)
        })
        .await
    }
}

/// How a customer that was added is reached outside of the hub.
pub(super) fn contact(connection: &Connection, name: &CustomerId) -> sql::Result<Option<Contact>> {
    let sql = "SELECT body FROM customers WHERE name = $1";
    let read = |row: &Row<'_>| Ok(row.get::<_, Json<CustomerFields>>(0)?.0);
    let fields = connection.prepare_cached(sql)?.query_row([name.as_str()], read).optional()?;
    Ok(fields.and_then(|fields| fields.contact))
}
