//! Parked operations, as `agentd parked list` shows them.

use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::id::{GuestName, GuestUid, OperationId, Vmid};
use holdfast_protocol::operation::OperationKind;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// One parked operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ParkedEntry {
    pub operation: OperationId,
    /// How long its journal is: if it has grown since, the answer is void.
    pub entries: u32,
    /// What it did.
    pub kind: OperationKind,
    /// To which guest.
    pub guest: GuestUid,
    /// That guest's name.
    pub name: GuestName,
    /// Its number, once it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vmid: Option<Vmid>,
    /// At which step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// Whether it was doing that step or taking it back.
    pub way: Way,
    pub problem: ErrorBody,
    /// What a person runs or looks at.
    pub remedy: String,
    pub since: Timestamp,
}

/// Which way an operation was going.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// It was doing its steps.
    Forth,
    /// It was taking them back.
    Back,
}
