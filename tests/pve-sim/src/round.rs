//! The last round of the status daemon.

use std::collections::BTreeMap;

use serde_json::Value;

/// What the status daemon found in its last round: rows of guests, and when.
#[derive(Debug, Default)]
pub struct Round {
    pub(crate) at_s: Option<i64>,
    pub(crate) rows: BTreeMap<u32, Value>,
}
