//! Verbs of signed jobs, each with its arguments.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::BYTES_MAX;
use super::target::{SeenCopy, SeenGuest, TargetKind};
use super::way::{OpenMinutes, PersonKey, WayName};
use crate::generation::{ContentHash, Generation};
use crate::id::{CustomerId, GoldenVersion, GuestName, GuestUid, JobId, SnapshotName, TunnelName};
use crate::json::{self, JsonError};
use crate::measure::GuestMeasure;
use crate::operation::OperationKind;
use crate::pin::Pin;
use crate::protection::{Protection, Tier};
use crate::root_disk::LeftBehind;
use crate::storage::{Approval, Sealed, SealedCopies};
use crate::text::texts;

macro_rules! acts {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $kind:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty),* $(,)? })*) => {
        /// What is ordered.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        pub enum Verb {
            $($(#[$doc])* #[serde(rename = $text)] $name,)*
        }

        impl Verb {
            /// Every verb.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// As written in a payload and in the policy.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// To what kind of thing it is done.
            #[must_use]
            pub const fn target(self) -> TargetKind {
                match self { $(Self::$name => TargetKind::$kind,)* }
            }
        }

        /// The arguments of each verb.
        pub mod args {
            use super::*;
            $(
                $(#[$doc])*
                #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
                #[serde(deny_unknown_fields)]
                pub struct $name { $($(#[$field_doc])* pub $field: $type,)* }
            )*
        }

        /// A verb with its arguments.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Act {
            $($(#[$doc])* $name(args::$name),)*
        }

        impl Act {
            /// Which verb.
            #[must_use]
            pub const fn verb(&self) -> Verb {
                match self { $(Self::$name(_) => Verb::$name,)* }
            }

            pub(super) fn parse(verb: Verb, args: &str) -> Result<Self, JsonError> {
                Ok(match verb { $(Verb::$name => Self::$name(read(args)?),)* })
            }

            pub(super) fn args(&self) -> Result<String, serde_json::Error> {
                match self { $(Self::$name(args) => serde_json::to_string(args),)* }
            }
        }
    };
}

fn read<T: DeserializeOwned>(args: &str) -> Result<T, JsonError> {
    json::parse("the job's args", args.as_bytes(), BYTES_MAX)
}

acts! {
    /// Takes over a guest that the records do not know: under this uid, as this customer's.
    AdoptGuest = "adopt_guest", Guest {
        /// Who it belongs to.
        customer: CustomerId,
        /// The golden image that it counts as made from.
        golden: GoldenVersion,
    }
    /// Lets one guest grow beyond what documents may have in a day: from what it is to exactly this.
    AllowGrowth = "allow_growth", Host {
        /// Which.
        guest: GuestUid,
        /// Its name.
        name: GuestName,
        /// How large it is; nothing, for one that is to be made.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<Box<GuestMeasure>>,
        /// How large it may become.
        to: Box<GuestMeasure>,
    }
    /// Lets code see customers' data: a golden image, or a controller in guests.
    ApproveRelease = "approve_release", Host {
        /// Which kind of code.
        kind: ReleaseKind,
        /// Its version.
        version: ReleaseVersion,
        /// What its bytes hash to.
        sha256: Sha256Text,
    }
    /// Lets a storage target be used; or another in its place, or the same in another way.
    AttachStorage = "attach_storage", Host {
        /// What is approved under this name now, whole; nothing, for a new one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<Box<Approval>>,
        /// What shall be, whole.
        to: Box<Approval>,
    }
    /// Takes a backup now.
    BackupNow = "backup_now", Guest {
        /// Of which tier of its promise, and so to where; without it to the host's own backup storage.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tier: Option<Tier>,
    }
    /// Opens one way into the host for a person, for a time that ends by itself.
    BreakGlass = "break_glass", Host {
        /// The way, by its name in root's settings on the host.
        way: WayName,
        /// For how many minutes from its opening.
        minutes: OpenMinutes,
        /// The key that may come in, where the way has none of its own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<PersonKey>,
        /// The customers with guests on the host. Each consents, unless root's settings there say otherwise.
        #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
        customers: BTreeSet<CustomerId>,
    }
    /// Stops a job that waits out its delay.
    Cancel = "cancel", Host {
        /// Which.
        job: JobId,
    }
    /// Deletes one backup of a guest for good. One of the guest's backups stays on the same storage.
    DeleteBackup = "delete_backup", Guest {
        /// The archive, as Proxmox names it.
        archive: ArchiveText,
        /// What else is lost with it, if anything. A loss that is not named here prevents the deletion.
        #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
        loses: BTreeSet<BackupLoss>,
    }
    /// Destroys a guest with its volumes.
    DestroyGuest = "destroy_guest", Guest {}
    /// Destroys a copy of a guest with its volumes: a restored one, or what the guest was before a swap or a newer image.
    DiscardCopy = "discard_copy", Guest {
        /// The copy, as the operator saw it.
        copy: SeenCopy,
    }
    /// Lets a storage target go. It is refused while the only copy of something is on it.
    DetachStorage = "detach_storage", Host {
        /// What is approved, whole.
        from: Box<Approval>,
        /// For now, or for good.
        to: LetGo,
    }
    /// Lowers what a guest is promised about its backups.
    LoosenPolicy = "loosen_policy", Guest {
        /// What is in force, whole.
        from: Box<Protection>,
        /// What shall be, whole.
        to: Box<Protection>,
    }
    /// Exchanges the operators file and the policy.
    PolicyUpdate = "policy_update", Host {
        /// The new operators file, whole.
        signers: String,
        /// The new policy, whole.
        policy: String,
    }
    /// Puts a guest on a newer golden image. Its volumes and its identity go to a new container; what is on its root
    /// disk stays with the replaced guest, which is kept.
    RebaseGuest = "rebase_guest", Guest {
        /// The image.
        version: GoldenVersion,
        /// What its bytes hash to.
        sha256: Sha256Text,
        /// What the operator knew of the data that stays behind. Data that is not covered prevents it.
        #[serde(default, skip_serializing_if = "LeftBehind::is_nothing")]
        leaves: LeftBehind,
    }
    /// Hands a bulk volume to another guest of the same customer. Both guests are stopped.
    ReassignVolume = "reassign_volume", Guest {
        /// Which, as Proxmox names it.
        volume: VolumeText,
        /// To whom, as the operator saw it.
        to: SeenGuest,
    }
    /// Lets a bulk change through: these guests, under this document.
    ReleaseBrake = "release_brake", Host {
        /// Of which document.
        generation: Generation,
        /// What the content of that document hashes to. A job of an older `holdfast` does not say it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        document: Option<Sha256Text>,
        /// What is done to whom.
        changes: Vec<BulkChange>,
    }
    /// Restores an archive as a copy next to the guest.
    Restore = "restore", Guest {
        /// The archive, as Proxmox names it.
        archive: ArchiveText,
    }
    /// Lets a new machine take the place of this host, whose state is lost. The lost machine stays inactive, should it
    /// come back.
    RestoreHost = "restore_host", Host {
        /// The new machine's key, as `agentd enroll --show-key` prints it there: no other machine takes the place. An
        /// order of an older `holdfast` does not contain it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        new_key: Option<Pin>,
    }
    /// Restores a backup of a guest into a scratch guest now, and checks what comes of it.
    RestoreTest = "restore_test", Guest {
        /// A backup of which tier; without it the newest of any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tier: Option<Tier>,
    }
    /// Rolls a guest back to a snapshot.
    Rollback = "rollback", Guest {
        /// Which.
        snapshot: SnapshotName,
    }
    /// Gives a tunnel of the host its token, which only this host can read.
    SetTunnelToken = "set_tunnel_token", Host {
        /// The tunnel, by its name in root's settings on the host.
        tunnel: TunnelName,
        /// The token, sealed for the host.
        sealed: Sealed,
        /// The token again, sealed for operators: for a host that replaces this one.
        #[serde(default, skip_serializing_if = "SealedCopies::is_empty")]
        copies: SealedCopies,
    }
    /// Puts a restored copy of a guest in the guest's place. The replaced guest is kept.
    SwapGuest = "swap_guest", Guest {
        /// The copy, as the operator saw it.
        copy: SeenCopy,
        /// Volumes mounted in the guest at whose paths the copy has none: they stay with the replaced guest.
        leaves: BTreeSet<VolumeText>,
    }
    /// Withdraws an order to restore this host, before a machine followed it.
    WithdrawRestore = "withdraw_restore", Host {
        /// What the bytes of the order hash to.
        order: Sha256Text,
    }
}

/// What a backup is that its guest has no second one of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BackupLoss {
    /// Its newest backup.
    Newest,
    /// Its newest backup that was restored and checked.
    NewestProved,
    /// The only backup that holds one of its volumes.
    OnlyHolder,
}

impl BackupLoss {
    /// Every one.
    pub const ALL: [Self; 3] = [Self::Newest, Self::NewestProved, Self::OnlyHolder];

    /// For people.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Newest => "newest",
            Self::NewestProved => "newest-proved",
            Self::OnlyHolder => "only-holder",
        }
    }
}

/// For how long a target is let go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LetGo {
    /// It may come back.
    Disconnected,
    /// It will not.
    Decommissioned,
}

impl LetGo {
    /// As the document says it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Disconnected => "disconnected",
            Self::Decommissioned => "decommissioned",
        }
    }
}

/// One guest of a bulk change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BulkChange {
    /// Which.
    pub guest: GuestUid,
    /// Its name.
    pub name: GuestName,
    /// What would be done to it.
    pub operation: OperationKind,
}

/// Code that would run where it sees customers' data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReleaseKind {
    /// The controller in guests.
    Controller,
    /// The image that guests are made from.
    Golden,
}

texts! {
    /// The version of a release: 1 to 64 letters, digits, '.', '+', '-' and '_'. That of a golden has the form of one.
    ReleaseVersion, 1..=64, "a version is 1 to 64 letters, digits, '.', '+', '-' and '_'",
        |text| text.bytes().all(|b| b.is_ascii_alphanumeric() || b".+-_".contains(&b));
    /// A SHA-256 in 64 lower-case hex digits.
    Sha256Text, 64..=64, "a SHA-256 is 64 lower-case hex digits",
        |text| text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    /// `storage:path-on-it`, as Proxmox names a volume.
    VolumeText, 1..=512, "a volume is named storage:path, without spaces and '..'",
        |text| text.bytes().all(|b| b.is_ascii_graphic()) && !text.contains("..")
            && text.split_once(':').is_some_and(|(storage, path)| !storage.is_empty() && !path.is_empty());
    /// `storage:backup/file`, as Proxmox names an archive.
    ArchiveText, 1..=512, "an archive is named storage:backup/file, without spaces and '..'",
        |text| text.bytes().all(|b| b.is_ascii_graphic()) && !text.contains("..")
            && text.split_once(':').is_some_and(|(storage, path)| !storage.is_empty() && path.starts_with("backup/"));
}

impl Sha256Text {
    /// What these bytes hash to.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self::from_digest(Sha256::digest(bytes).into())
    }

    /// Of a hash.
    #[must_use]
    pub fn from_digest(digest: [u8; 32]) -> Self {
        Self(hex::encode(digest))
    }
}

impl From<ContentHash> for Sha256Text {
    fn from(content: ContentHash) -> Self {
        Self(content.to_string())
    }
}
