//! Property strings of disks: `labbtrfs:300/vm-300-disk-0.raw,mp=/data,backup=0,size=1G`.
//!
//! Input: the text of `rootfs` and `mpN`. Output: the backing of the mount, its size in bytes and its options.
//! Deliberately absent: writing them (`change` writes the one form we ever send).

use std::collections::BTreeMap;
use std::fmt;

use holdfast_protocol::desired::VolumeKind;
use serde::{Deserialize, Serialize};

use agent_core::model::observed::BackupFlag;

/// The name of a volume: `storage:path-on-it`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct VolumeId(String);

/// Text that names no volume.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not the name of a volume (storage:path)")]
pub struct VolumeIdError {
    text: String,
}

impl VolumeId {
    /// As Proxmox writes it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The storage that it is stored on.
    #[must_use]
    pub fn storage(&self) -> &str {
        self.0.split(':').next().unwrap_or_default()
    }
}

impl TryFrom<String> for VolumeId {
    type Error = VolumeIdError;
    fn try_from(text: String) -> Result<Self, VolumeIdError> {
        // A comma would start the next property, a control character the next line.
        let clean = text.len() <= 512 && !text.chars().any(|c| c.is_control() || c == ',' || c == ' ');
        let named = text.split_once(':').is_some_and(|(storage, rest)| {
            !rest.is_empty()
                && storage.starts_with(|c: char| c.is_ascii_alphabetic())
                && storage.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
        });
        if clean && named {
            Ok(Self(text))
        } else {
            Err(VolumeIdError { text: text.chars().take(120).collect() })
        }
    }
}

impl std::str::FromStr for VolumeId {
    type Err = VolumeIdError;
    fn from_str(text: &str) -> Result<Self, VolumeIdError> {
        Self::try_from(text.to_owned())
    }
}

impl From<VolumeId> for String {
    fn from(id: VolumeId) -> Self {
        id.0
    }
}

impl fmt::Display for VolumeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The backing of a mount of a guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Backing {
    /// A volume that Proxmox keeps.
    Volume(VolumeId),
    /// `storage:4`: a volume that was asked for and not made. It stays pending when Proxmox could not make it.
    Goal(String),
    /// A path or device of the host. We never make one, and only root may.
    Host(String),
}

/// Whether a volume is part of the guest's backups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InBackup {
    /// `backup=1`, and always for the root file system.
    Yes,
    No,
}

impl InBackup {
    /// For a volume of the document.
    #[must_use]
    pub const fn of(kind: &VolumeKind) -> Self {
        match BackupFlag::of(kind) {
            BackupFlag::On => Self::Yes,
            BackupFlag::Off => Self::No,
        }
    }

    /// The same value, as the decision code uses it.
    #[must_use]
    pub const fn flag(self) -> BackupFlag {
        match self {
            Self::Yes => BackupFlag::On,
            Self::No => BackupFlag::Off,
        }
    }
}

/// One disk of a guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disk {
    /// Its backing.
    pub backing: Backing,
    /// Where it is mounted in the guest; none for the root file system.
    pub mount: Option<String>,
    /// Its size in bytes, when the configuration says so.
    pub size: Option<u64>,
    /// Whether backups hold it.
    pub in_backup: InBackup,
    /// Its other options.
    pub options: BTreeMap<String, String>,
}

impl Disk {
    /// The volume behind it.
    #[must_use]
    pub fn volume(&self) -> Option<&VolumeId> {
        match &self.backing {
            Backing::Volume(id) => Some(id),
            Backing::Goal(_) | Backing::Host(_) => None,
        }
    }

    /// Reads `rootfs` or `mpN`. None when the text is not of that form.
    pub(super) fn parse(text: &str, key: &str) -> Option<Self> {
        let mut parts = text.split(',');
        let first = parts.next()?;
        let first = first.strip_prefix("volume=").unwrap_or(first);
        let backing = if first.starts_with('/') {
            Backing::Host(first.to_owned())
        } else if is_goal(first) {
            Backing::Goal(first.to_owned())
        } else {
            Backing::Volume(first.parse().ok()?)
        };
        let mut options = BTreeMap::new();
        for part in parts {
            let (name, value) = part.split_once('=')?;
            options.insert(name.to_owned(), value.to_owned());
        }
        let size = match options.remove("size") {
            Some(text) => Some(bytes(&text)?),
            None => None,
        };
        let in_backup = match (key, options.remove("backup").as_deref()) {
            ("rootfs", _) | (_, Some("1")) => InBackup::Yes,
            _ => InBackup::No,
        };
        Some(Self { backing, mount: options.remove("mp"), size, in_backup, options })
    }
}

/// There is a size in place of the name on the storage.
fn is_goal(text: &str) -> bool {
    let size = text.split_once(':').map(|(_, rest)| rest).filter(|rest| !rest.is_empty());
    size.is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_digit() || b == b'.'))
}

/// `1G`, `512M`, `0T`, `1536` (bytes), `1.5G` never occurs.
fn bytes(text: &str) -> Option<u64> {
    const UNITS: [(char, u32); 4] = [('K', 10), ('M', 20), ('G', 30), ('T', 40)];
    let with_unit = UNITS.iter().find_map(|(unit, shift)| Some((text.strip_suffix(*unit)?, *shift)));
    let (digits, shift) = with_unit.unwrap_or((text, 0));
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_disks() {
        let root = Disk::parse("labbtrfs:140/vm-140-disk-0.raw,size=1G", "rootfs").unwrap();
        assert_eq!((root.size, root.in_backup, root.mount.clone()), (Some(1 << 30), InBackup::Yes, None));
        assert_eq!(root.volume().unwrap().storage(), "labbtrfs");
        let bulk = Disk::parse("labbtrfs:140/vm-140-disk-1.raw,mp=/data,backup=0,size=1G", "mp0").unwrap();
        assert_eq!((bulk.in_backup, bulk.mount.as_deref()), (InBackup::No, Some("/data")));
        let kept = Disk::parse("labbtrfs:140/vm-140-disk-2.raw,mp=/inc,backup=1,size=512M", "mp1").unwrap();
        assert_eq!((kept.in_backup, kept.size), (InBackup::Yes, Some(512 << 20)));
        let plain = Disk::parse("labdir:150/subvol-150-disk-0.subvol,size=0T", "rootfs").unwrap();
        assert_eq!(plain.size, Some(0));
        let bind = Disk::parse("/srv/data,mp=/data", "mp0").unwrap();
        assert_eq!(bind.backing, Backing::Host("/srv/data".to_owned()));
        let goal = Disk::parse("labdir:1,mp=/hot", "mp0").unwrap();
        assert_eq!((goal.backing.clone(), goal.volume()), (Backing::Goal("labdir:1".to_owned()), None));
    }

    #[test]
    fn what_is_no_disk() {
        for bad in ["", "novolume", "a:b,mp", "a:b,size=1X", "a:b,size=99999999999T", "1a:b"] {
            assert!(Disk::parse(bad, "mp0").is_none(), "{bad:?}");
        }
    }
}
