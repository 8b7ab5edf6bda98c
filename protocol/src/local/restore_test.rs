//! Reports of scratch guests, and restore tests as guests see them.
//!
//! The report comes from the scratch guest, by its own token, about itself: it cannot speak for the guest it is a copy of.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::window::Canary;
use crate::id::{GuestUid, OperationId, StackName};

/// `POST /v1/restore-tests/report`: what the controller of the scratch guest found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TestReport {
    /// Which guest; it can only be the token's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guest: Option<GuestUid>,
    /// Each stack that was there.
    #[schemars(length(max = 32))]
    pub stacks: Vec<StackCheck>,
    /// The canary files as they were found.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 17))]
    pub canaries: Vec<Canary>,
    /// Ports of the host that let the scratch guest in although none but the agent's should: it is not alone then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub reached: Vec<u16>,
}

/// `POST /v1/restore-tests/report`: the report is written down.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reported {}

/// One stack in a test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StackCheck {
    /// Which.
    pub stack: StackName,
    /// How it is.
    pub health: StackHealth,
    /// From its start to this answer, in milliseconds.
    pub took_ms: u64,
}

/// How a stack is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "snake_case", tag = "is")]
pub enum StackHealth {
    /// It runs, and its own check says so.
    Healthy,
    /// It runs, and has no check of its own.
    Runs,
    /// It does not run, or its check says no.
    Unhealthy {
        /// In its words.
        #[schemars(length(min = 1, max = 512))]
        why: String,
    },
}

/// `GET /v1/restore-tests`: what was found when backups of this guest were restored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RestoreTestsView {
    /// The last ones, the newest first.
    pub tests: Vec<RestoreTestView>,
}

/// One restore test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RestoreTestView {
    /// Its operation.
    pub id: OperationId,
    /// The backup, by the operation that took it.
    pub backup: OperationId,
    /// When it ended.
    pub at: Timestamp,
    /// What it showed.
    pub verdict: TestVerdict,
    /// Why, in words.
    #[schemars(length(min = 1, max = 512))]
    pub why: String,
    /// From the beginning of the restore to the last answer, in seconds.
    pub took_s: u64,
}

/// What a restore test showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TestVerdict {
    /// It came back: every stack healthy, every canary as it was.
    Proved,
    /// It boots; nothing in the guest could report more.
    BootedOnly,
    /// It did not come back.
    Failed,
    /// It could not be tried.
    NotRun,
}

impl TestVerdict {
    /// For people.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Proved => "proved",
            Self::BootedOnly => "booted only",
            Self::Failed => "failed",
            Self::NotRun => "not run",
        }
    }
}
