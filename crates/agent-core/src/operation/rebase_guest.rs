//! *rebase_guest*: a guest on a newer golden image, by a signature.
//!
//! A container is made from the image under another number, unplugged and stopped. Then the two are exchanged as a guest
//! and its copy are ([`super::swap_guest`]), and the guest's volumes are handed over in between, while both are stopped.
//! The new container must say hello under a claim of its own, since the guest's token is on the root disk that stays
//! behind. Only then our records change, in one transaction. Until then every step can be taken back. What this operation
//! may destroy is the container that it made, and only while that holds nothing but its own root disk.

use std::collections::BTreeSet;

use holdfast_protocol::id::{
    BridgeName, GoldenVersion, GuestName, MountPath, OperationId, PoolName, StorageName, Vmid,
};
use holdfast_protocol::size::{Cores, DiskGib, MemoryMib, SwapMib};
use serde::{Deserialize, Serialize};

use super::applied::AppliedBy;
use super::spec::{Facts, Guest, Holds, Spec, Subject, Takes};
use super::step::Step;
use super::swap_guest::{Pair, Replaced};
use super::{Backup, Image, VmidRequest};
use crate::gate::Effect;
use crate::model::mark::Mark;
use crate::model::net::ResolverText;
use crate::model::records::VolumeId;
use crate::model::warrant::{SignedState, Warrant, WrongWarrant};

/// The suffix of the new container's host name until it is in its guest's place.
const SUFFIX: &str = "-next";

/// The size of the new container: the guest's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GuestSizes {
    pub memory: MemoryMib,
    pub swap: SwapMib,
    /// None is all of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores: Option<Cores>,
    pub rootfs: DiskGib,
}

/// A volume that moves, with its mount, which is the same in both.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataVolume {
    /// The number of its mount.
    pub slot: u8,
    pub path: MountPath,
    /// Its name in the guest, as it was signed.
    pub volume: VolumeId,
}

/// The new container, but for its image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Successor {
    pub number: VmidRequest,
    pub pool: PoolName,
    /// Where its root disk is made.
    pub storage: StorageName,
    /// The one bridge that guests of ours may be on.
    pub bridge: BridgeName,
    pub sizes: GuestSizes,
    /// The guest's name servers.
    pub resolver: ResolverText,
}

/// A guest to be put on a newer image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RebaseGuest {
    #[serde(with = "crate::model::warrant::journal")]
    warrant: Warrant,
    image: Image,
    pub successor: Successor,
    /// Every volume of the guest but its root disk.
    volumes: Vec<DataVolume>,
    /// A backup before anything is changed, and one of the new container.
    pub backup: Option<Backup>,
}

impl RebaseGuest {
    /// By a warrant, and by nothing else.
    ///
    /// # Errors
    /// When the warrant was signed for something else, or for another image.
    pub fn new(
        warrant: Warrant,
        image: Image,
        successor: Successor,
        volumes: Vec<DataVolume>,
        backup: Option<Backup>,
    ) -> Result<Self, WrongWarrant> {
        let (_, sha256) = warrant.rebases()?;
        // What was signed is what is restored, whatever the caller found in the settings.
        let image = Image { sha256: sha256.clone(), ..image };
        Ok(Self { warrant, image, successor, volumes, backup })
    }

    /// What was signed.
    #[must_use]
    pub const fn warrant(&self) -> &Warrant {
        &self.warrant
    }

    /// The guest, as the operator saw it.
    #[must_use]
    pub const fn guest(&self) -> &SignedState {
        self.warrant.target()
    }

    #[must_use]
    pub const fn image(&self) -> &Image {
        &self.image
    }

    /// The version of the image.
    ///
    /// # Errors
    /// When the warrant was signed for something else: then this was not made by [`RebaseGuest::new`].
    pub fn version(&self) -> Result<&GoldenVersion, WrongWarrant> {
        self.warrant.rebases().map(|(version, _)| version)
    }

    /// The volumes that move.
    #[must_use]
    pub fn volumes(&self) -> &[DataVolume] {
        &self.volumes
    }

    /// The volume of a step.
    #[must_use]
    pub fn volume(&self, index: u8) -> Option<&DataVolume> {
        self.volumes.get(usize::from(index))
    }

    /// What stays with the former guest: its root disk, and nothing else.
    #[must_use]
    pub fn stays(&self) -> BTreeSet<VolumeId> {
        let moves: BTreeSet<&VolumeId> = self.volumes.iter().map(|one| &one.volume).collect();
        self.guest().volumes.iter().filter(|volume| !moves.contains(volume)).cloned().collect()
    }

    /// What the new container is called until it is in its guest's place.
    #[must_use]
    pub fn hostname(&self) -> Option<GuestName> {
        let name: String = self.guest().name.as_str().chars().take(63 - SUFFIX.len()).collect();
        format!("{}{SUFFIX}", name.trim_end_matches('-')).parse().ok()
    }

    /// The two, each with the volumes that it has throughout: what moves is with either of them. None for the guest's own
    /// number: no container of its own was chosen one yet.
    #[must_use]
    pub fn pair(&self, vmid: Vmid, made: BTreeSet<VolumeId>, by: OperationId) -> Option<Pair> {
        let guest = self.guest();
        let name = self.hostname()?;
        (vmid != guest.vmid).then(|| Pair {
            guest: SignedState { volumes: self.stays(), ..guest.clone() },
            copy: SignedState { uid: guest.uid, vmid, name, volumes: made },
            copys_mark: Mark::Copy { of: guest.uid, by },
            bridge: self.successor.bridge.clone(),
            why: Replaced::ByANewerImage,
        })
    }
}

impl Spec for RebaseGuest {
    fn facts(&self) -> Facts<'_> {
        let guest = self.warrant.target();
        Facts {
            guest: Guest { uid: guest.uid, name: &guest.name, vmid: Some(guest.vmid) },
            holds: Holds::Guest,
            takes: self.backup.as_ref().map_or(Takes::Nothing, Takes::Backup),
            // A signature for one guest is no bulk change.
        }
    }

    fn subject(&self) -> Subject {
        Subject::Guest
    }

    fn steps(&self) -> Vec<Step> {
        let mut steps: Vec<Step> = self.backup.iter().map(|_| Step::TakeBackup).collect();
        steps.extend([
            Step::ChooseVmid,
            Step::CheckArchive,
            Step::Restore,
            Step::TagCopy,
            Step::VerifyRebase,
            Step::StopOriginal,
            Step::DemoteOriginal,
        ]);
        let volumes = 0..self.volumes.len();
        steps.extend(volumes.filter_map(|index| u8::try_from(index).ok()).map(Step::MoveVolume));
        steps.extend([
            Step::PromoteCopy,
            Step::SetBootstrapToken,
            Step::StartPlaced,
            Step::AwaitHello,
            Step::ConfirmPlaced,
            // Nothing is taken back from here on.
            Step::DropClaim,
        ]);
        steps.extend(self.backup.iter().map(|_| Step::FirstBackup));
        steps
    }

    fn effects(&self) -> Vec<Effect> {
        let signed = [
            Effect::RebaseGuest,
            Effect::StopOrRestart,
            Effect::Start,
            Effect::Protect,
            Effect::LiftToAttach,
        ];
        let image = self.version().ok().map(|version| Effect::RestoreFresh {
            golden: version.clone(),
            sha256: self.image.sha256.clone(),
        });
        signed.into_iter().chain(image).chain(self.backup.iter().map(|_| Effect::Backup)).collect()
    }

    fn applied(&self) -> Option<AppliedBy> {
        None
    }
}

#[cfg(test)]
mod tests {
    use holdfast_protocol::id::JobId;

    use super::*;
    use crate::model::mark;
    use crate::model::policy::VmidRange;
    use crate::model::records::BackupWhy;
    use crate::model::warrant::Allows;
    use crate::operation::Target;
    use crate::operation::step::{Exhausted, Undo};

    fn vmid(number: u32) -> Vmid {
        Vmid::try_from(number).unwrap()
    }

    fn by() -> OperationId {
        OperationId::new(uuid::Uuid::from_u128(7))
    }

    fn disk(n: u32) -> VolumeId {
        VolumeId::new(format!("tank:300/vm-300-disk-{n}.raw"))
    }

    fn warrant(allows: Allows) -> Warrant {
        let guest = SignedState {
            uid: "018f3c1e-6b1f-7c1d-9d0a-2f6d1c0b7a55".parse().unwrap(),
            vmid: vmid(300),
            name: "web-1".parse().unwrap(),
            volumes: (0..3).map(disk).collect(),
        };
        Warrant::for_tests(JobId::new(uuid::Uuid::nil()), allows, guest)
    }

    fn made(allows: Allows) -> Result<RebaseGuest, WrongWarrant> {
        let warrant = warrant(allows);
        let guest = warrant.target();
        let backup = Backup {
            target: Target { uid: guest.uid, name: guest.name.clone(), vmid: guest.vmid },
            storage: "backup2".parse().unwrap(),
            why: BackupWhy::First,
            due: None,
            key: None,
            leaves_out: Vec::new(),
        };
        let image = Image {
            archive: VolumeId::new("backup2:backup/golden.tar.zst"),
            sha256: "cd".repeat(32).try_into().unwrap(),
            file: "/golden.tar.zst".into(),
        };
        let successor = Successor {
            number: VmidRequest::AnyOf {
                range: VmidRange::try_from([vmid(300), vmid(309)]).unwrap(),
                except: Vec::new(),
            },
            pool: "holdfast".parse().unwrap(),
            storage: "tank".parse().unwrap(),
            bridge: "vmbr0".parse().unwrap(),
            sizes: GuestSizes {
                memory: 256.try_into().unwrap(),
                swap: 64.try_into().unwrap(),
                cores: None,
                rootfs: 2.try_into().unwrap(),
            },
            resolver: ResolverText::default(),
        };
        let volume =
            |slot: u8, path: &str, n| DataVolume { slot, path: path.parse().unwrap(), volume: disk(n) };
        let volumes = vec![volume(0, "/srv/db", 1), volume(1, "/srv/media", 2)];
        RebaseGuest::new(warrant, image, successor, volumes, Some(backup))
    }

    fn rebase() -> RebaseGuest {
        let sha256 = "ab".repeat(32).try_into().unwrap();
        made(Allows::RebaseGuest { version: "2026.12.1".parse().unwrap(), sha256 }).unwrap()
    }

    #[test]
    fn a_warrant_for_something_else_rebases_nothing_and_the_signed_digest_is_the_one() {
        assert!(made(Allows::DestroyGuest).is_err());
        assert_eq!(rebase().image().sha256.as_str(), "ab".repeat(32));
    }

    #[test]
    fn the_root_disk_stays_and_the_pair_is_never_one_container() {
        let rebase = rebase();
        assert_eq!(rebase.stays(), [disk(0)].into());
        let root: BTreeSet<VolumeId> = [VolumeId::new("tank:301/vm-301-disk-0.raw")].into();
        assert_eq!(rebase.pair(vmid(300), root.clone(), by()), None);
        let pair = rebase.pair(vmid(301), root.clone(), by()).unwrap();
        assert_eq!((&pair.guest.volumes, &pair.copy.volumes), (&[disk(0)].into(), &root));
        assert_eq!(pair.former_name().unwrap().as_str(), "web-1-former");
        let tags: BTreeSet<String> = mark::copy_tags(by()).into();
        assert_eq!(mark::read(&tags, &pair.former_description(by())), pair.former_mark(by()));
    }

    /// The one thing that an undo destroys is what the restore of this operation made.
    #[test]
    fn no_step_and_no_undo_deletes_anything_but_the_container_that_was_made() {
        for step in rebase().steps() {
            assert!(
                !matches!(step, Step::DestroyGuest | Step::DestroyScratch | Step::LiftProtection),
                "{step:?}"
            );
            assert!(!matches!(step.undo(), Undo::Unprotect | Undo::StopGuest), "{step:?}");
            assert_eq!(matches!(step.undo(), Undo::DestroyGuest), step == Step::Restore, "{step:?}");
        }
    }

    /// Volumes move while both are stopped and unplugged, each is taken back by itself, and what follows the change of our
    /// records takes nothing back.
    #[test]
    fn volumes_move_between_the_exchange_of_both_and_nothing_is_undone_after_the_records() {
        let steps = rebase().steps();
        let at = |step: Step| steps.iter().position(|one| *one == step).unwrap();
        for volume in [Step::MoveVolume(0), Step::MoveVolume(1)] {
            assert!(at(Step::DemoteOriginal) < at(volume) && at(volume) < at(Step::PromoteCopy));
            assert_eq!(volume.undo(), Undo::MoveBack);
        }
        assert!(at(Step::TakeBackup) < at(Step::ChooseVmid), "the state before is in an archive");
        for step in &steps[at(Step::ConfirmPlaced) + 1..] {
            assert_ne!(rebase().exhausted(*step), Exhausted::Undo, "{step:?}");
        }
    }

    #[test]
    fn a_journal_reads_back() {
        let text = serde_json::to_string(&rebase()).unwrap();
        assert_eq!(serde_json::from_str::<RebaseGuest>(&text).unwrap(), rebase());
    }
}
