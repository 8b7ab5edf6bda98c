//! Objections of customers to signed jobs.
//!
//! | call | request | answer |
//! | --- | --- | --- |
//! | `GET /v1/jobs` | | [`crate::operator::Page`] of [`GuestJobView`] |
//! | `POST /v1/jobs/{job}/objection` | [`ObjectionRequest`] | [`GuestJobView`] |
//!
//! An objection is a message. It stops nothing: the job was signed, and its host obeys signatures. Operators see it in
//! lists of jobs and among the events, and one of them signs a cancel.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::desired::Reason;
use crate::id::{CustomerId, GuestUid, HostId, HostName, JobId, OperatorName};
use crate::job::{JobState, Verb};

/// Objects to a signed job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ObjectionRequest {
    /// Why.
    pub reason: Reason,
}

/// An objection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ObjectionView {
    /// Who objects.
    pub by: OperatorName,
    /// Why.
    pub reason: Reason,
    /// When.
    pub at: Timestamp,
}

/// A signed job about a guest, as its host reported it and without its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GuestJobView {
    /// Its id.
    pub id: JobId,
    /// The host's id.
    pub host_id: HostId,
    /// The host's name.
    pub host: HostName,
    /// The guest.
    pub guest: GuestUid,
    /// Its customer, as known when the host took the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub customer: Option<CustomerId>,
    /// What was ordered, once its signatures held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verb: Option<Verb>,
    /// Its state.
    pub state: JobState,
    /// When the host read it.
    pub taken_at: Timestamp,
    /// When its delay ends, while it waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_at: Option<Timestamp>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// Who objects to it, the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objections: Vec<ObjectionView>,
}

/// The schema of [`JobNotice`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum JobNoticeSchema {
    /// The first.
    #[serde(rename = "holdfast.job-notice/v1")]
    V1,
}

/// The notice to a customer that a destructive job waits for one of its guests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JobNotice {
    /// The schema.
    pub schema: JobNoticeSchema,
    /// The customer.
    pub customer: CustomerId,
    /// When the hub heard of the job.
    pub at: Timestamp,
    /// The job.
    pub job: JobId,
    /// What it does.
    pub verb: Verb,
    /// The host's name.
    pub host: HostName,
    /// The guest.
    pub guest: GuestUid,
    /// When its delay ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_at: Option<Timestamp>,
    /// What it means and what can be done, for people.
    pub text: String,
}
