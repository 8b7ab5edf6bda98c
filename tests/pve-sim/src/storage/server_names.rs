//! Names of snapshots on a backup server, and of the server itself.

use super::config::Definition;
use crate::clock::{parse_archive_stamp, stamp};

/// The port of a backup server when the entry names no other.
pub const USUAL_PORT: &str = "8007";

/// `2026-11-21T04:36:17Z`
#[must_use]
pub fn snapshot_stamp(seconds: i64) -> String {
    format!("{}Z", stamp(seconds).replace(' ', "T"))
}

/// The reverse of it.
#[must_use]
pub fn parse_snapshot_stamp(text: &str) -> Option<i64> {
    let seconds = parse_archive_stamp(&text.strip_suffix('Z')?.replace('T', "-").replace(':', "_"))?;
    (snapshot_stamp(seconds) == text).then_some(seconds)
}

/// The guest and the time of `ct/300/2026-11-21T04:36:17Z`.
#[must_use]
pub fn parse_snapshot(name: &str) -> Option<(u32, i64)> {
    let (vmid, at) = name.strip_prefix("ct/")?.split_once('/')?;
    let number = vmid.parse().ok().filter(|number: &u32| number.to_string() == vmid)?;
    Some((number, parse_snapshot_stamp(at)?))
}

/// Whether a definition is of a backup server.
#[must_use]
pub fn is_one(definition: &Definition) -> bool {
    definition.kind == "pbs"
}

/// The datastore and the namespace of an entry.
#[must_use]
pub fn repository(definition: &Definition) -> String {
    let of = |name: &str| definition.get(name).unwrap_or_default();
    let port = definition.get("port").filter(|port| *port != USUAL_PORT);
    let host = port.map_or_else(|| of("server").to_owned(), |port| format!("{}:{port}", of("server")));
    format!("{}@{host}:{}", definition.get("username").unwrap_or("root@pam"), of("datastore"))
}
