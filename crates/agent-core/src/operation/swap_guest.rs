//! *swap_guest*: a signed swap of a guest with its restored copy.
//!
//! The guest is stopped, marked as a copy as the other was, and kept; the copy gets its mark, its name and its
//! networks, is started, and must say hello. Only then our records change, in one transaction. Until then every step
//! can be taken back by what was found before the first one. Nothing here can delete anything: there is no step that
//! does.
//!
//! | module | what |
//! | --- | --- |
//! | [`identity`] | what a guest is known by, and what the two look like afterwards |

pub mod identity;

use std::collections::BTreeSet;

use holdfast_protocol::id::{BridgeName, GuestName, OperationId};
use serde::{Deserialize, Serialize};

use super::Backup;
use super::applied::AppliedBy;
use super::spec::{Facts, Guest, Holds, Spec, Subject, Takes};
use super::step::Step;
use crate::gate::Effect;
use crate::model::mark::{self, Mark};
use crate::model::records::VolumeId;
use crate::model::warrant::{SignedState, Warrant, WrongWarrant};

/// The suffix of the replaced guest's host name: it distinguishes the two in every list.
const SUFFIX: &str = "-former";

/// A guest and the copy that takes its place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SwapGuest {
    #[serde(with = "crate::model::warrant::journal")]
    warrant: Warrant,
    copy: SignedState,
    leaves: BTreeSet<VolumeId>,
    /// The operation that put the copy there, by our records.
    pub made_by: OperationId,
    /// The one bridge that guests of ours may be on.
    pub bridge: BridgeName,
    /// The first backup of the guest under its new number: until it is taken, the newest one is of what was laid aside.
    pub backup: Option<Backup>,
}

/// What stays with the guest that is laid aside is not what was signed for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LeftBehind {
    /// The copy lacks something that the signature does not name.
    #[error(
        "the copy has nothing where {0} is mounted, which would stay with the guest that is laid aside, out of use: if that is \
         meant, sign anew and name it (`--leave {0}`)"
    )]
    Unnamed(VolumeId),
    /// Something was named that does not stay behind.
    #[error(
        "{0} was signed for as staying behind, and is no mounted volume that the copy lacks: look again and sign anew"
    )]
    NotLeft(VolumeId),
}

/// Holds the volumes that stay behind to those that were named.
///
/// # Errors
/// [`LeftBehind`].
pub fn judge_left(named: &BTreeSet<VolumeId>, left: &BTreeSet<VolumeId>) -> Result<(), LeftBehind> {
    if let Some(volume) = left.difference(named).next() {
        return Err(LeftBehind::Unnamed(volume.clone()));
    }
    match named.difference(left).next() {
        Some(volume) => Err(LeftBehind::NotLeft(volume.clone())),
        None => Ok(()),
    }
}

impl SwapGuest {
    /// By a warrant, and by nothing else.
    ///
    /// # Errors
    /// When the warrant was signed for something else.
    pub fn new(
        warrant: Warrant,
        made_by: OperationId,
        bridge: BridgeName,
        backup: Option<Backup>,
    ) -> Result<Self, WrongWarrant> {
        let (copy, leaves) = warrant.swaps()?;
        let (copy, leaves) = (copy.clone(), leaves.clone());
        Ok(Self { warrant, copy, leaves, made_by, bridge, backup })
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

    /// The copy, as the operator saw it; its uid is the guest's.
    #[must_use]
    pub const fn copy(&self) -> &SignedState {
        &self.copy
    }

    /// Volumes of the guest that stay with the replaced guest, because the copy has nothing at their paths.
    #[must_use]
    pub const fn leaves(&self) -> &BTreeSet<VolumeId> {
        &self.leaves
    }

    /// Whether exactly those volumes stay behind that were signed for: no volume is lost that the signature does not
    /// name.
    ///
    /// # Errors
    /// [`LeftBehind`].
    pub fn judge_left(&self, left: &BTreeSet<VolumeId>) -> Result<(), LeftBehind> {
        judge_left(&self.leaves, left)
    }

    /// The copy's mark before it takes the place.
    #[must_use]
    pub fn copys_mark(&self) -> Mark {
        Mark::Copy { of: self.guest().uid, by: self.made_by }
    }

    /// The two, as the steps of an exchange see them.
    #[must_use]
    pub fn pair(&self) -> Pair {
        Pair {
            guest: self.guest().clone(),
            copy: self.copy.clone(),
            copys_mark: self.copys_mark(),
            bridge: self.bridge.clone(),
            why: Replaced::ByItsCopy,
        }
    }
}

/// By what a guest is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replaced {
    /// By a copy that was restored from its backup.
    ByItsCopy,
    /// By a container of a newer image, with its volumes.
    ByANewerImage,
}

/// A guest and the container that takes its place, with the volumes that each of them has throughout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    pub guest: SignedState,
    /// Its uid is the guest's.
    pub copy: SignedState,
    /// The copy's mark before it takes the place.
    pub copys_mark: Mark,
    /// The one bridge that guests of ours may be on.
    pub bridge: BridgeName,
    pub why: Replaced,
}

impl Pair {
    /// The guest's mark once it is laid aside.
    #[must_use]
    pub fn former_mark(&self, by: OperationId) -> Mark {
        Mark::Copy { of: self.guest.uid, by }
    }

    /// What the guest is called once it is laid aside.
    #[must_use]
    pub fn former_name(&self) -> Option<GuestName> {
        let name: String = self.guest.name.as_str().chars().take(63 - SUFFIX.len()).collect();
        format!("{}{SUFFIX}", name.trim_end_matches('-')).parse().ok()
    }

    /// What its description says then.
    #[must_use]
    pub fn former_description(&self, by: OperationId) -> String {
        match self.why {
            Replaced::ByItsCopy => mark::former_description(self.guest.uid, by, self.copy.vmid),
            Replaced::ByANewerImage => mark::rebased_description(self.guest.uid, by, self.copy.vmid),
        }
    }
}

impl Spec for SwapGuest {
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
        let swap = [
            Step::VerifySwap,
            Step::StopOriginal,
            Step::DemoteOriginal,
            Step::PromoteCopy,
            Step::StartPlaced,
            Step::AwaitHello,
            Step::ConfirmPlaced,
        ];
        swap.into_iter().chain(self.backup.iter().map(|_| Step::FirstBackup)).collect()
    }

    fn effects(&self) -> Vec<Effect> {
        let signed = [Effect::SwapGuest, Effect::StopOrRestart, Effect::Start, Effect::Protect];
        signed.into_iter().chain(self.backup.iter().map(|_| Effect::Backup)).collect()
    }

    fn applied(&self) -> Option<AppliedBy> {
        None
    }
}

#[cfg(test)]
mod tests {
    use holdfast_protocol::id::JobId;

    use super::*;
    use crate::model::warrant::Allows;
    use crate::operation::step::Undo;
    use holdfast_protocol::id::Vmid;

    fn by(n: u128) -> OperationId {
        OperationId::new(uuid::Uuid::from_u128(n))
    }

    fn seen(vmid: u32, name: &str) -> SignedState {
        SignedState {
            uid: "018f3c1e-6b1f-7c1d-9d0a-2f6d1c0b7a55".parse().unwrap(),
            vmid: Vmid::try_from(vmid).unwrap(),
            name: name.parse().unwrap(),
            volumes: BTreeSet::new(),
        }
    }

    fn of(name: &str) -> SwapGuest {
        let allows = Allows::SwapGuest { copy: Box::new(seen(301, "web-1-copy")), leaves: BTreeSet::new() };
        let warrant = Warrant::for_tests(JobId::new(uuid::Uuid::nil()), allows, seen(300, name));
        SwapGuest::new(warrant, by(7), "vmbr0".parse().unwrap(), None).unwrap()
    }

    #[test]
    fn what_is_laid_demoted_has_a_name_and_a_mark_of_its_own() {
        assert_eq!(of("web-1").pair().former_name().unwrap().as_str(), "web-1-former");
        assert_eq!(of(&"a".repeat(63)).pair().former_name().unwrap().as_str().len(), 63);
        let tags: BTreeSet<String> = mark::copy_tags(by(9)).into();
        let swap = of("web-1").pair();
        assert_eq!(mark::read(&tags, &swap.former_description(by(9))), swap.former_mark(by(9)));
        assert_ne!(swap.former_mark(by(9)), swap.copys_mark);
    }

    #[test]
    fn a_warrant_for_something_else_swaps_nothing() {
        let warrant =
            Warrant::for_tests(JobId::new(uuid::Uuid::nil()), Allows::DestroyGuest, seen(300, "web-1"));
        assert!(SwapGuest::new(warrant, by(7), "vmbr0".parse().unwrap(), None).is_err());
    }

    #[test]
    fn what_stays_behind_is_named_and_nothing_else_is() {
        let all = |names: &[&str]| names.iter().map(|name| VolumeId::new(*name)).collect::<BTreeSet<_>>();
        let judged = |named: &[&str], left: &[&str]| judge_left(&all(named), &all(left));
        assert_eq!(judged(&[], &[]), Ok(()));
        assert_eq!(judged(&["a:1"], &["a:1"]), Ok(()));
        assert_eq!(judged(&["a:1"], &["a:1", "a:2"]), Err(LeftBehind::Unnamed(VolumeId::new("a:2"))));
        assert_eq!(judged(&["a:1", "a:2"], &["a:1"]), Err(LeftBehind::NotLeft(VolumeId::new("a:2"))));
    }

    /// Whatever fails, neither of the two is ever destroyed.
    #[test]
    fn no_step_and_no_way_back_deletes_anything() {
        for step in of("web-1").steps() {
            assert!(
                !matches!(step, Step::DestroyGuest | Step::DestroyScratch | Step::LiftProtection),
                "{step:?}"
            );
            assert!(!matches!(step.undo(), Undo::DestroyGuest | Undo::Unprotect), "{step:?}");
        }
    }
}
