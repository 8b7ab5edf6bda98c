//! Promises that the document asks for exactly as they are.
//!
//! In: what is in force for a guest, and what the document asks for it. Out: whether the two are the same and the guard
//! has nothing to say about them. Mostly it is so, and most guests share their promise with others: the guard is asked
//! once for each promise, and the tiers are compared once for each policy. The volumes are compared for each guest, once
//! for each document. Deliberately absent: what becomes of a difference (`protect`).

use std::collections::BTreeMap;
use std::sync::Arc;

use holdfast_protocol::desired::{DesiredGuest, DesiredVolume};
use holdfast_protocol::generation::ContentHash;
use holdfast_protocol::id::{GuestUid, PolicyName};
use holdfast_protocol::protection::{Protection, Tiers};

use super::alike::AlikePromises;
use super::{Inputs, schedule};
use crate::gate::protection::{Guarded, guard};

/// What the last plan found, for a plan of the same document.
#[derive(Debug, Default)]
pub(super) struct AgreedGuests {
    content: Option<ContentHash>,
    /// The promises that their document asked for as they were, in the order of the guests' uids.
    guests: Vec<(GuestUid, Arc<Protection>)>,
}

/// One plan's way along all guests, in the order of their uids.
pub(super) struct Agreed<'a> {
    inputs: &'a Inputs<'a>,
    /// By where the promise is in memory.
    promises: BTreeMap<usize, Answers<'a>>,
    earlier: std::iter::Peekable<std::vec::IntoIter<(GuestUid, Arc<Protection>)>>,
    alike: AlikePromises,
    found: Vec<(GuestUid, Arc<Protection>)>,
}

/// What is known of one promise.
struct Answers<'a> {
    guard: Guard,
    /// Policies that guests under it named, and whether their tiers are its tiers.
    policies: Vec<(Option<&'a PolicyName>, SameTiers)>,
}

/// What the guard says where the document asks for what is in force.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Guard {
    /// It stays as it is, and nothing is held.
    Silent,
    /// A person should know something.
    Speaks,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SameTiers {
    Yes,
    No,
}

impl<'a> Agreed<'a> {
    pub(super) fn begin(inputs: &'a Inputs<'a>, memory: &mut AgreedGuests) -> Self {
        let AgreedGuests { content, guests } = std::mem::take(memory);
        // Without a hash nothing says that the document is the same.
        let is_same = inputs.content.is_some() && content == inputs.content;
        Self {
            inputs,
            promises: BTreeMap::new(),
            earlier: if is_same { guests } else { Vec::new() }.into_iter().peekable(),
            alike: AlikePromises::default(),
            found: Vec::with_capacity(inputs.records.protections.len()),
        }
    }

    pub(super) fn end(self, memory: &mut AgreedGuests) {
        *memory = AgreedGuests { content: self.inputs.content, guests: self.found };
    }

    /// Whether nothing changes about a guest's promise, and nothing is to be said about it.
    pub(super) fn is_settled(&mut self, promise: &'a Arc<Protection>, guest: &'a DesiredGuest) -> bool {
        let inputs = self.inputs;
        let answers = self
            .promises
            .entry(Arc::as_ptr(promise).addr())
            .or_insert_with(|| Answers { guard: asked(inputs, promise), policies: Vec::new() });
        if answers.guard == Guard::Speaks {
            return false;
        }
        while self.earlier.next_if(|(uid, _)| *uid < guest.uid).is_some() {}
        let earlier = self.earlier.next_if(|(uid, _)| *uid == guest.uid);
        if let Some(earlier) = earlier.filter(|(_, was)| self.alike.are(was, promise)) {
            self.found.push(earlier);
            return true;
        }
        let is_asked = answers.tiers(inputs, promise, guest.policy.as_ref()) == SameTiers::Yes
            && same_volumes(promise, &guest.volumes);
        if is_asked {
            self.found.push((guest.uid, Arc::clone(promise)));
        }
        is_asked
    }
}

impl<'a> Answers<'a> {
    fn tiers(
        &mut self,
        inputs: &Inputs<'_>,
        promise: &Protection,
        name: Option<&'a PolicyName>,
    ) -> SameTiers {
        if let Some((_, same)) = self.policies.iter().find(|(known, _)| *known == name) {
            return *same;
        }
        let policy = name.and_then(|name| inputs.policies.iter().find(|policy| policy.name == *name));
        let is_same =
            policy.map_or_else(|| promise.tiers == Tiers::default(), |it| it.tiers == promise.tiers);
        let same = if is_same { SameTiers::Yes } else { SameTiers::No };
        self.policies.push((name, same));
        same
    }
}

/// Whether these volumes are the promise's, name by name.
fn same_volumes(promise: &Protection, volumes: &[DesiredVolume]) -> bool {
    let are = |by_name: &mut dyn Iterator<Item = &DesiredVolume>| {
        promise
            .volumes
            .iter()
            .zip(by_name)
            .all(|(kept, volume)| kept.name == volume.name && kept.kind == volume.kind)
    };
    if promise.volumes.len() != volumes.len() {
        return false;
    }
    if volumes.is_sorted_by(|one, next| one.name <= next.name) {
        return are(&mut volumes.iter());
    }
    let mut by_name: Vec<&DesiredVolume> = volumes.iter().collect();
    by_name.sort_by(|one, other| one.name.cmp(&other.name));
    are(&mut by_name.into_iter())
}

fn asked(inputs: &Inputs<'_>, promise: &Protection) -> Guard {
    if is_silent(&guarded(inputs, Some(promise), promise), promise) { Guard::Silent } else { Guard::Speaks }
}

/// Whether the guard changes nothing of a promise, and has nothing to say.
pub(super) fn is_silent(said: &Guarded, promise: &Protection) -> bool {
    let Guarded { next: _, raised, loosened, beyond, intended, unapproved } = said;
    let held = [loosened, beyond].iter().any(|held| !held.is_empty()) || !unapproved.is_empty();
    raised.is_empty() && !held && intended == promise
}

/// What the guard says of a request, by what is approved and allowed on this host.
pub(super) fn guarded(inputs: &Inputs<'_>, in_force: Option<&Protection>, goal: &Protection) -> Guarded {
    let may = |tier, target: &_| schedule::target::is_approved(inputs.policy, inputs.records, tier, target);
    guard(in_force, goal, (&may, &inputs.records.backup_limits))
}
