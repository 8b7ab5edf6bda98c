//! The document of a restore certificate.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::{
    CustomerId, GuestName, GuestUid, HostId, HostName, KeyFingerprint, MountPath, NodeName, OperationId,
    StackName, StorageName,
};
use crate::job::UtcSecond;
use crate::job::act::{ArchiveText, Sha256Text};
use crate::protection::{Tier, Took};

/// The version of a document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum CertificateSchema {
    /// The only one so far.
    #[default]
    #[serde(rename = "holdfast.restore_certificate/v1")]
    V1,
}

/// What a host certifies of one backup of one guest. Times are in UTC, in whole seconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RestoreCertificate {
    /// The version of the document.
    pub schema: CertificateSchema,
    /// The guest that the backup is of.
    pub guest: CertifiedGuest,
    /// The host that took and tested it.
    pub host: CertifiedHost,
    /// What was backed up.
    pub backup: CertifiedBackup,
    /// How it was restored and checked.
    pub test: CertifiedTest,
    /// When the document was made.
    pub issued_at: UtcSecond,
    /// The version of the agent.
    #[schemars(length(min = 1, max = 64))]
    pub agent_version: String,
}

/// The guest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CertifiedGuest {
    /// Its id, the same on every host.
    pub uid: GuestUid,
    /// Its name.
    pub name: GuestName,
    /// Its owner.
    pub customer: CustomerId,
}

/// The host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CertifiedHost {
    /// Its id at the hub.
    pub id: HostId,
    /// Its name at the hub.
    pub name: HostName,
    /// Its name in Proxmox.
    pub node: NodeName,
}

/// The backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CertifiedBackup {
    /// The operation that took it.
    pub operation: OperationId,
    /// Its name in Proxmox.
    pub archive: ArchiveText,
    /// When it was taken, by Proxmox's clock.
    pub taken_at: UtcSecond,
    /// Its size, as its storage lists it.
    pub bytes: u64,
    /// The storage that holds it.
    pub storage: StorageName,
    /// The tier that it was taken for, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<Tier>,
    /// The key that it is encrypted with, as its storage lists it; none for a backup in the clear.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<KeyFingerprint>,
}

/// The restore test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CertifiedTest {
    /// Its operation.
    pub operation: OperationId,
    /// When it began.
    pub began_at: UtcSecond,
    /// When its verdict was given.
    pub ended_at: UtcSecond,
    /// What it showed.
    pub verdict: Verdict,
    /// The reason, in words.
    #[schemars(length(min = 1, max = 512))]
    pub reason: String,
    /// What was checked. Each of them passed.
    #[schemars(length(min = 1, max = 51))]
    pub checks: Vec<Check>,
    /// How long the parts of the return took.
    pub took: Took,
}

impl CertifiedTest {
    /// The measured time of a return in seconds, where both parts were measured.
    #[must_use]
    pub fn return_s(&self) -> Option<u64> {
        Some(self.took.restore_s?.saturating_add(self.took.up_s?))
    }
}

/// What a test showed. Nothing else is certified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It came back: every stack runs, every canary is as it was, and at least one of them was checked.
    Proved,
}

impl Verdict {
    /// For people.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Proved => "proved",
        }
    }
}

/// One check that passed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "snake_case", tag = "check")]
pub enum Check {
    /// The archive was restored whole into a scratch guest.
    Restored {},
    /// The scratch guest had no network but the agent's.
    Isolated {},
    /// It started, and its guest agent reported.
    Reported {},
    /// A stack of the guest.
    Stack {
        /// Its name.
        name: StackName,
        /// How it was.
        state: StackState,
        /// From its start to that answer, in milliseconds.
        took_ms: u64,
    },
    /// A file with random content, with the same content as when the backup was taken.
    Canary {
        /// The file system that holds it; none for the root disk.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mount: Option<MountPath>,
        /// SHA-256 of its content, then and now.
        sha256: Sha256Text,
    },
}

/// How a stack was that passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StackState {
    /// It ran, and its own check was good.
    Healthy,
    /// It ran, and has no check of its own.
    Runs,
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Restored {} => f.write_str("archive restored whole into a scratch guest"),
            Self::Isolated {} => f.write_str("scratch guest had no network but the agent's"),
            Self::Reported {} => f.write_str("guest started and its guest agent reported"),
            Self::Stack { name, state, took_ms } => {
                let state = match state {
                    StackState::Healthy => "healthy by its own check",
                    StackState::Runs => "runs, has no check of its own",
                };
                write!(f, "stack {name}: {state}, {}.{:03} s", took_ms / 1000, took_ms % 1000)
            }
            Self::Canary { mount, sha256 } => {
                let place = mount.as_ref().map_or("root disk", |mount| mount.as_str());
                let short: String = sha256.as_str().chars().take(12).collect();
                write!(f, "canary on {place}: unchanged, sha256 {short}...")
            }
        }
    }
}
