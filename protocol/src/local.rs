//! The API that an agent offers its guests, over HTTPS.
//!
//! The token identifies the guest, never the request. Answers travel in the common envelope.
//!
//! | call | request | answer |
//! | --- | --- | --- |
//! | `POST /v1/claim` | [`ClaimRequest`] | [`crate::bootstrap::Bootstrap`] |
//! | `POST /v1/hello` | [`Hello`] | [`HelloAnswer`] |
//! | `GET /v1/self` | | [`SelfView`] |
//! | `GET /v1/storage` | | [`StorageView`] |
//! | `GET /v1/operations/{id}` | | [`crate::operation::OperationView`] |
//! | `DELETE /v1/operations/{id}` | | [`crate::operation::OperationView`] |
//! | `POST /v1/snapshots` | [`work::SnapshotRequest`] | [`work::Accepted`] |
//! | `GET /v1/snapshots` | | [`work::SnapshotsView`] |
//! | `DELETE /v1/snapshots/{name}` | | [`work::Accepted`] |
//! | `POST /v1/rollback` | [`work::RollBackRequest`] | [`work::Accepted`] |
//! | `POST /v1/backups` | [`work::BackupRequest`] | [`work::Accepted`] |
//! | `GET /v1/backups` | | [`work::BackupsView`] |
//! | `GET /v1/backups/{id}` | | [`work::BackupView`] |
//! | `POST /v1/quiesce-windows` | [`window::WindowRequest`] | [`work::Accepted`] |
//! | `GET /v1/quiesce-windows/{id}` | | [`window::WindowView`] |
//! | `PUT /v1/quiesce-windows/{id}/quiesced` | [`window::Quiesced`] | [`window::WindowView`] |
//! | `PUT /v1/quiesce-windows/{id}/released` | [`window::Released`] | [`window::WindowView`] |
//! | `DELETE /v1/quiesce-windows/{id}` | | [`window::WindowView`] |
//! | `GET /v1/restore-tests` | | [`restore_test::RestoreTestsView`] |
//! | `POST /v1/restore-tests/report` | [`restore_test::TestReport`] | [`restore_test::Reported`] |
//! | `GET /v1/desired` | | [`desired::DesiredView`] |
//! | `GET /v1/artifacts/{sha256}` | | the bytes themselves, without an envelope |
//! | `GET /v1/audit` | | [`audit::AuditPage`] |
//! | `GET /v1/openapi.json` | | [`openapi::document`] |
//! | `GET /healthz` | | [`Healthy`] |
//!
//! Every call that requests work or cancels it takes the header `Idempotency-Key`: the same key with the same request
//! is answered with the same work, and with another request it is refused. Claim and hello repeat safely by themselves.

pub mod audit;
pub mod calls;
pub mod desired;
pub mod due_backups;
pub mod hello;
pub mod label;
pub mod openapi;
pub mod restore_test;
pub mod window;
pub mod work;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::desired::{GuestNetwork, GuestSize, VolumeKind};
use crate::id::{CustomerId, GoldenVersion, GuestName, GuestUid, MountPath, VolumeName};
use crate::job::act::Sha256Text;
use crate::report::Health;
use crate::root_disk::RootDiskData;
use crate::secret::Secret;
use crate::size::DiskGib;

/// The port of the local API.
pub const PORT: u16 = 8443;

/// A request's body is at most 16 KiB.
pub const BODY_BYTES_MAX: usize = 16 * 1024;

/// The agent serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Healthy {
    /// That it does.
    pub ok: Serving,
}

/// The one thing that an agent which answers can say of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Serving {
    /// It serves.
    Serving,
}

/// Trades the claim for the token.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClaimRequest {
    /// The claim of the bootstrap token.
    pub claim: Secret,
    /// 32 random bytes that the controller made and wrote to its disk before its first request. After a lost answer,
    /// the same claim with the same proof is the same redeemer, and gets a fresh token in place of the unseen one. Any
    /// other repeat is a second redeemer, and freezes both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redeemer: Option<Secret>,
}

/// The controller is up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Hello {
    /// The controller's version.
    #[schemars(length(min = 1, max = 64))]
    pub version: String,
    /// How the controller is, and what it stopped itself.
    pub health: Health,
    /// The kernel's boot id, so that a reboot is seen.
    #[schemars(length(min = 1, max = 64))]
    pub boot_id: String,
    /// SHA-256 of the controller's own program, where it could read that. A claim, not a proof.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<Sha256Text>,
    /// Stacks that should run and are not well. None of it, when all are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub unwell: Vec<hello::UnwellStack>,
    /// How the last security upgrade went, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upgrade: Option<hello::UpgradeReport>,
    /// What only a restart brings into use. None of it, when nothing waits for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart_needed: Option<hello::RestartNeeded>,
    /// Data on the root disk outside of volumes, once that was looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root_disk: Option<RootDiskData>,
}

/// What the agent answers to a hello.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HelloAnswer {
    /// When to say hello again, in seconds.
    pub again_in_s: u32,
}

/// Who am I?
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SelfView {
    /// The guest.
    pub uid: GuestUid,
    /// Its name.
    pub name: GuestName,
    /// Who it belongs to.
    pub customer: CustomerId,
    /// The golden image it was made from.
    pub golden: GoldenVersion,
    /// How old that image is, where the host knows when it was built.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub golden_age: Option<ImageAge>,
    /// Its size, as desired.
    pub size: GuestSize,
    /// Its network, as desired.
    pub network: GuestNetwork,
    /// The agent's version.
    pub agent_version: String,
    /// What this token may do in a while.
    pub limits: Limits,
}

/// How old a golden image is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ImageAge {
    /// When it was built.
    pub built_at: Timestamp,
    /// Whole days since then, by the host's clock.
    pub days: u32,
}

/// What a token may do in a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Requests a minute.
    pub requests_per_minute: u32,
    /// Connections at once.
    pub connections: u32,
    /// Bytes of a request's body.
    pub body_bytes: u32,
}

/// The mounts of this guest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StorageView {
    /// The root disk's size.
    pub rootfs_gib: DiskGib,
    /// The volumes besides the root disk.
    pub volumes: Vec<MountView>,
}

/// One volume of this guest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MountView {
    /// What the document calls it.
    pub name: VolumeName,
    /// Where it is mounted.
    pub mount: MountPath,
    /// Its size.
    pub size_gib: DiskGib,
    /// Hot or bulk.
    pub kind: VolumeKind,
    /// Whether it is there.
    pub state: MountState,
}

/// Whether a volume is there, as the host was last seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MountState {
    /// Proxmox has it attached at its path.
    Attached,
    /// The document names it, and it is not attached.
    Desired,
    /// The guest was not seen since the agent began, or its configuration could not be read.
    Unknown,
}
