//! The proof that a missing guest is gone.
//!
//! In: the guest that may be gone, and what exists under its number. Out: the proof, if there is one, or what
//! contradicts it. A destruction in the node's list of tasks proves most. Without one, a volume that is listed anywhere
//! shows that only the configuration is gone, and the guest's newest data is still there. What does not answer proves
//! nothing. Deliberately absent: how many observations make a loss.

use std::collections::BTreeSet;

use holdfast_protocol::id::StorageName;
use jiff::Timestamp;

use super::Observer;
use crate::model::observed::{LossProof, VmidFact};
use crate::model::records::VolumeId;
use crate::plan::missing_guest::{Newcomer, Suspect};
use crate::port::pve::task::TaskEnd;
use crate::port::pve::{ContentKind, Role};

/// The result of one observation of a guest that may be gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gone {
    /// It is gone.
    Proved(LossProof),
    /// No guest has its VMID, but these of its volumes are listed.
    VolumesStand(BTreeSet<VolumeId>),
    /// Nothing is proved.
    Unproved,
}

/// Which of a guest's volumes are listed.
enum Listed {
    /// These, and any others on storages that did not answer.
    Some(BTreeSet<VolumeId>),
    /// None, on storages that all answered.
    None,
    /// None on those that answered.
    NoneSeen,
}

impl Observer {
    /// Whether a guest that may be gone is gone, and what has its number.
    /// `made_at` is when we made it.
    pub async fn look_for(&self, suspect: &Suspect, made_at: Timestamp) -> (VmidFact, Gone) {
        let fact = super::numbers::number(self.pve.as_ref(), suspect.vmid).await;
        let gone = match (suspect.newcomer, fact) {
            (Newcomer::None, VmidFact::Free) | (Newcomer::Other | Newcomer::SameNames, VmidFact::Taken)
                if self.was_destroyed(suspect, made_at).await =>
            {
                Gone::Proved(LossProof::Destroyed)
            }
            (Newcomer::None, VmidFact::Free) => match self.listed(suspect).await {
                Listed::Some(volumes) => Gone::VolumesStand(volumes),
                Listed::None | Listed::NoneSeen => Gone::Proved(LossProof::Absent),
            },
            // Under a number that is in our pool its volumes would be seen. A storage that does not answer may hold one still.
            (Newcomer::Other, VmidFact::Taken) => match self.listed(suspect).await {
                Listed::None => Gone::Proved(LossProof::Absent),
                Listed::Some(_) | Listed::NoneSeen => Gone::Unproved,
            },
            _ => Gone::Unproved,
        };
        (fact, gone)
    }

    /// Whether any task destroyed the guest with this number since we made ours.
    async fn was_destroyed(&self, suspect: &Suspect, made_at: Timestamp) -> bool {
        let Ok(since) = u64::try_from(made_at.as_second()) else { return false };
        let tasks = self.pve.destroyed_since(suspect.vmid, since).await;
        tasks.is_ok_and(|rows| rows.iter().any(|row| row.end.as_ref() == Some(&TaskEnd::Ok)))
    }

    async fn listed(&self, suspect: &Suspect) -> Listed {
        let named = |volume: &VolumeId| volume.storage()?.parse::<StorageName>().ok();
        let storages: BTreeSet<Option<StorageName>> = suspect.volumes.iter().map(named).collect();
        let (mut present, mut silent) = (BTreeSet::new(), storages.contains(&None));
        for storage in storages.iter().flatten() {
            // Selected by the VMID that owns them, not by their purpose: a disk whose VMID belongs to no guest is
            // listed as an image.
            for kind in [ContentKind::Rootdir, ContentKind::Images] {
                let list = self.pve.storage_content(Role::Operate, storage, kind, Some(suspect.vmid)).await;
                let Ok(list) = list else {
                    silent = true;
                    continue;
                };
                let names = list.iter().map(|entry| VolumeId::new(entry.volid.as_str()));
                present.extend(names.filter(|volume| suspect.volumes.contains(volume)));
            }
        }
        match (present.is_empty(), silent) {
            (false, _) => Listed::Some(present),
            (true, false) => Listed::None,
            (true, true) => Listed::NoneSeen,
        }
    }
}
