//! Findings of an exchange of two containers.
//!
//! In: the findings of a swap or of a rebase. Out: how both were known, the guest's token, and which volumes moved.
//! Deliberately absent: what is done with it.

use std::collections::BTreeMap;

use super::OperationState;
use crate::model::records::VolumeId;
use crate::operation::log::Finding;
use crate::operation::swap_guest::identity::GuestIdentities;

impl OperationState {
    /// What a guest and its copy were known by when this operation came to them.
    #[must_use]
    pub fn identities(&self) -> Option<&GuestIdentities> {
        self.facts.iter().find_map(|fact| {
            let Finding::FoundIdentities(identities) = fact else { return None };
            Some(identities.as_ref())
        })
    }

    /// The count of the token that the guest had when this operation came to it, where it had one.
    #[must_use]
    pub fn found_token(&self) -> Option<u32> {
        self.facts.iter().find_map(|fact| {
            let Finding::FoundToken { generation } = fact else { return None };
            Some(*generation)
        })
    }

    /// Keeps what an undo found of volumes that came back. Whatever else one finds is for the records alone.
    pub(super) fn learn_back(&mut self, facts: &[Finding]) {
        let back = facts.iter().filter(|fact| matches!(fact, Finding::MovedBack { .. }));
        self.facts.extend(back.cloned());
    }

    /// Volumes that are back with the guest: their names now, by those that were signed. One volume may have the name that
    /// another had.
    #[must_use]
    pub fn moved_back(&self) -> BTreeMap<VolumeId, VolumeId> {
        let back = |fact: &Finding| {
            let Finding::MovedBack { was, volume } = fact else { return None };
            Some((was.clone(), volume.clone()))
        };
        self.facts.iter().filter_map(back).collect()
    }

    /// Volumes of the guest that the container has which takes its place: the names there, by those that were signed.
    #[must_use]
    pub fn moved(&self) -> BTreeMap<VolumeId, VolumeId> {
        let moved = |fact: &Finding| {
            let Finding::Moved { was, volume } = fact else { return None };
            Some((was.clone(), volume.clone()))
        };
        self.facts.iter().filter_map(moved).collect()
    }
}
