//! *provision*: a guest from an image, or from its own backup.

use std::collections::BTreeSet;

use holdfast_protocol::desired::DesiredGuest;
use holdfast_protocol::desired::field::GuestField;
use holdfast_protocol::id::{OperationId, PoolName, StorageName, Vmid};
use holdfast_protocol::report::Running;
use serde::{Deserialize, Serialize};

use super::applied::AppliedBy;
use super::spec::{Facts, Guest, Holds, Spec, Subject, Takes};
use super::step::{Exhausted, Step};
use crate::gate::Effect;
use crate::model::disks::Disks;
use crate::model::field;
use crate::model::hardware::HardwareAddress;
use crate::model::policy::{Sha256Hex, VmidRange};
use crate::model::records::VolumeId;

/// Everything that making a guest needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Provision {
    /// The guest as it should be.
    pub guest: DesiredGuest,
    pub number: VmidRequest,
    /// What it is made from.
    pub source: Source,
    pub pool: PoolName,
    /// Root disk, and hot volumes of journals without `volume_storages`.
    pub storage: StorageName,
    /// Where each volume of the document is made, in its order; empty in journals from before it was written down.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub volume_storages: Vec<StorageName>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bulk_storage: Option<StorageName>,
    /// Where the first backup is stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backup_storage: Option<StorageName>,
}

/// What a guest is made from. A guest that comes back from its own backup needs no image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// A golden image: the guest is new.
    Image(Image),
    /// Its own backup: the guest was lost.
    Backup(Box<MissingGuest>),
}

/// The archive of a golden image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Image {
    /// The archive, as Proxmox names it.
    pub archive: VolumeId,
    /// What its bytes must hash to.
    pub sha256: Sha256Hex,
    /// Where the agent reads those bytes.
    pub file: std::path::PathBuf,
}

/// A guest of ours that was proved lost: what it is made from, and what our records said of it. Should the making fail, they
/// say so again: a lost guest is not one that never was, which would be made anew and empty.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MissingGuest {
    /// Its newest own backup.
    pub backup: VolumeId,
    /// Its number. It is never used again.
    pub vmid: Vmid,
    pub volumes: BTreeSet<VolumeId>,
    /// The operation that made it.
    pub by: OperationId,
    /// Where it was lost.
    #[serde(default, skip_serializing_if = "Whence::is_this_box")]
    pub whence: Whence,
    /// The hardware address that it keeps; none where the one it had may still be in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hardware: Option<HardwareAddress>,
    /// Its disks, each where it is made again. None where they were not written down: then all that the archive names
    /// is made on the storage of root disks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disks: Option<Disks>,
}

/// Where a guest was lost, and so what its token is worth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Whence {
    /// Here: the token in its backup is the one that we know.
    #[default]
    ThisBox,
    /// On the host whose place this one took: its token and the leaf that it trusts are that host's, and it needs a
    /// claim.
    LostBox,
}

impl Whence {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for this form")]
    const fn is_this_box(&self) -> bool {
        matches!(self, Self::ThisBox)
    }
}

impl Provision {
    /// The archive that is restored.
    #[must_use]
    pub const fn archive(&self) -> &VolumeId {
        match &self.source {
            Source::Image(image) => &image.archive,
            Source::Backup(lost) => &lost.backup,
        }
    }

    /// What was lost, where the guest is made again from its own backup.
    #[must_use]
    pub const fn lost(&self) -> Option<&MissingGuest> {
        match &self.source {
            Source::Image(_) => None,
            Source::Backup(lost) => Some(lost),
        }
    }

    /// Whether the guest is started with a claim, which Proxmox takes out of what is in force with its next stop alone.
    /// One that came back to its own host has its token.
    #[must_use]
    pub fn starts_with_a_claim(&self) -> bool {
        self.lost().is_none_or(|lost| lost.whence == Whence::LostBox)
    }

    /// Where the restore makes disks.
    #[must_use]
    pub fn restored_to(&self) -> BTreeSet<&StorageName> {
        match self.lost().and_then(|lost| lost.disks.as_ref()) {
            Some(disks) => disks.shares().into_keys().collect(),
            None => BTreeSet::from([&self.storage]),
        }
    }

    /// Its disks come with the backup, and so do its token and its identity: no claim is handed over, but to one whose
    /// token is another host's. Volumes that no backup holds are attached afterwards, as those of any guest.
    fn again(whence: Whence) -> Vec<Step> {
        let mut steps = vec![Step::ChooseVmid, Step::CheckArchive, Step::Restore, Step::Mark, Step::Protect];
        steps.extend(match whence {
            Whence::ThisBox => [Step::DropClaim, Step::FirstStart, Step::AwaitHello],
            Whence::LostBox => [Step::SetBootstrapToken, Step::FirstStart, Step::AwaitHello],
        });
        if whence == Whence::LostBox {
            steps.push(Step::DropClaim);
        }
        steps.push(Step::ReadBack);
        steps
    }
}

/// Which VMID a new guest gets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VmidRequest {
    /// This one, as the document says.
    Exactly(Vmid),
    /// A free one of the range, never used for another guest of ours.
    AnyOf {
        range: VmidRange,
        /// Numbers of the range that the document asks for by name, for other guests.
        except: Vec<Vmid>,
    },
}

impl Spec for Provision {
    fn facts(&self) -> Facts<'_> {
        Facts {
            guest: Guest { uid: self.guest.uid, name: &self.guest.name, vmid: None },
            holds: Holds::Guest,
            takes: Takes::Nothing,
        }
    }

    fn subject(&self) -> Subject {
        Subject::Guest
    }

    fn steps(&self) -> Vec<Step> {
        if let Some(lost) = self.lost() {
            return Self::again(lost.whence);
        }
        let mut steps =
            vec![Step::ChooseVmid, Step::CheckArchive, Step::Restore, Step::Mark, Step::GrowRootfs];
        let volumes = self.guest.volumes.len().min(holdfast_protocol::desired::VOLUMES_MAX);
        steps.extend((0..volumes).filter_map(|index| u8::try_from(index).ok()).map(Step::AttachVolume));
        steps.extend([
            Step::Protect,
            Step::SetBootstrapToken,
            Step::FirstStart,
            Step::AwaitHello,
            Step::DropClaim,
        ]);
        if self.backup_storage.is_some() {
            steps.push(Step::FirstBackup);
        }
        steps.push(Step::ReadBack);
        steps
    }

    fn effects(&self) -> Vec<Effect> {
        match &self.source {
            Source::Backup(_) => vec![Effect::RestoreOwnBackup, Effect::Protect, Effect::Start],
            Source::Image(image) => vec![
                Effect::RestoreFresh { golden: self.guest.golden.clone(), sha256: image.sha256.clone() },
                Effect::AttachNewVolume,
                Effect::GrowDisk,
                Effect::Protect,
                Effect::Start,
                Effect::Backup,
            ],
        }
    }

    fn applied(&self) -> Option<AppliedBy> {
        let mut texts = field::wanted(&self.guest);
        texts.insert(GuestField::Run, field::running(Running::Running).to_owned());
        // Its disk is as large as its backup was.
        if self.lost().is_some() {
            texts.remove(&GuestField::Rootfs);
        }
        Some(AppliedBy::Anew(texts))
    }

    /// A lost guest that was started again has run, so it holds newer data than its backup: whether its controller speaks or
    /// not, it stays.
    fn exhausted(&self, step: Step) -> Exhausted {
        match step {
            Step::AwaitHello | Step::ReadBack if self.lost().is_some() => Exhausted::Continue,
            other => other.facts().exhausted,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the journal has a guest that was being made again when the agent was exchanged.
    #[test]
    fn a_journal_from_before_disks_were_written_down_is_read() {
        let by = OperationId::new(uuid::Uuid::nil());
        let text = format!(r#"{{"backup":"backup2:backup/x","vmid":300,"volumes":[],"by":"{by}"}}"#);
        let lost: MissingGuest = serde_json::from_str(&text).unwrap();
        assert_eq!((&lost.disks, lost.whence), (&None, Whence::ThisBox));
        assert_eq!(serde_json::to_string(&lost).unwrap(), text);
    }
}
