//! The promise for one guest: tiers and volumes.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Tier;
use super::policy::{BackupPolicy, BackupTier, Tiers};
use super::posture::PostureReport;
use super::tested::TierTested;
use crate::desired::{BulkBackup, DesiredGuest, VOLUMES_MAX, VolumeKind};
use crate::id::VolumeName;

/// A promise, whole: nothing of it is looked up elsewhere. There is one spelling of each.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Wire")]
pub struct Protection {
    /// Its tiers. There may be none, where only volumes have a promise of their own.
    pub tiers: Tiers,
    /// Its volumes besides the root disk, by name.
    pub volumes: Vec<KeptVolume>,
}

/// What becomes of one volume's data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KeptVolume {
    /// Which.
    pub name: VolumeName,
    /// Whether the guest's backups hold it, and what else does.
    pub kind: VolumeKind,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Protection")]
struct Wire {
    tiers: Tiers,
    #[schemars(length(max = 64))]
    volumes: Vec<KeptVolume>,
}

/// Volumes that a document no longer names keep their promise, so there may be more than a document names.
pub(super) const KEPT_MAX: usize = 4 * VOLUMES_MAX;

impl TryFrom<Wire> for Protection {
    type Error = &'static str;
    fn try_from(wire: Wire) -> Result<Self, Self::Error> {
        let Wire { tiers, volumes } = wire;
        if volumes.len() > KEPT_MAX {
            return Err("a guest has at most 64 volumes with a promise of their own");
        }
        if !volumes.is_sorted_by(|one, next| one.name < next.name) {
            return Err("the volumes stand by name, each once");
        }
        Ok(Self { tiers, volumes })
    }
}

impl Protection {
    /// What a document promises a guest; nothing, where nothing of it is ever backed up.
    #[must_use]
    pub fn of_document(guest: &DesiredGuest, policies: &[BackupPolicy]) -> Option<Self> {
        let policy =
            guest.policy.as_ref().and_then(|name| policies.iter().find(|policy| policy.name == *name));
        let tiers = policy.map(|policy| policy.tiers.clone()).unwrap_or_default();
        Some(Self { tiers, ..Self::of_volumes(guest) }).filter(Self::protects)
    }

    /// What a document says of a guest's volumes, and nothing else.
    #[must_use]
    pub fn of_volumes(guest: &DesiredGuest) -> Self {
        let mut volumes: Vec<KeptVolume> = guest
            .volumes
            .iter()
            .map(|volume| KeptVolume { name: volume.name.clone(), kind: volume.kind.clone() })
            .collect();
        volumes.sort_by(|one, other| one.name.cmp(&other.name));
        Self { tiers: Tiers::default(), volumes }
    }

    /// Whether anything of the guest is ever backed up by it. Without a tier a volume is not held by being hot.
    #[must_use]
    pub fn protects(&self) -> bool {
        let backed_up =
            |volume: &KeptVolume| matches!(volume.kind, VolumeKind::Bulk(BulkBackup::BackupTo(_)));
        !self.tiers.is_empty() || self.volumes.iter().any(backed_up)
    }

    /// In words, a line for each part.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(tier) = &self.tiers.snapshot {
            lines.push(format!("snapshot: {}, keeps {}", tier.schedule, tier.retention));
        }
        if let Some(tier) = &self.tiers.local {
            lines.push(format!("local: {}", backup_words(tier)));
        }
        if let Some(tier) = &self.tiers.off_site {
            let looked = tier.verify_days.map_or_else(String::new, |days| {
                format!(", looked through by its server every {days}, which proves nothing about the key")
            });
            let words = backup_words(&tier.backup);
            lines.push(format!("off-site: {words}, encrypted with key {}{looked}", tier.key));
        }
        lines.extend(
            self.volumes.iter().map(|volume| format!("volume {}: {}", volume.name, kind_words(&volume.kind))),
        );
        lines
    }
}

fn backup_words(tier: &BackupTier) -> String {
    let schedule = &tier.schedule;
    let test = tier.restore_test_days.map_or_else(
        || "never tested by a restore".to_owned(),
        |days| format!("tested by a restore every {days}"),
    );
    format!(
        "{schedule} to {}, jitter {}, window {}, keeps {}, {} consistency, {test}",
        tier.target,
        schedule.jitter_min,
        schedule.window_min,
        tier.retention,
        tier.consistency.as_str()
    )
}

/// What becomes of a volume, in words.
#[must_use]
pub fn kind_words(kind: &VolumeKind) -> String {
    match kind {
        VolumeKind::Hot => "in the guest's backups".to_owned(),
        VolumeKind::Bulk(BulkBackup::BackupTo(target)) => format!("bulk, backed up to {target}"),
        VolumeKind::Bulk(BulkBackup::None(why)) => format!("bulk, NOT backed up: {}", why.as_str()),
    }
}

/// The newest backup of a tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewestBackup {
    /// Which.
    pub tier: Tier,
    /// When it was taken, by Proxmox's clock.
    pub taken_at: Timestamp,
    /// Its size in bytes, as its storage reports it.
    pub bytes: u64,
    /// How many milliseconds its operation took, from its opening to its end. None for one that was taken beside other work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took_ms: Option<u64>,
}

/// How a guest is protected, as its agent reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProtectionReport {
    /// The promise in force; none, where nothing of the guest was ever promised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_force: Option<Protection>,
    /// The promise that the document requests, where it differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desired: Option<Protection>,
    /// The parts of the request that are held, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<String>,
    /// How well it is protected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub posture: Option<PostureReport>,
    /// The newest backup of each tier that has one where its storage lists it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 2))]
    pub newest: Vec<NewestBackup>,
    /// What restore tests showed, of each tier that had one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 3))]
    pub tested: Vec<TierTested>,
}
