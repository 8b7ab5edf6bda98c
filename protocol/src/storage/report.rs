//! The status of a storage target on its host.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{StorageClass, StorageRole};
use crate::id::{KeyFingerprint, TargetName};

/// One target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TargetReport {
    /// Its name.
    pub name: TargetName,
    /// What it is, in words.
    pub backend: String,
    /// What it is for.
    pub role: StorageRole,
    /// How fast it is said to be.
    pub class: StorageClass,
    /// The text on its sticker, where the document names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Its status.
    pub status: TargetStatus,
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
    /// What a backup server says of our backups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub off_site: Option<OffSiteReport>,
}

/// What a backup server says of our backups. It says nothing about whether they can be read: it does not have the key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OffSiteReport {
    /// When the server was queried.
    pub asked_at: Timestamp,
    /// The key that all must be encrypted with.
    pub key: KeyFingerprint,
    /// Backups of our guests that it lists as whole.
    pub backups: u32,
    /// Those that are not encrypted with that key, or not wholly: some of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unsealed: Vec<String>,
    /// Those that it found damaged: some of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub damaged: Vec<String>,
    /// When it verified the newest backup of each guest: the longest ago of these. None where one was never verified,
    /// or none is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified_at: Option<Timestamp>,
    /// Who removes what no retention keeps.
    pub pruned_by: PrunedBy,
    /// Why it could not be queried, since then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silent: Option<String>,
}

/// Who removes backups from a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PrunedBy {
    /// The agent: its token may, by its role there.
    Agent,
    /// The server alone: the agent's token may not.
    Server,
}

impl OffSiteReport {
    /// In words, what is well in one line and what is not in one each.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let Self { asked_at, backups, .. } = self;
        let key = self.key.as_str().get(..KEY_SHOWN).unwrap_or_default();
        let verified = match self.verified_at {
            _ if *backups == 0 => "nothing for the server to look through".to_owned(),
            Some(at) => {
                format!(
                    "the newest of each guest looked through by the server, the longest ago at {at} (which proves nothing about the key)"
                )
            }
            None => "not all of the newest were ever looked through by the server".to_owned(),
        };
        let pruned = match self.pruned_by {
            PrunedBy::Agent => "pruned by the agent",
            PrunedBy::Server => "pruned by the server alone: the agent's token may not",
        };
        let mut lines = vec![format!(
            "{backups} backups at {asked_at}, to be encrypted with key {key}…; {verified}; {pruned}"
        )];
        let some =
            |what: &[String], says: &str| (!what.is_empty()).then(|| format!("{says}: {}", what.join(", ")));
        lines.extend(some(&self.unsealed, "NOT encrypted with that key, and no protection"));
        lines.extend(some(&self.damaged, "found damaged by the server"));
        lines.extend(self.silent.as_ref().map(|why| format!("cannot be asked: {why}")));
        lines
    }
}

/// As much of a key's fingerprint as the server's own client shows.
const KEY_SHOWN: usize = 23;

/// The status of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TargetStatus {
    /// It is mounted, and is what it should be.
    Mounted,
    /// It is mounted, and cannot be distinguished from an empty one yet.
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

impl TargetStatus {
    /// As written in the report.
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

    /// Whether its content is out of reach, although it should not be.
    #[must_use]
    pub const fn is_gone(self) -> bool {
        matches!(self, Self::Absent | Self::Dropped | Self::Wrong | Self::Refused)
    }
}
