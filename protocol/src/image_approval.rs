//! Image approvals for all hosts, as the hub holds them.
//!
//! | call | request | answer |
//! | --- | --- | --- |
//! | `POST /v1/image-approvals` | [`ImageApprovalSubmit`] | [`ImageApprovalView`] |
//! | `GET /v1/image-approvals` | | page of [`ImageApprovalView`], newest first |
//! | `GET /v1/image-approvals/{job}` | | [`ImageApprovalDetail`] |
//! | `POST /v1/image-approvals/{job}/withdraw` | | [`ImageApprovalView`] |
//!
//! What an approval orders is [`crate::job::ImageApproval`]. The hub reads it to show it, and checks no signature.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::{GoldenVersion, HostName, JobId, OperatorName};
use crate::job::JobReport;
use crate::job::act::Sha256Text;

/// A signed approval that is left at the hub.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ImageApprovalSubmit {
    /// The approval's id, as its payload says.
    pub job: JobId,
    /// The signed approval, as `holdfast sign` wrote it.
    pub blob: String,
}

/// An approval, with how many hosts admitted it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ImageApprovalView {
    /// Its id.
    pub id: JobId,
    /// The image, as the signed bytes name it.
    pub version: GoldenVersion,
    /// What its bytes hash to.
    pub sha256: Sha256Text,
    /// Who left it here last.
    pub by: OperatorName,
    /// When.
    pub submitted_at: Timestamp,
    /// When it ends. A host that gets it later refuses it.
    pub expires_at: Timestamp,
    /// When it was withdrawn. Hosts that admitted it before keep it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub withdrawn_at: Option<Timestamp>,
    /// How many hosts admitted it.
    pub admitted: u32,
    /// How many hosts have not reported on it.
    pub on_its_way: u32,
    /// How many hosts refused it, or it came to nothing there.
    pub refused: u32,
}

/// An approval with each host, and its bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ImageApprovalDetail {
    /// The approval.
    pub approval: ImageApprovalView,
    /// The signed text, to be checked, or signed by another operator.
    pub blob: String,
    /// The hosts that it is for, by name.
    pub hosts: Vec<ImageApprovalHost>,
}

/// One host of an approval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ImageApprovalHost {
    /// Its name.
    pub host: HostName,
    /// What it says of the approval; none before it has spoken of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<JobReport>,
}
