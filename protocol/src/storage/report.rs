//! How a target stands on its host.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{StorageClass, StorageRole};
use crate::id::TargetName;

/// One target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TargetReport {
    /// Its name.
    pub name: TargetName,
    /// What it is, in words.
    pub medium: String,
    /// What it is for.
    pub role: StorageRole,
    /// How fast it is said to be.
    pub class: StorageClass,
    /// What stands on its sticker, where the document names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// How it stands.
    pub standing: TargetStanding,
    /// Since when.
    pub since: Timestamp,
    /// Why, and who must do what; empty where all is well.
    pub reason: String,
    /// How its entry in Proxmox differs from what was approved, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub entry: Vec<String>,
    /// The device it is on, while it is mounted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// Durable writes of 4 KiB in a second, as measured when it was attached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iops: Option<u32>,
}

/// How a target stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TargetStanding {
    /// It is mounted, and is what it should be.
    Mounted,
    /// It is mounted, and cannot be told apart from an empty one yet.
    Unmarked,
    /// Proxmox reaches it by itself.
    ByProxmox,
    /// It waits for an operator's signature.
    Held,
    /// It was not there since the agent started.
    Absent,
    /// It was there, and went away.
    Dropped,
    /// Something else is there in its place.
    Wrong,
    /// The helper does not mount it.
    Refused,
    /// An operator let it go.
    Detached,
}

impl TargetStanding {
    /// As it stands in the report.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Mounted => "mounted",
            Self::Unmarked => "unmarked",
            Self::ByProxmox => "by-proxmox",
            Self::Held => "held",
            Self::Absent => "absent",
            Self::Dropped => "dropped",
            Self::Wrong => "wrong",
            Self::Refused => "refused",
            Self::Detached => "detached",
        }
    }

    /// Whether what lies on it is out of reach, although it should not be.
    #[must_use]
    pub const fn is_gone(self) -> bool {
        matches!(self, Self::Absent | Self::Dropped | Self::Wrong | Self::Refused)
    }
}
