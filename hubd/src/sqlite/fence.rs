//! The check of a term in the transaction of its effect.

use rusqlite::{Connection, params};

use super::columns::Id;
use crate::store::Fence;

/// Whether the term is not over.
pub(super) fn holds(connection: &Connection, fence: Fence) -> rusqlite::Result<bool> {
    let sql = "SELECT 1 FROM hub_leases WHERE duty = ?1 AND holder = ?2 AND epoch = ?3 AND expires_at > 0";
    let epoch = i64::try_from(fence.epoch.number()).unwrap_or(i64::MAX);
    connection.prepare_cached(sql)?.exists(params![fence.duty.as_str(), Id(fence.holder.uuid()), epoch])
}
