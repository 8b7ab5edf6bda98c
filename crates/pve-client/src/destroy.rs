//! The proof without which no customer's guest can be destroyed.
//!
//! Input: the [`Warrant`], and the guest as it is now. Output: a [`DestroyProof`], or what changed since the operator
//! looked. Anything more than was signed for prevents the destroy, as does anything less. Deliberately absent: a way to
//! make the proof without a warrant, or without reading the guest.

use std::collections::BTreeSet;

use holdfast_protocol::id::{GuestName, Vmid};

use super::config::GuestConfig;
use super::volume::Backing;
use agent_core::gate::warrant::{SignedState, Warrant};
use agent_core::model::mark::{self, Mark};
use agent_core::model::records::VolumeId;
use agent_core::operation::DiscardCopy;

/// What differs from the state that the operator saw.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetChanged {
    /// Tags or description do not say that it is this guest.
    #[error("guest {vmid} does not carry the mark of the guest that was signed for")]
    Mark { vmid: Vmid },
    /// It has another name.
    #[error("guest {vmid} is called {seen:?} now, signed for was {signed}")]
    Name {
        vmid: Vmid,
        /// As it is called now.
        seen: String,
        /// As it was called.
        signed: GuestName,
    },
    /// It has a volume that was not signed for.
    #[error("guest {vmid} has the volume {volume}, which was not signed for")]
    More { vmid: Vmid, volume: VolumeId },
    /// A volume that was signed for is not there.
    #[error("guest {vmid} has no volume {volume} any more, which was signed for")]
    Less { vmid: Vmid, volume: VolumeId },
    /// A path of the host is mounted into it. We never do that.
    #[error("guest {vmid} has a host path mounted: somebody changed it by hand")]
    HostPath { vmid: Vmid },
}

/// Proof that a guest is exactly what an operator signed for.
#[derive(Debug)]
pub struct DestroyProof {
    vmid: Vmid,
}

impl DestroyProof {
    /// Compares the signed state with the guest as it is now.
    ///
    /// # Errors
    /// The first thing that changed.
    pub fn establish(warrant: &Warrant, seen: &GuestConfig) -> Result<Self, TargetChanged> {
        compare(warrant.target(), seen)?;
        Ok(Self { vmid: warrant.target().vmid })
    }

    /// Compares a copy that was signed to be discarded with what has its number now. A guest has another mark.
    ///
    /// # Errors
    /// The first thing that changed.
    pub fn of_copy(discard: &DiscardCopy, seen: &GuestConfig) -> Result<Self, TargetChanged> {
        let vmid = discard.copy().vmid;
        if mark::read(&seen.tags, &seen.description) != discard.mark() {
            return Err(TargetChanged::Mark { vmid });
        }
        compare_unmarked(discard.copy(), seen)?;
        Ok(Self { vmid })
    }

    #[must_use]
    pub const fn vmid(&self) -> Vmid {
        self.vmid
    }
}

/// Compares a target as an operator saw it with the guest as it is now.
///
/// # Errors
/// The first thing that changed.
pub fn compare(target: &SignedState, seen: &GuestConfig) -> Result<(), TargetChanged> {
    let vmid = target.vmid;
    if mark::read(&seen.tags, &seen.description) != Mark::Of(target.uid) {
        return Err(TargetChanged::Mark { vmid });
    }
    compare_unmarked(target, seen)
}

/// The same of a guest that need not carry our mark yet.
///
/// # Errors
/// The first thing that changed.
pub fn compare_unmarked(target: &SignedState, seen: &GuestConfig) -> Result<(), TargetChanged> {
    let vmid = target.vmid;
    if seen.hostname.as_deref() != Some(target.name.as_str()) {
        let called = seen.hostname.clone().unwrap_or_default();
        return Err(TargetChanged::Name { vmid, seen: called, signed: target.name.clone() });
    }
    if seen.mounts.values().chain(&seen.rootfs).any(|disk| matches!(disk.backing, Backing::Host(_))) {
        return Err(TargetChanged::HostPath { vmid });
    }
    let present: BTreeSet<VolumeId> = seen.volumes().iter().map(|id| VolumeId::new(id.as_str())).collect();
    if let Some(volume) = present.difference(&target.volumes).next() {
        return Err(TargetChanged::More { vmid, volume: volume.clone() });
    }
    match target.volumes.difference(&present).next() {
        Some(volume) => Err(TargetChanged::Less { vmid, volume: volume.clone() }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent_core::gate::warrant::Allows;
    use holdfast_protocol::id::{GuestUid, JobId, OperationId};
    use serde_json::json;

    const ROOT: &str = "a:300/vm-300-disk-0.raw";

    fn uid() -> GuestUid {
        "018f3c1e-6b1f-7c1d-9d0a-2f6d1c0b7a55".parse().unwrap()
    }

    fn warrant() -> Warrant {
        let seen = SignedState {
            uid: uid(),
            vmid: Vmid::try_from(300).unwrap(),
            name: "web-1".parse().unwrap(),
            volumes: [VolumeId::new(ROOT)].into(),
        };
        Warrant::for_tests(JobId::new(uuid::Uuid::nil()), Allows::DestroyGuest, seen)
    }

    fn guest() -> serde_json::Value {
        json!({
            "digest": "0efe9d8b6dd8ab19dfd1c70300537ee86bad8bf0", "hostname": "web-1",
            "tags": mark::tags(uid()).join(";"), "description": mark::description(uid()),
            "rootfs": format!("{ROOT},size=1G")
        })
    }

    #[test]
    fn exactly_what_was_signed_for_and_nothing_else() {
        let judge = |guest| DestroyProof::establish(&warrant(), &GuestConfig::read(&guest).unwrap());
        assert_eq!(judge(guest()).unwrap().vmid().number(), 300);
        type Changes = [(&'static str, serde_json::Value, fn(&TargetChanged) -> bool); 8];
        let changes: Changes = [
            ("tags", json!("holdfast"), |why| matches!(why, TargetChanged::Mark { .. })),
            ("tags", json!(""), |why| matches!(why, TargetChanged::Mark { .. })),
            ("description", json!("somebody's"), |why| matches!(why, TargetChanged::Mark { .. })),
            ("hostname", json!("web-2"), |why| matches!(why, TargetChanged::Name { .. })),
            ("mp3", json!("a:300/vm-300-disk-1.raw,mp=/x"), |why| matches!(why, TargetChanged::More { .. })),
            ("unused0", json!("a:9/vm-9-disk-1.raw"), |why| matches!(why, TargetChanged::More { .. })),
            ("rootfs", json!("a:300/vm-300-disk-7.raw"), |why| matches!(why, TargetChanged::More { .. })),
            ("mp0", json!("/srv,mp=/srv"), |why| matches!(why, TargetChanged::HostPath { .. })),
        ];
        for (key, value, expected) in changes {
            let mut changed = guest();
            changed[key] = value;
            let why = judge(changed).unwrap_err();
            assert!(expected(&why), "{key}: {why}");
        }
        let mut less = guest();
        less.as_object_mut().unwrap().remove("rootfs");
        assert!(matches!(judge(less), Err(TargetChanged::Less { .. })));
    }

    /// The guest itself under the copy's number, another copy, and a copy that grew a volume.
    #[test]
    fn a_copy_is_known_by_its_own_mark_and_no_guest_is_one() {
        let by = OperationId::new(uuid::Uuid::from_u128(7));
        let copy = warrant().target().clone();
        let allows = Allows::DiscardCopy { copy: Box::new(copy.clone()) };
        let warrant = Warrant::for_tests(JobId::new(uuid::Uuid::nil()), allows, copy);
        let discard = DiscardCopy::new(warrant, by).unwrap();
        let judge = |seen| DestroyProof::of_copy(&discard, &GuestConfig::read(&seen).unwrap());
        let kept = |by| {
            let mut seen = guest();
            seen["tags"] = json!(mark::copy_tags(by).join(";"));
            seen["description"] = json!(mark::copy_line(uid(), by));
            seen
        };
        assert_eq!(judge(kept(by)).unwrap().vmid().number(), 300);
        assert!(matches!(judge(guest()), Err(TargetChanged::Mark { .. })));
        let others = OperationId::new(uuid::Uuid::from_u128(8));
        assert!(matches!(judge(kept(others)), Err(TargetChanged::Mark { .. })));
        let mut more = kept(by);
        more["mp3"] = json!("a:300/vm-300-disk-1.raw,mp=/x");
        assert!(matches!(judge(more), Err(TargetChanged::More { .. })));
    }
}
