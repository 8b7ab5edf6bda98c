//! The witness without which protection cannot be taken off.
//!
//! Input: what our records say of a guest, or a witness that says more, and the configuration as it is now. Output: a
//! [`LiftProof`], or the reason why the guest is not the one we know. Deliberately absent: a way to make the witness
//! without looking at the guest.

use std::collections::BTreeSet;

use holdfast_protocol::id::Vmid;

use super::config::GuestConfig;
use super::destroy::DestroyProof;
use super::undo::UndoProof;
use super::volume::VolumeId;

/// Our records about a guest that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownGuest {
    pub vmid: Vmid,
    /// Tags that must all be there.
    pub tags: BTreeSet<String>,
    /// The first line of its description.
    pub first_line: String,
    /// Volumes that must all be there.
    pub volumes: BTreeSet<VolumeId>,
}

/// Why a guest is not the one we know.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotKnown {
    /// Tags or description are not as we set them.
    #[error("guest {vmid} does not carry our mark any more: its protection stays as it is")]
    Mark { vmid: Vmid },
    /// A volume of ours is not there.
    #[error("guest {vmid} has lost its volume {volume}: its protection stays as it is")]
    Volume { vmid: Vmid, volume: VolumeId },
}

/// Proof that a guest's protection may be switched off.
#[derive(Debug)]
pub struct LiftProof {
    vmid: Vmid,
}

impl LiftProof {
    /// A guest of ours, for as long as a volume is attached to it. Protection is switched on again afterwards.
    ///
    /// # Errors
    /// When number, mark and volumes do not all agree.
    pub fn of_known(known: &KnownGuest, seen: &GuestConfig) -> Result<Self, NotKnown> {
        let vmid = known.vmid;
        let described = seen.description.lines().next() == Some(known.first_line.as_str());
        if known.tags.is_empty() || !known.tags.is_subset(&seen.tags) || !described {
            return Err(NotKnown::Mark { vmid });
        }
        match known.volumes.difference(&seen.volumes()).next() {
            Some(volume) => Err(NotKnown::Volume { vmid, volume: volume.clone() }),
            None => Ok(Self { vmid }),
        }
    }

    /// A guest that this operation made and now undoes.
    #[must_use]
    pub fn of_undo(proof: &UndoProof) -> Self {
        Self { vmid: proof.vmid() }
    }

    /// A guest that an operator signed to be destroyed.
    #[must_use]
    pub const fn of_destroy(proof: &DestroyProof) -> Self {
        Self { vmid: proof.vmid() }
    }

    #[must_use]
    pub fn vmid(&self) -> Vmid {
        self.vmid
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn known() -> KnownGuest {
        KnownGuest {
            vmid: Vmid::try_from(300).unwrap(),
            tags: ["holdfast".to_owned(), "hf-1a2b3c4d".to_owned()].into(),
            first_line: "holdfast guest 018f".to_owned(),
            volumes: ["a:300/vm-300-disk-0.raw".parse().unwrap()].into(),
        }
    }

    fn seen(tags: &str, description: &str, root: &str) -> GuestConfig {
        let digest = "0efe9d8b6dd8ab19dfd1c70300537ee86bad8bf0";
        let value = json!({"digest": digest, "tags": tags, "description": description, "rootfs": root});
        GuestConfig::read(&value).unwrap()
    }

    #[test]
    fn number_mark_and_volumes_must_all_agree() {
        let (tags, line, root) =
            ("holdfast;hf-1a2b3c4d;web", "holdfast guest 018f\nnote", "a:300/vm-300-disk-0.raw");
        assert_eq!(LiftProof::of_known(&known(), &seen(tags, line, root)).unwrap().vmid(), known().vmid);
        for (tags, line) in
            [("holdfast", line), ("", line), (tags, "a note"), (tags, "note\nholdfast guest 018f")]
        {
            let refused = LiftProof::of_known(&known(), &seen(tags, line, root));
            assert!(matches!(refused, Err(NotKnown::Mark { .. })), "{tags} {line}");
        }
        let exchanged = LiftProof::of_known(&known(), &seen(tags, line, "a:300/vm-300-disk-7.raw"));
        assert!(matches!(exchanged, Err(NotKnown::Volume { .. })));
    }
}
