//! Parts of a desired document by name, and their content.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::desired::{DOCUMENT_BYTES_MAX, DesiredDocument, DesiredGuest, DesiredVolume};
use crate::id::{GuestName, GuestUid, IdError, PolicyName, TargetName, VolumeName};
use crate::json::{self, JsonError};
use crate::protection::BackupPolicy;
use crate::storage::StorageTarget;

/// What a part is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PartKind {
    /// A guest.
    Guest,
    /// A volume of a guest.
    Volume,
    /// A storage target.
    StorageTarget,
    /// A backup policy.
    Policy,
}

impl PartKind {
    /// For people.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Guest => "guest",
            Self::Volume => "volume",
            Self::StorageTarget => "storage target",
            Self::Policy => "policy",
        }
    }

    /// As errors of reading name it.
    const fn what(self) -> &'static str {
        match self {
            Self::Guest => "the guest",
            Self::Volume => "the volume",
            Self::StorageTarget => "the storage target",
            Self::Policy => "the policy",
        }
    }
}

/// A guest of a document, by its identity or its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GuestRef {
    /// By its uid.
    Uid(GuestUid),
    /// By its name.
    Name(GuestName),
}

impl GuestRef {
    /// Whether this guest is meant. A name that is also written as a uid means the uid.
    #[must_use]
    pub fn names(&self, guest: &DesiredGuest) -> bool {
        match self {
            Self::Uid(uid) => guest.uid == *uid,
            Self::Name(name) => guest.name == *name,
        }
    }
}

impl FromStr for GuestRef {
    type Err = IdError;
    fn from_str(text: &str) -> Result<Self, IdError> {
        if let Ok(uid) = text.parse() {
            return Ok(Self::Uid(uid));
        }
        text.parse().map(Self::Name)
    }
}

impl fmt::Display for GuestRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uid(uid) => uid.fmt(f),
            Self::Name(name) => name.fmt(f),
        }
    }
}

/// A named part of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DocumentPart {
    /// A guest.
    Guest(GuestRef),
    /// A volume of a guest.
    Volume(GuestRef, VolumeName),
    /// A storage target.
    StorageTarget(TargetName),
    /// A backup policy.
    Policy(PolicyName),
}

impl fmt::Display for DocumentPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Guest(guest) => write!(f, "guest {guest}"),
            Self::Volume(guest, name) => write!(f, "volume {name} of guest {guest}"),
            Self::StorageTarget(name) => write!(f, "storage target {name}"),
            Self::Policy(name) => write!(f, "policy {name}"),
        }
    }
}

/// The content of a part, as in the document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum PartContent {
    /// Of a guest.
    Guest(Box<DesiredGuest>),
    /// Of a storage target.
    StorageTarget(Box<StorageTarget>),
    /// Of a backup policy.
    Policy(Box<BackupPolicy>),
    /// Of a volume.
    Volume(DesiredVolume),
}

impl PartContent {
    /// Reads the content of a part of this kind.
    ///
    /// # Errors
    /// [`JsonError`], with the path of the first mistake in the content.
    pub fn parse(kind: PartKind, value: &Value) -> Result<Self, JsonError> {
        let what = kind.what();
        let bytes = value.to_string();
        let bytes = bytes.as_bytes();
        Ok(match kind {
            PartKind::Guest => Self::Guest(json::parse(what, bytes, DOCUMENT_BYTES_MAX)?),
            PartKind::Volume => Self::Volume(json::parse(what, bytes, DOCUMENT_BYTES_MAX)?),
            PartKind::StorageTarget => Self::StorageTarget(json::parse(what, bytes, DOCUMENT_BYTES_MAX)?),
            PartKind::Policy => Self::Policy(json::parse(what, bytes, DOCUMENT_BYTES_MAX)?),
        })
    }

    /// What it is the content of.
    #[must_use]
    pub const fn kind(&self) -> PartKind {
        match self {
            Self::Guest(_) => PartKind::Guest,
            Self::StorageTarget(_) => PartKind::StorageTarget,
            Self::Policy(_) => PartKind::Policy,
            Self::Volume(_) => PartKind::Volume,
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Guest(guest) => guest.name.as_str(),
            Self::StorageTarget(target) => target.name.as_str(),
            Self::Policy(policy) => policy.name.as_str(),
            Self::Volume(volume) => volume.name.as_str(),
        }
    }
}

impl DocumentPart {
    /// What it is.
    #[must_use]
    pub const fn kind(&self) -> PartKind {
        match self {
            Self::Guest(_) => PartKind::Guest,
            Self::Volume(..) => PartKind::Volume,
            Self::StorageTarget(_) => PartKind::StorageTarget,
            Self::Policy(_) => PartKind::Policy,
        }
    }

    /// Its content in a document; none where the document does not have it.
    #[must_use]
    pub fn read(&self, document: &DesiredDocument) -> Option<PartContent> {
        match self {
            Self::Guest(guest) => {
                let found = document.guests.iter().find(|one| guest.names(one))?;
                Some(PartContent::Guest(Box::new(found.clone())))
            }
            Self::Volume(guest, name) => {
                let found = document.guests.iter().find(|one| guest.names(one))?;
                found.volumes.iter().find(|one| one.name == *name).cloned().map(PartContent::Volume)
            }
            Self::StorageTarget(name) => {
                let found = document.storage.iter().find(|one| one.name == *name)?;
                Some(PartContent::StorageTarget(Box::new(found.clone())))
            }
            Self::Policy(name) => {
                let found = document.policies.iter().find(|one| one.name == *name)?;
                Some(PartContent::Policy(Box::new(found.clone())))
            }
        }
    }
}
