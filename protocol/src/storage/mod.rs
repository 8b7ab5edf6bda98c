//! Storage targets of the desired document.
//!
//! A part of the desired document. A target is only a request: it contains no operator's signature, so the agent uses
//! none that was not approved on the host ([`approval`]). Deliberately absent: schedules and retention, which are in
//! [`crate::protection`] and name a target by its name; mount options; paths, since a target's name is its folder.
//!
//! | module | contents |
//! | --- | --- |
//! | [`approval`] | the part of a target that an operator signs for |
//! | [`draft`] | a target in a document that is still being written |
//! | [`backend`] | what a target is, and how it is recognised |
//! | [`recipient`] | the public half of a host's own key |
//! | [`report`] | the status of a target |
//! | [`sealed`] | credentials that only the host can read |

pub mod approval;
pub mod backend;
pub mod draft;
pub mod recipient;
pub mod report;
pub mod sealed;

use std::collections::BTreeSet;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use approval::Approval;
pub use backend::Backend;
pub use recipient::HostRecipient;
pub use sealed::{Sealed, SealedCopies};

use crate::id::TargetName;

/// Targets per host.
pub const TARGETS_MAX: usize = 32;

/// One requested target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StorageTarget {
    /// Its name, also of its entry in Proxmox.
    pub name: TargetName,
    /// What it is, and by what it is known again.
    pub backend: Backend,
    /// How fast it is. Set once, when it is attached.
    pub class: StorageClass,
    /// What it is for.
    pub role: StorageRole,
    /// Whether it should be used.
    pub state: TargetState,
    /// The text on the disk's sticker.
    pub label: Label,
    /// Whether it is used where no target of its role is named.
    pub default: bool,
    /// Whether backups may be scheduled to it.
    pub schedulable: bool,
    /// Name and password, which only the host can read. For CIFS and backup servers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub creds: Option<Sealed>,
}

/// How fast a target is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StorageClass {
    /// Hot volumes may be stored on it.
    Fast,
    /// Only bulk volumes, and backups.
    Slow,
}

/// What a target is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StorageRole {
    /// Guests live on it.
    Primary,
    /// Backups of guests go to it, as archives.
    LocalBackup,
    /// Backups leave the host for it, encrypted.
    OffsiteBackup,
    /// Bulk volumes are stored on it.
    BulkData,
}

/// Whether a target should be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TargetState {
    /// It should.
    Attached,
    /// Not now: it may come back.
    Disconnected,
    /// Not any more.
    Decommissioned,
}

macro_rules! words {
    ($($kind:ident { $($name:ident = $text:literal),* $(,)? })*) => {$(
        impl $kind {
            /// As written in the document.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }

        impl fmt::Display for $kind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    )*};
}

words! {
    StorageClass { Fast = "fast", Slow = "slow" }
    StorageRole { Primary = "primary", LocalBackup = "local-backup", OffsiteBackup = "offsite-backup", BulkData = "bulk-data" }
    TargetState { Attached = "attached", Disconnected = "disconnected", Decommissioned = "decommissioned" }
}

/// The text on a disk's sticker: 1 to 64 printable characters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct Label(#[schemars(length(min = 1, max = 64))] String);

impl Label {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Label {
    type Error = &'static str;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        let length = text.chars().count();
        if (1..=64).contains(&length) && !text.chars().any(char::is_control) {
            Ok(Self(text))
        } else {
            Err("a label is 1 to 64 characters without control characters")
        }
    }
}

impl From<Label> for String {
    fn from(label: Label) -> Self {
        label.0
    }
}

/// Why a manifest is refused although each of its targets is of the right form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ManifestMistake {
    /// A name, or a place, twice; the second time in this field.
    Twice(&'static str, String),
    /// Two parts of one target that do not go together.
    Unfit(&'static str, &'static str),
}

/// The first mistake, with the place of its target.
pub(crate) fn mistake(targets: &[StorageTarget]) -> Option<(usize, ManifestMistake)> {
    let (mut names, mut places, mut defaults) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    targets.iter().enumerate().find_map(|(at, target)| {
        let twice = |field, value: String| Some((at, ManifestMistake::Twice(field, value)));
        if !names.insert(&target.name) {
            return twice("name", target.name.to_string());
        }
        if !places.insert(target.backend.to_string()) {
            return twice("backend", target.backend.to_string());
        }
        if target.default && !defaults.insert(target.role) {
            return twice("default", format!("the default {}", target.role));
        }
        unfit(target).map(|(field, rule)| (at, ManifestMistake::Unfit(field, rule)))
    })
}

fn unfit(target: &StorageTarget) -> Option<(&'static str, &'static str)> {
    let server = matches!(target.backend, Backend::Pbs { .. });
    if server != (target.role == StorageRole::OffsiteBackup) {
        return Some(("role", "a backup server is for offsite-backup, and offsite-backup needs one"));
    }
    let disk = target.backend.uuid().is_some();
    if target.role == StorageRole::Primary && (target.class != StorageClass::Fast || !disk) {
        return Some(("class", "guests live on a fast disk of the box itself"));
    }
    match (target.backend.needs_creds(), &target.creds) {
        (true, None) => Some(("creds", "this kind of storage needs sealed credentials")),
        (false, Some(_)) => Some(("creds", "this kind of storage has no credentials")),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
