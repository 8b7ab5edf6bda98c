//! The status file of root's break-glass program.
//!
//! In: what `holdfast-break-glass` wrote of orders that it judged. Out: types that cannot be wrong. The status names an order by the hash of its signed bytes, since a refused one may have no readable
//! id. Deliberately absent: judging an order, which root's program alone does.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::code::ErrorCode;
use crate::id::{CustomerId, JobId, OperatorName};
use crate::job::act::Sha256Text;
pub use crate::job::way::{MINUTES_MAX, OpenMinutes, PersonKey, WayName};
use crate::job::{Reason, UtcSecond};
use crate::json::{self, JsonError};

/// The status file is at most this long.
pub const STATUS_BYTES_MAX: usize = 256 * 1024;

/// Opened orders in a status, and refused ones.
pub const ORDERS_MAX: usize = 16;

/// The version of the status file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum BreakGlassSchema {
    /// The only one so far.
    #[default]
    #[serde(rename = "holdfast.break-glass/v1")]
    V1,
}

/// What root's program says of its orders.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BreakGlassStatus {
    /// Its version.
    pub schema: BreakGlassSchema,
    /// When it was written.
    pub written_at: UtcSecond,
    /// Orders that opened a way, oldest first; the open one is the last.
    pub opened: Vec<OpenedOrder>,
    /// Orders that were refused, oldest first.
    pub refused: Vec<RefusedOrder>,
}

/// An order that opened a way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OpenedOrder {
    /// SHA-256 of its signed bytes.
    pub order: Sha256Text,
    /// Its id.
    pub job: JobId,
    /// The way.
    pub way: WayName,
    /// Customers with guests on the host, as the order names them.
    pub customers: BTreeSet<CustomerId>,
    /// Customers that consented by a signature.
    pub consents: BTreeSet<CustomerId>,
    /// Operators that signed.
    pub signers: BTreeSet<OperatorName>,
    /// Why, as they wrote it.
    pub reason: Reason,
    /// When it was opened.
    pub opened_at: UtcSecond,
    /// When it closes by itself.
    pub closes_at: UtcSecond,
    /// Sessions that began.
    pub sessions: u32,
    /// How it ended; nothing while it is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed: Option<Closed>,
}

/// The end of an opened way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Closed {
    /// When.
    pub at: UtcSecond,
    /// Why.
    pub cause: CloseCause,
}

/// Why a way was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CloseCause {
    /// Its time was over.
    Expired,
    /// Root closed it.
    ByRoot,
}

impl CloseCause {
    /// For people.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Expired => "its time is over",
            Self::ByRoot => "root closed it",
        }
    }
}

/// An order that was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RefusedOrder {
    /// SHA-256 of its signed bytes, or of the file where it has none.
    pub order: Sha256Text,
    /// When.
    pub at: UtcSecond,
    /// The stable code.
    pub code: ErrorCode,
    /// Why, for people.
    pub message: String,
}

impl BreakGlassStatus {
    /// Reads the file.
    ///
    /// # Errors
    /// [`JsonError`], at the first mistake.
    pub fn parse(bytes: &[u8]) -> Result<Self, JsonError> {
        json::parse("the status of break-glass", bytes, STATUS_BYTES_MAX)
    }

    /// The order that is open.
    #[must_use]
    pub fn open(&self) -> Option<&OpenedOrder> {
        self.opened.iter().rev().find(|order| order.closed.is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_open_order_is_the_last_without_an_end() {
        let text = r#"{"schema":"holdfast.break-glass/v1","written_at":"2026-11-21T14:00:00Z","opened":[
            {"order":"ORDER","job":"01906f3c-6b1f-7c1d-9d0a-2f6d1c0b7a01","way":"tunnel","customers":["acme"],"consents":[],
             "signers":["ada"],"reason":"the agent hangs","opened_at":"2026-11-21T13:00:00Z",
             "closes_at":"2026-11-21T14:00:00Z","sessions":1}],"refused":[]}"#;
        let text = text.replace("ORDER", &"a".repeat(64));
        let mut status = BreakGlassStatus::parse(text.as_bytes()).unwrap();
        assert_eq!(status.open().unwrap().way.as_str(), "tunnel");
        let at = status.written_at;
        status.opened[0].closed = Some(Closed { at, cause: CloseCause::Expired });
        assert!(status.open().is_none());
        assert!(BreakGlassStatus::parse(text.replace("sessions", "uses").as_bytes()).is_err());
    }
}
