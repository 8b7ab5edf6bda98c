//! Names of hosts, guests and customers that the hub knows.
//!
//! A guest is known by the report of its host, or by the newest document that was put for the host.

use super::super::sql::{self, Connection};
use crate::store::AlertName;

const HOST: &str = "SELECT EXISTS (SELECT 1 FROM hosts WHERE name = $1 AND status <> 'revoked')";

/// Guests of the newest document of each host.
const IN_DOCUMENTS: &str = "FROM hosts JOIN desired ON desired.host = hosts.number
        AND desired.generation = (SELECT max(generation) FROM desired WHERE host = hosts.number),
    jsonb_path_query(stored_json(desired.document), '$.guests[*]') AS guest
    WHERE hosts.status <> 'revoked'";

/// Guests that hosts reported.
const REPORTED: &str = "FROM hosts JOIN reports ON reports.host = hosts.number,
    jsonb_each(stored_json(reports.guest_labels)) AS guest (uid, labels) WHERE hosts.status <> 'revoked'";

/// Those of the names that nothing has.
pub(super) fn unknown(connection: &Connection, names: Vec<AlertName>) -> sql::Result<Vec<AlertName>> {
    let mut unknown = Vec::new();
    for name in names {
        if !is_known(connection, &name)? {
            unknown.push(name);
        }
    }
    Ok(unknown)
}

fn is_known(connection: &Connection, name: &AlertName) -> sql::Result<bool> {
    let (sql, value) = match name {
        AlertName::Host(value) => (HOST.to_owned(), value),
        AlertName::Guest(value) => {
            let reported = "(guest.labels ->> 'guest' = $1 OR guest.uid = $1)";
            let desired = "(guest ->> 'name' = $1 OR guest ->> 'uid' = $1)";
            (exists(reported, desired), value)
        }
        AlertName::Customer(value) => {
            let (reported, desired) = ("guest.labels ->> 'customer' = $1", "guest ->> 'customer' = $1");
            (exists(reported, desired), value)
        }
    };
    connection.prepare_cached(&sql)?.query_row([value], |row| row.get(0))
}

fn exists(reported: &str, desired: &str) -> String {
    format!(
        "SELECT EXISTS (SELECT 1 {REPORTED} AND {reported}) OR EXISTS (SELECT 1 {IN_DOCUMENTS} AND {desired})"
    )
}
