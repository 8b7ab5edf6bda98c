//! Names of hosts, guests and customers that the hub knows.
//!
//! A guest is known by the report of its host, or by the newest document that was put for the host.

use rusqlite::Connection;

use crate::store::AlertName;

const HOST: &str = "SELECT EXISTS (SELECT 1 FROM hosts WHERE name = ?1 AND status <> 'revoked')";

/// Guests of the newest document of each host.
const IN_DOCUMENTS: &str = "FROM hosts JOIN desired ON desired.host = hosts.number
        AND desired.generation = (SELECT max(generation) FROM desired WHERE host = hosts.number),
    json_each(desired.document, '$.guests') AS guest
    WHERE hosts.status <> 'revoked'";

/// Guests that hosts reported.
const REPORTED: &str = "FROM hosts JOIN reports ON reports.host = hosts.number,
    json_each(reports.guest_labels) AS guest WHERE hosts.status <> 'revoked'";

/// Those of the names that nothing has.
pub(super) fn unknown(connection: &Connection, names: Vec<AlertName>) -> rusqlite::Result<Vec<AlertName>> {
    let mut unknown = Vec::new();
    for name in names {
        if !is_known(connection, &name)? {
            unknown.push(name);
        }
    }
    Ok(unknown)
}

fn is_known(connection: &Connection, name: &AlertName) -> rusqlite::Result<bool> {
    let (sql, value) = match name {
        AlertName::Host(value) => (HOST.to_owned(), value),
        AlertName::Guest(value) => {
            let reported = "(json_extract(guest.value, '$.guest') = ?1 OR guest.key = ?1)";
            let desired =
                "(json_extract(guest.value, '$.name') = ?1 OR json_extract(guest.value, '$.uid') = ?1)";
            (exists(reported, desired), value)
        }
        AlertName::Customer(value) => {
            let of_customer = "json_extract(guest.value, '$.customer') = ?1";
            (exists(of_customer, of_customer), value)
        }
    };
    connection.prepare_cached(&sql)?.query_row([value], |row| row.get(0))
}

fn exists(reported: &str, desired: &str) -> String {
    format!(
        "SELECT EXISTS (SELECT 1 {REPORTED} AND {reported}) OR EXISTS (SELECT 1 {IN_DOCUMENTS} AND {desired})"
    )
}
