//! The check of a term in the transaction of its effect.

use super::columns::Id;
use super::sql::{self, Connection, params};
use crate::store::Fence;

/// Whether the term is not over. Its holder writes at this moment, and takes turns with whoever takes leases.
pub(super) fn holds(connection: &Connection, fence: Fence) -> sql::Result<bool> {
    let sql = "SELECT 1 FROM hub_leases WHERE duty = $1 AND holder = $2 AND epoch = $3 AND expires_at > database_ms()";
    let term = params![fence.duty.as_str(), Id(fence.holder.uuid()), fence.epoch.number()];
    connection.prepare_cached(sql)?.exists(term)
}
