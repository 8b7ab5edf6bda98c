//! Subjects of conditions.
//!
//! A subject names no host: it belongs to the host that reports it, or to the hub. So a host cannot raise a condition
//! on another one.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::escrow::CodeNumber;
use crate::id::{GuestUid, JobId, PolicyName, ReceiverName, StorageName, TargetName, TunnelName};
use crate::protection::Tier;
use crate::text::texts;

texts! {
    /// A disk, by the serial number that it reports.
    DiskSerial, 1..=64, "a disk's serial number is 1 to 64 letters, digits, '.', '_', ':' and '-'",
        |text| text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._:-".contains(&b));
    /// A token, by its name: of an operator, or in Proxmox, such as `holdfast@pve!allocate`.
    TokenName, 1..=128, "a token's name is 1 to 128 letters, digits, '.', '_', '@', '!' and '-'",
        |text| text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._@!-".contains(&b));
}

/// What a certificate is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CertificateUse {
    /// A host shows it to the hub.
    Host,
    /// The hub shows it to hosts and operators.
    Hub,
    /// An agent shows it to its guests.
    GuestApi,
}

/// What a condition is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Subject {
    /// The host that reports.
    Host {},
    /// A guest of it.
    Guest {
        /// Which.
        uid: GuestUid,
    },
    /// A tier of a guest's protection.
    Tier {
        /// Of which guest.
        uid: GuestUid,
        /// Which.
        tier: Tier,
    },
    /// A backup policy of its document.
    Policy {
        /// Which.
        policy: PolicyName,
    },
    /// A storage target of its document.
    StorageTarget {
        /// Which.
        target: TargetName,
    },
    /// A storage of Proxmox.
    Storage {
        /// Which.
        storage: StorageName,
    },
    /// A disk of it.
    Disk {
        /// Which.
        serial: DiskSerial,
    },
    /// A signed job for it.
    Job {
        /// Which.
        job: JobId,
    },
    /// A recovery code on paper.
    RecoveryCode {
        /// Its number on this host.
        code: CodeNumber,
    },
    /// A certificate.
    Certificate {
        /// What it is for.
        of: CertificateUse,
    },
    /// A token.
    Token {
        /// Its name.
        token: TokenName,
    },
    /// A channel of the hub for alerts.
    Receiver {
        /// Which.
        receiver: ReceiverName,
    },
    /// A tunnel of it.
    Tunnel {
        /// Which.
        tunnel: TunnelName,
    },
    /// The hub.
    Hub {},
}

/// The kinds of subjects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SubjectKind {
    /// [`Subject::Host`].
    Host,
    /// [`Subject::Guest`].
    Guest,
    /// [`Subject::Tier`].
    Tier,
    /// [`Subject::Policy`].
    Policy,
    /// [`Subject::StorageTarget`].
    StorageTarget,
    /// [`Subject::Storage`].
    Storage,
    /// [`Subject::Disk`].
    Disk,
    /// [`Subject::Job`].
    Job,
    /// [`Subject::RecoveryCode`].
    RecoveryCode,
    /// [`Subject::Certificate`].
    Certificate,
    /// [`Subject::Token`].
    Token,
    /// [`Subject::Receiver`].
    Receiver,
    /// [`Subject::Tunnel`].
    Tunnel,
    /// [`Subject::Hub`].
    Hub,
}

impl SubjectKind {
    /// As written on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Guest => "guest",
            Self::Tier => "tier",
            Self::Policy => "policy",
            Self::StorageTarget => "storage_target",
            Self::Storage => "storage",
            Self::Disk => "disk",
            Self::Job => "job",
            Self::RecoveryCode => "recovery_code",
            Self::Certificate => "certificate",
            Self::Token => "token",
            Self::Receiver => "receiver",
            Self::Tunnel => "tunnel",
            Self::Hub => "hub",
        }
    }
}

impl Subject {
    /// Its kind.
    #[must_use]
    pub const fn kind(&self) -> SubjectKind {
        match self {
            Self::Host {} => SubjectKind::Host,
            Self::Guest { .. } => SubjectKind::Guest,
            Self::Tier { .. } => SubjectKind::Tier,
            Self::Policy { .. } => SubjectKind::Policy,
            Self::StorageTarget { .. } => SubjectKind::StorageTarget,
            Self::Storage { .. } => SubjectKind::Storage,
            Self::Disk { .. } => SubjectKind::Disk,
            Self::Job { .. } => SubjectKind::Job,
            Self::RecoveryCode { .. } => SubjectKind::RecoveryCode,
            Self::Certificate { .. } => SubjectKind::Certificate,
            Self::Token { .. } => SubjectKind::Token,
            Self::Receiver { .. } => SubjectKind::Receiver,
            Self::Tunnel { .. } => SubjectKind::Tunnel,
            Self::Hub {} => SubjectKind::Hub,
        }
    }

    /// The guest that it concerns, where it concerns one.
    #[must_use]
    pub const fn guest(&self) -> Option<GuestUid> {
        match self {
            Self::Guest { uid } | Self::Tier { uid, .. } => Some(*uid),
            Self::Host {}
            | Self::Policy { .. }
            | Self::StorageTarget { .. }
            | Self::Storage { .. }
            | Self::Disk { .. }
            | Self::Job { .. }
            | Self::RecoveryCode { .. }
            | Self::Certificate { .. }
            | Self::Token { .. }
            | Self::Receiver { .. }
            | Self::Tunnel { .. }
            | Self::Hub {} => None,
        }
    }
}

impl fmt::Display for SubjectKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One line without spaces, for labels: the kind, then the id.
impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.kind();
        match self {
            Self::Host {} | Self::Hub {} => write!(f, "{kind}"),
            Self::Guest { uid } => write!(f, "{kind}:{uid}"),
            Self::Tier { uid, tier } => write!(f, "{kind}:{uid}:{tier}"),
            Self::Policy { policy } => write!(f, "{kind}:{policy}"),
            Self::StorageTarget { target } => write!(f, "{kind}:{target}"),
            Self::Storage { storage } => write!(f, "{kind}:{storage}"),
            Self::Disk { serial } => write!(f, "{kind}:{}", serial.as_str()),
            Self::Job { job } => write!(f, "{kind}:{job}"),
            Self::RecoveryCode { code } => write!(f, "{kind}:{code}"),
            Self::Certificate { of } => write!(f, "{kind}:{}", of.as_str()),
            Self::Token { token } => write!(f, "{kind}:{}", token.as_str()),
            Self::Receiver { receiver } => write!(f, "{kind}:{receiver}"),
            Self::Tunnel { tunnel } => write!(f, "{kind}:{tunnel}"),
        }
    }
}

impl CertificateUse {
    /// As written on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Hub => "hub",
            Self::GuestApi => "guest_api",
        }
    }
}
