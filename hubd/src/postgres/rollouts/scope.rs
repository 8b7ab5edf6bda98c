//! Rollouts with hosts of a scope, and which hosts these are.

use std::collections::BTreeSet;

use holdfast_protocol::access::AccessScope;
use holdfast_protocol::id::HostName;

use super::super::access::{ScopeColumns, has_labels};
use super::super::columns::Text;
use super::super::sql::{self, Connection, Row, params};

/// The names of the hosts of a rollout that are inside, by its number.
pub(super) type Inside = (u32, BTreeSet<HostName>);

/// The newest first; of one number alone where one is given. No host lies in the scope of a customer.
pub(super) fn rollouts(
    connection: &Connection,
    scope: &AccessScope,
    only: Option<u32>,
) -> sql::Result<Vec<Inside>> {
    let ScopeColumns { labels, customer } = ScopeColumns::of(scope)?;
    if customer.is_some() {
        return Ok(Vec::new());
    }
    let sql = format!(
        "SELECT rollout_hosts.rollout AS rollout, hosts.name AS name
         FROM rollout_hosts JOIN hosts ON hosts.number = rollout_hosts.host
         WHERE ($1::bigint IS NULL OR rollout_hosts.rollout = $1) AND {}
         ORDER BY rollout_hosts.rollout DESC, hosts.name",
        has_labels("$2")
    );
    let read = |row: &Row<'_>| Ok((row.get("rollout")?, row.get::<_, Text<HostName>>("name")?.0));
    let statement = connection.prepare_cached(&sql)?;
    let rows: sql::Result<Vec<(u32, HostName)>> = statement.query_map(params![only, labels], read)?.collect();
    let mut found: Vec<Inside> = Vec::new();
    for (number, name) in rows? {
        match found.last_mut() {
            Some((last, names)) if *last == number => {
                names.insert(name);
            }
            Some(_) | None => found.push((number, BTreeSet::from([name]))),
        }
    }
    Ok(found)
}
