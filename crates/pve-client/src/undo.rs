//! The witness without which no guest can be destroyed.
//!
//! Input: what the journal of *this* operation says it made, and the configuration as it is now. Output: an
//! [`UndoProof`], or the reason why the guest is not ours to destroy. The engine makes the [`Made`] from its journal;
//! nothing else may. Deliberately absent: a way to make the witness without looking at the guest.

use std::collections::BTreeSet;

use holdfast_protocol::id::Vmid;

use super::config::GuestConfig;
use super::upid::Upid;
use super::volume::{Backing, VolumeId};

/// How the journal knows that a guest is this operation's making.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// The identity mark was set: these tags, and this first line of the description.
    Mark {
        /// Tags that must all be there.
        tags: BTreeSet<String>,
        /// The first line of the description.
        first_line: String,
    },
    /// The mark was not set yet, but this is the restore that made it, and it is in the journal.
    Restore(Upid),
    /// As above, for a copy: its restore call itself carried the line that names this operation.
    RestoredAs {
        restore: Upid,
        /// The first line of the description.
        first_line: String,
    },
}

/// The objects that this operation made, by the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// Under which number.
    pub vmid: Vmid,
    /// How it is known.
    pub evidence: Evidence,
    /// With which volumes, all of them.
    pub volumes: BTreeSet<VolumeId>,
}

/// Why a guest is not ours to destroy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotOurs {
    /// Tags or description are not as we set them.
    #[error("guest {vmid} does not carry the mark that this operation set: somebody else owns it now")]
    Mark { vmid: Vmid },
    /// The restore in the journal made another guest, or it was no restore.
    #[error("task {upid} did not make guest {vmid}")]
    Task { vmid: Vmid, upid: Upid },
    /// It carries a mark although ours was never set.
    #[error("guest {vmid} carries the tag {tag} that this operation never set: somebody else owns it now")]
    Foreign { vmid: Vmid, tag: String },
    /// It has a volume that the journal does not know.
    #[error(
        "guest {vmid} has a volume {volume} that this operation did not make: it would be destroyed with it"
    )]
    Volume { vmid: Vmid, volume: VolumeId },
    /// A host path is mounted into it. We never do that.
    #[error("guest {vmid} has a host path mounted: somebody changed it by hand")]
    HostPath { vmid: Vmid },
}

/// Proof that this operation made a guest, and that the guest holds nothing else.
#[derive(Debug)]
pub struct UndoProof {
    vmid: Vmid,
    volumes: BTreeSet<VolumeId>,
}

impl UndoProof {
    /// Compares the journal with the guest as it is now. `seen` must have been read after the guest was stopped.
    ///
    /// # Errors
    /// When anything about the guest is not this operation's making.
    pub fn establish(made: &Made, seen: &GuestConfig) -> Result<Self, NotOurs> {
        let vmid = made.vmid;
        let from = |upid: &Upid| {
            let ours = upid.kind() == "vzrestore" && upid.vmid() == Some(vmid);
            if ours { Ok(()) } else { Err(NotOurs::Task { vmid, upid: upid.clone() }) }
        };
        match &made.evidence {
            Evidence::Mark { tags, first_line } => {
                let described = seen.description.lines().next() == Some(first_line.as_str());
                if tags.is_empty() || !tags.is_subset(&seen.tags) || !described {
                    return Err(NotOurs::Mark { vmid });
                }
            }
            Evidence::Restore(upid) => {
                from(upid)?;
                if let Some(tag) = seen.tags.iter().find(|tag| tag.starts_with("hf-")) {
                    return Err(NotOurs::Foreign { vmid, tag: tag.clone() });
                }
            }
            // Its tags are the archive's until its own are set, so they prove nothing.
            Evidence::RestoredAs { restore, first_line } => {
                from(restore)?;
                if seen.description.lines().next() != Some(first_line.as_str()) {
                    return Err(NotOurs::Mark { vmid });
                }
            }
        }
        if seen.mounts.values().chain(&seen.rootfs).any(|disk| matches!(disk.backing, Backing::Host(_))) {
            return Err(NotOurs::HostPath { vmid });
        }
        match seen.volumes().difference(&made.volumes).next() {
            Some(volume) => Err(NotOurs::Volume { vmid, volume: volume.clone() }),
            None => Ok(Self { vmid, volumes: made.volumes.clone() }),
        }
    }

    #[must_use]
    pub fn vmid(&self) -> Vmid {
        self.vmid
    }

    /// The volumes that must be gone afterwards.
    #[must_use]
    pub fn volumes(&self) -> &BTreeSet<VolumeId> {
        &self.volumes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn seen(tags: &str, description: &str, disks: &[(&str, &str)]) -> GuestConfig {
        let mut value = json!({"digest": "0efe9d8b6dd8ab19dfd1c70300537ee86bad8bf0", "tags": tags, "description": description});
        for (key, text) in disks {
            value[*key] = json!(text);
        }
        GuestConfig::read(&value).unwrap()
    }

    fn made(evidence: Evidence) -> Made {
        let volumes = ["a:300/vm-300-disk-0.raw", "a:300/vm-300-disk-1.raw"];
        Made {
            vmid: Vmid::try_from(300).unwrap(),
            evidence,
            volumes: volumes.iter().map(|text| text.parse().unwrap()).collect(),
        }
    }

    fn marked() -> Made {
        made(Evidence::Mark {
            tags: ["holdfast".to_owned(), "hf-1a2b3c4d".to_owned()].into(),
            first_line: "holdfast 018f".to_owned(),
        })
    }

    const ROOT: (&str, &str) = ("rootfs", "a:300/vm-300-disk-0.raw,size=1G");

    #[test]
    fn our_own_making_with_fewer_or_equal_volumes() {
        let all = [ROOT, ("mp0", "a:300/vm-300-disk-1.raw,mp=/x")];
        assert!(
            UndoProof::establish(
                &marked(),
                &seen("holdfast;hf-1a2b3c4d;extra", "holdfast 018f\nmore\n", &all)
            )
            .is_ok()
        );
        assert!(
            UndoProof::establish(&marked(), &seen("holdfast;hf-1a2b3c4d", "holdfast 018f\n", &[ROOT]))
                .is_ok()
        );
    }

    #[test]
    fn a_vmid_alone_proves_nothing() {
        for (tags, text) in [("", ""), ("holdfast", "holdfast 018f\n"), ("holdfast;hf-1a2b3c4d", "other\n")] {
            let refused = UndoProof::establish(&marked(), &seen(tags, text, &[ROOT]));
            assert!(matches!(refused, Err(NotOurs::Mark { .. })), "{tags} {text}");
        }
    }

    #[test]
    fn a_volume_that_was_attached_by_hand_saves_the_guest() {
        for extra in [("mp1", "b:9/vm-9-disk-0.raw,mp=/y"), ("unused0", "a:300/vm-300-disk-5.raw")] {
            let refused = UndoProof::establish(
                &marked(),
                &seen("holdfast;hf-1a2b3c4d", "holdfast 018f\n", &[ROOT, extra]),
            );
            assert!(matches!(refused, Err(NotOurs::Volume { .. })), "{extra:?}");
        }
        let bind = [ROOT, ("mp1", "/srv,mp=/y")];
        let refused =
            UndoProof::establish(&marked(), &seen("holdfast;hf-1a2b3c4d", "holdfast 018f\n", &bind));
        assert!(matches!(refused, Err(NotOurs::HostPath { .. })));
    }

    #[test]
    fn before_the_mark_the_restore_itself_is_the_evidence() {
        let upid = |kind: &str, vmid: u32| {
            format!("UPID:pve1:00000CEA:000654F7:6B0117B2:{kind}:{vmid}:hf@pve!allocate:")
                .parse::<Upid>()
                .unwrap()
        };
        let ours = made(Evidence::Restore(upid("vzrestore", 300)));
        assert!(UndoProof::establish(&ours, &seen("", "", &[ROOT])).is_ok());
        assert!(matches!(
            UndoProof::establish(&ours, &seen("hf-ffff0000", "", &[ROOT])),
            Err(NotOurs::Foreign { .. })
        ));
        let line = "holdfast beside 018f by 0190".to_owned();
        let copy = |restore| made(Evidence::RestoredAs { restore, first_line: line.clone() });
        let (ours, archives) = (copy(upid("vzrestore", 300)), "holdfast;hf-1a2b3c4d");
        assert!(UndoProof::establish(&ours, &seen(archives, &format!("{line}\nmore"), &[ROOT])).is_ok());
        for text in ["", "holdfast guest 018f", "holdfast beside 018f by 0191"] {
            let refused = UndoProof::establish(&ours, &seen(archives, text, &[ROOT]));
            assert!(matches!(refused, Err(NotOurs::Mark { .. })), "{text}");
        }
        let refused = UndoProof::establish(&copy(upid("vzrestore", 301)), &seen(archives, &line, &[ROOT]));
        assert!(matches!(refused, Err(NotOurs::Task { .. })));
        for other in [upid("vzrestore", 301), upid("vzstart", 300)] {
            let refused = UndoProof::establish(&made(Evidence::Restore(other)), &seen("", "", &[ROOT]));
            assert!(matches!(refused, Err(NotOurs::Task { .. })));
        }
    }
}
