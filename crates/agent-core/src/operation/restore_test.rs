//! *restore_test*: a backup restored into a scratch guest and checked.
//!
//! It shows whether the backup comes back. It holds no guest's lane: what it makes belongs to no guest, and a guest
//! goes on being backed up and snapshotted while its last backup is tried. All tests share one lane of their own, so
//! there is one at a time on a host. A test that fails takes back what it made; what it showed is kept either way.
//! [`verdict`] judges what its controller says. [`blame`] judges a test that was broken off. [`took`] measures how long
//! it took. [`checks`] lists what passed.

pub mod blame;
pub mod checks;
pub mod took;
pub mod verdict;

use holdfast_protocol::id::{GuestName, GuestUid, OperationId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::applied::AppliedBy;
use super::spec::{Facts, Guest, Holds, Spec, Subject, Takes};
use super::step::Step;
use crate::gate::Effect;
use crate::model::mark;
use crate::model::policy::TestPlace;
use crate::model::records::VolumeId;

/// The lane that the tests of a host share: no guest's lane.
pub const LANE: GuestUid = GuestUid::new(Uuid::nil());

/// The host name of a scratch guest begins so.
const PREFIX: &str = "test-";

/// A backup to be tried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RestoreTest {
    /// Whose backup it is.
    pub guest: GuestUid,
    /// That guest's name.
    pub name: GuestName,
    pub backup: TestedBackup,
    /// Where it is tried.
    pub place: TestPlace,
}

/// The backup that is tried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TestedBackup {
    pub archive: VolumeId,
    /// The operation that took it.
    pub taken_by: OperationId,
    /// When, by Proxmox's clock.
    pub taken_at: Timestamp,
}

impl RestoreTest {
    /// What the scratch guest is called.
    #[must_use]
    pub fn hostname(&self) -> Option<GuestName> {
        let name: String = self.name.as_str().chars().take(63 - PREFIX.len()).collect();
        format!("{PREFIX}{}", name.trim_end_matches('-')).parse().ok()
    }

    /// The first line of its description, which names the guest and this very operation.
    #[must_use]
    pub fn first_line(&self, by: OperationId) -> String {
        mark::copy_line(self.guest, by)
    }
}

impl Spec for RestoreTest {
    fn facts(&self) -> Facts<'_> {
        Facts {
            guest: Guest { uid: self.guest, name: &self.name, vmid: None },
            holds: Holds::Tests,
            takes: Takes::Nothing,
            // What it stops is its own.
        }
    }

    fn subject(&self) -> Subject {
        Subject::Guest
    }

    fn steps(&self) -> Vec<Step> {
        let mut steps = vec![Step::ChooseVmid, Step::CheckArchive, Step::Restore, Step::ConfirmIsolated];
        steps.extend(match self.place.speech {
            Some(_) => &[Step::SetBootstrapToken, Step::FirstStart, Step::AwaitReport][..],
            None => &[Step::FirstStart, Step::ObserveBoot],
        });
        steps.extend([Step::StopScratch, Step::DestroyScratch, Step::ConfirmScratchGone]);
        steps
    }

    fn effects(&self) -> Vec<Effect> {
        vec![Effect::TryBackup, Effect::DestroyScratch]
    }

    fn applied(&self) -> Option<AppliedBy> {
        None
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use holdfast_protocol::size::{Cores, MemoryMib};

    use super::*;
    use crate::model::policy::VmidRange;
    use holdfast_protocol::id::Vmid;

    fn of(name: &str) -> RestoreTest {
        let [first, last] = [900, 909].map(|number| Vmid::try_from(number).unwrap());
        RestoreTest {
            guest: "018f3c1e-6b1f-7c1d-9d0a-2f6d1c0b7a55".parse().unwrap(),
            name: name.parse().unwrap(),
            backup: TestedBackup {
                archive: VolumeId::new("backup2:backup/a.tar.zst"),
                taken_by: OperationId::new(Uuid::nil()),
                taken_at: Timestamp::UNIX_EPOCH,
            },
            place: TestPlace {
                range: VmidRange::try_from([first, last]).unwrap(),
                pool: "holdfast-scratch".parse().unwrap(),
                storage: "tank".parse().unwrap(),
                bridge: "vmbr0".parse().unwrap(),
                memory: MemoryMib::try_from(1024).unwrap(),
                cores: Cores::MIN,
                speech: None,
                twins: BTreeMap::new(),
            },
        }
    }

    #[test]
    fn it_has_a_name_of_its_own_however_long_the_guests_is() {
        assert_eq!(of("web-1").hostname().unwrap().as_str(), "test-web-1");
        assert_eq!(of(&"a".repeat(63)).hostname().unwrap().as_str().len(), 63);
        let dashed = format!("{}-{}", "a".repeat(57), "b".repeat(5));
        assert_eq!(of(&dashed).hostname().unwrap().as_str(), format!("test-{}", "a".repeat(57)));
    }
}
