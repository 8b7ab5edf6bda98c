//! Pending upgrades and a due restart of a host.
//!
//! What a service of root read, without changing anything. What it could not read is absent, never in order.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text::texts;

/// As many packages as one report names. Counts are of all.
pub const PACKAGES_MAX: usize = 200;

/// As many packages as one report names that ask for a restart.
pub const RESTART_PACKAGES_MAX: usize = 16;

texts! {
    /// The name or version of a package or kernel, or a sentence of apt.
    PackageText, 1..=128, "a name or version of a package is 1 to 128 characters without control characters",
        |text| !text.chars().any(char::is_control);
}

impl PackageText {
    /// Makes any text fit: control characters become spaces, and the rest is cut off. Text of spaces alone is none.
    #[must_use]
    pub fn clipped(text: &str) -> Option<Self> {
        let plain: String =
            text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
        Self::try_from(plain.trim().chars().take(128).collect::<String>()).ok()
    }
}

/// Pending upgrades and a due restart, as far as they could be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UpdatesSection {
    /// When root's service read them.
    pub read_at: Timestamp,
    /// When the package lists last changed; none where there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lists_changed_at: Option<Timestamp>,
    /// When it was last tried to fetch package lists, with success or without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lists_tried_at: Option<Timestamp>,
    /// What an upgrade would do; none where apt could not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending: Option<PendingPackages>,
    /// Why apt could not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<PackageText>,
    /// The kernel that runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running_kernel: Option<PackageText>,
    /// The newest installed kernel of the same flavour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newest_kernel: Option<PackageText>,
    /// Why a restart is due; empty where none is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub restart: Vec<RestartReason>,
    /// The packages that asked for it, at most [`RESTART_PACKAGES_MAX`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub restart_packages: Vec<PackageText>,
}

/// Why a restart is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RestartReason {
    /// A newer kernel is installed than the one that runs.
    NewerKernel,
    /// A package left `/run/reboot-required`.
    Announced,
}

/// What an upgrade of all packages would do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PendingPackages {
    /// Packages from Debian that would be upgraded or installed.
    pub debian: u32,
    /// Those from Proxmox.
    pub proxmox: u32,
    /// Those from elsewhere.
    pub other: u32,
    /// How many of all these are security upgrades of Debian.
    pub security: u32,
    /// Packages that would be removed.
    pub removals: u32,
    /// The packages, security upgrades first, then those of Proxmox; at most [`PACKAGES_MAX`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub packages: Vec<PendingPackage>,
}

impl PendingPackages {
    /// How many would be upgraded or installed.
    #[must_use]
    pub const fn total(&self) -> u32 {
        self.debian.saturating_add(self.proxmox).saturating_add(self.other)
    }
}

/// One package that would be upgraded or installed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PendingPackage {
    /// Its name.
    pub name: PackageText,
    /// The version that is installed; none where the package is new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub installed: Option<PackageText>,
    /// The version that would be installed.
    pub offered: PackageText,
    /// Who offers it.
    pub origin: PackageOrigin,
    /// Whether it mends a weakness.
    pub kind: UpgradeKind,
}

/// Who offers a package.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PackageOrigin {
    /// Debian.
    Debian,
    /// Proxmox.
    Proxmox,
    /// Somebody else.
    Other,
}

/// Whether an upgrade mends a weakness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UpgradeKind {
    /// Debian's security team offers this version.
    Security,
    /// Nothing says that it does. Proxmox does not mark its security upgrades.
    Plain,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_packages_is_made_to_fit() {
        assert_eq!(PackageText::clipped(" a\u{1b}[2Jb\n").unwrap().as_str(), "a [2Jb");
        assert_eq!(PackageText::clipped("\u{7}\t"), None);
        assert_eq!(PackageText::clipped(&"ü".repeat(9_000)).unwrap().as_str().chars().count(), 128);
    }

    #[test]
    fn a_section_is_closed_and_says_nothing_of_what_was_not_read() {
        let bare = r#"{"read_at":"2026-11-21T02:00:00Z"}"#;
        let section: UpdatesSection = serde_json::from_str(bare).unwrap();
        assert_eq!((&section.pending, &section.running_kernel), (&None, &None));
        assert_eq!(serde_json::to_string(&section).unwrap(), bare);
        serde_json::from_str::<UpdatesSection>(r#"{"read_at":"2026-11-21T02:00:00Z","snaps":[]}"#)
            .unwrap_err();
    }
}
