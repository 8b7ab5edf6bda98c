//! *restore_copy*: a backup restored under a new VMID.
//!
//! The guest itself is only read. Its copy never gets its mark, its addresses or its bootstrap token, and is never
//! started: the archive brings all of that along, so the restore call itself says what the copy is and which networks
//! and disks it has. A swap of the two is an operation of its own.

use std::collections::BTreeMap;

use holdfast_protocol::id::{BridgeName, GuestName, MountPath, OperationId, PoolName, StorageName, Vmid};
use serde::{Deserialize, Serialize};

use super::VmidRequest;
use super::applied::AppliedBy;
use super::spec::{Facts, Guest, Holds, Spec, Subject, Takes};
use super::step::Step;
use crate::gate::Effect;
use crate::model::mark;
use crate::model::policy::Policy;
use crate::model::records::VolumeId;
use crate::model::warrant::{SignedState, Warrant, WrongWarrant};

/// The suffix of a copy's host name: it distinguishes the copy from its guest in every list.
const SUFFIX: &str = "-copy";

/// A backup to be restored next to its guest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RestoreCopy {
    #[serde(with = "crate::model::warrant::journal")]
    warrant: Warrant,
    pub number: VmidRequest,
    pub pool: PoolName,
    /// Its root disk, and volumes whose places are not named.
    pub storage: StorageName,
    /// Where its volumes are made, by their paths: each as if it were new, so that nothing bulk fills fast storage.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub volume_storages: BTreeMap<MountPath, StorageName>,
    /// Where its unplugged networks would be plugged in: the one bridge that the agent was given.
    pub bridge: BridgeName,
}

impl RestoreCopy {
    /// By a warrant, and by nothing else; a number of the range that the document does not ask for by name.
    ///
    /// # Errors
    /// When the warrant was signed for something else.
    pub fn new(warrant: Warrant, policy: &Policy, except: Vec<Vmid>) -> Result<Self, WrongWarrant> {
        warrant.restores_copy()?;
        let in_range = |number: &Vmid| *number >= policy.range.first() && *number <= policy.range.last();
        Ok(Self {
            warrant,
            number: VmidRequest::AnyOf {
                range: policy.range,
                except: except.into_iter().filter(in_range).collect(),
            },
            pool: policy.pool.clone(),
            storage: policy.storage.clone(),
            volume_storages: BTreeMap::new(),
            bridge: policy.bridge.clone(),
        })
    }

    /// With its disks where they belong.
    #[must_use]
    pub fn placed(self, root: StorageName, volumes: BTreeMap<MountPath, StorageName>) -> Self {
        Self { storage: root, volume_storages: volumes, ..self }
    }

    /// Where the volume that is mounted there is made.
    #[must_use]
    pub fn storage_of(&self, path: &MountPath) -> &StorageName {
        self.volume_storages.get(path).unwrap_or(&self.storage)
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

    /// The archive.
    ///
    /// # Errors
    /// When the warrant was signed for something else: then this was not made by [`RestoreCopy::new`].
    pub const fn archive(&self) -> Result<&VolumeId, WrongWarrant> {
        self.warrant.restores_copy()
    }

    /// What the copy is called.
    #[must_use]
    pub fn hostname(&self) -> Option<GuestName> {
        let name: String = self.guest().name.as_str().chars().take(63 - SUFFIX.len()).collect();
        format!("{}{SUFFIX}", name.trim_end_matches('-')).parse().ok()
    }

    /// The first line of its description, which names guest and operation.
    #[must_use]
    pub fn first_line(&self, by: OperationId) -> String {
        mark::copy_line(self.guest().uid, by)
    }
}

impl Spec for RestoreCopy {
    fn facts(&self) -> Facts<'_> {
        let guest = self.warrant.target();
        Facts {
            guest: Guest { uid: guest.uid, name: &guest.name, vmid: None },
            holds: Holds::Guest,
            takes: Takes::Nothing,
            // A signature for one guest is no bulk change.
        }
    }

    fn subject(&self) -> Subject {
        Subject::Guest
    }

    fn steps(&self) -> Vec<Step> {
        vec![Step::ChooseVmid, Step::CheckArchive, Step::Restore, Step::TagCopy, Step::ReadBack]
    }

    fn effects(&self) -> Vec<Effect> {
        vec![Effect::RestoreCopy, Effect::Protect]
    }

    fn applied(&self) -> Option<AppliedBy> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::policy::VmidRange;
    use crate::model::warrant::Allows;

    fn of(name: &str) -> RestoreCopy {
        let (first, last) = (Vmid::try_from(300).unwrap(), Vmid::try_from(309).unwrap());
        let target = SignedState {
            uid: "018f3c1e-6b1f-7c1d-9d0a-2f6d1c0b7a55".parse().unwrap(),
            vmid: first,
            name: name.parse().unwrap(),
            volumes: std::collections::BTreeSet::new(),
        };
        let allows = Allows::RestoreCopy { archive: VolumeId::new("backup2:backup/a.tar.zst") };
        let job = holdfast_protocol::id::JobId::new(uuid::Uuid::nil());
        RestoreCopy {
            warrant: Warrant::for_tests(job, allows, target),
            number: VmidRequest::AnyOf {
                range: VmidRange::try_from([first, last]).unwrap(),
                except: Vec::new(),
            },
            pool: "holdfast".parse().unwrap(),
            storage: "tank".parse().unwrap(),
            volume_storages: BTreeMap::new(),
            bridge: "vmbr0".parse().unwrap(),
        }
    }

    #[test]
    fn a_copy_has_a_name_of_its_own_however_long_the_guests_is() {
        assert_eq!(of("web-1").hostname().unwrap().as_str(), "web-1-copy");
        let long = "a".repeat(63);
        assert_eq!(of(&long).hostname().unwrap().as_str().len(), 63);
        let dashed = format!("{}-{}", "a".repeat(57), "b".repeat(5));
        assert_eq!(of(&dashed).hostname().unwrap().as_str(), format!("{}-copy", "a".repeat(57)));
    }

    #[test]
    fn the_guests_own_number_is_not_the_copys() {
        assert_eq!(of("web-1").facts().guest.vmid, None);
    }
}
