//! The warrant: what an operator signed, as the engine carries it.
//!
//! What comes in: a job whose signatures were checked, [`holdfast_trust::Accepted`], which nothing but that check can
//! make; tests make theirs by a feature that is never shipped (`docs/adr/0010`). What goes out: [`Warrant`], which names one act on one target as the operator saw it. Deliberately absent: `Deserialize`. The
//! journal alone may read back what was written there, through [`journal`], and a test holds its callers to a list.

use std::collections::BTreeSet;

use holdfast_protocol::id::{CustomerId, GoldenVersion, GuestName, GuestUid, JobId, Vmid};
use holdfast_protocol::job::act::BackupLoss;
use holdfast_protocol::job::{Act, Fingerprint, Target, Verb};
use holdfast_trust::Accepted;
use serde::{Deserialize, Serialize};

use super::policy::Sha256Hex;
use super::records::VolumeId;

/// A target as the operator saw it. If any of it changed since, the signature is void.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignedState {
    /// Our identity for it.
    pub uid: GuestUid,
    pub vmid: Vmid,
    pub name: GuestName,
    /// Its volumes, all of them.
    pub volumes: BTreeSet<VolumeId>,
}

impl SignedState {
    fn of(uid: GuestUid, vmid: Vmid, fingerprint: &Fingerprint) -> Self {
        let volumes = fingerprint.volumes.iter().map(VolumeId::new).collect();
        Self { uid, vmid, name: fingerprint.name.clone(), volumes }
    }
}

/// What was signed for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Allows {
    /// Deleting a backup of the target.
    DeleteBackup {
        archive: VolumeId,
        /// What may be lost with it.
        loses: BTreeSet<BackupLoss>,
    },
    /// Destroying the target.
    DestroyGuest,
    /// Handing one of its volumes to another guest of the same customer.
    ReassignVolume {
        volume: VolumeId,
        /// To which target, as the operator saw it.
        to: Box<SignedState>,
    },
    /// Restoring a backup of the target next to it.
    RestoreCopy { archive: VolumeId },
    /// Putting a copy of the target in its place.
    SwapGuest {
        /// The copy, as the operator saw it; its uid is the target's.
        copy: Box<SignedState>,
        /// Volumes of the target that stay with the replaced guest.
        leaves: BTreeSet<VolumeId>,
    },
    /// Destroying a copy of the target.
    DiscardCopy {
        /// The copy, as the operator saw it; its uid is the target's.
        copy: Box<SignedState>,
    },
    /// Putting the target on a newer image; its root disk stays behind.
    RebaseGuest {
        version: GoldenVersion,
        /// What the image's bytes hash to.
        sha256: Sha256Hex,
    },
    /// Taking the target over, which our records do not know.
    Adopt {
        /// Who it belongs to.
        customer: CustomerId,
        /// The golden image that it counts as made from.
        golden: GoldenVersion,
    },
}

impl Allows {
    const fn words(&self) -> &'static str {
        match self {
            Self::DeleteBackup { .. } => "deleting a backup",
            Self::DestroyGuest => "destroying a guest",
            Self::ReassignVolume { .. } => "handing a volume over",
            Self::RestoreCopy { .. } => "restoring a backup beside a guest",
            Self::SwapGuest { .. } => "putting a copy in the place of a guest",
            Self::DiscardCopy { .. } => "destroying a copy of a guest",
            Self::RebaseGuest { .. } => "putting a guest on a newer image",
            Self::Adopt { .. } => "taking a guest over",
        }
    }
}

/// A checked signature for one act on one target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warrant {
    job: JobId,
    allows: Allows,
    target: SignedState,
}

/// A warrant for another act.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("job {job} was signed for {allows}, not for {wanted}")]
pub struct WrongWarrant {
    job: JobId,
    allows: &'static str,
    wanted: &'static str,
}

/// A job that gives no warrant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("job {job} ({verb}) gives no warrant for a guest", verb = .verb.as_str())]
pub struct NoWarrant {
    job: JobId,
    verb: Verb,
}

impl Warrant {
    /// What a signed job allows, on the target as its signers saw it.
    ///
    /// # Errors
    /// When its verb needs no warrant, or it names no guest with a number.
    pub fn of(job: &Accepted) -> Result<Self, NoWarrant> {
        let payload = job.payload();
        let none = || NoWarrant { job: payload.job_id, verb: payload.act.verb() };
        let Target::Guest { uid, vmid: Some(vmid), fingerprint } = &payload.target else {
            return Err(none());
        };
        let allows = match &payload.act {
            Act::DestroyGuest(_) => Allows::DestroyGuest,
            Act::DeleteBackup(args) => Allows::DeleteBackup {
                archive: VolumeId::new(args.archive.as_str()),
                loses: args.loses.clone(),
            },
            Act::Restore(args) => Allows::RestoreCopy { archive: VolumeId::new(args.archive.as_str()) },
            Act::ReassignVolume(args) => Allows::ReassignVolume {
                volume: VolumeId::new(args.volume.as_str()),
                to: Box::new(SignedState::of(args.to.uid, args.to.vmid, &args.to.fingerprint)),
            },
            Act::AdoptGuest(args) => {
                Allows::Adopt { customer: args.customer.clone(), golden: args.golden.clone() }
            }
            Act::SwapGuest(args) => Allows::SwapGuest {
                copy: Box::new(SignedState::of(*uid, args.copy.vmid, &args.copy.fingerprint)),
                leaves: args.leaves.iter().map(|volume| VolumeId::new(volume.as_str())).collect(),
            },
            Act::DiscardCopy(args) => Allows::DiscardCopy {
                copy: Box::new(SignedState::of(*uid, args.copy.vmid, &args.copy.fingerprint)),
            },
            Act::RebaseGuest(args) => Allows::RebaseGuest {
                version: args.version.clone(),
                sha256: Sha256Hex::try_from(args.sha256.as_str().to_owned()).map_err(|_| none())?,
            },
            _ => return Err(none()),
        };
        Ok(Self { job: payload.job_id, allows, target: SignedState::of(*uid, *vmid, fingerprint) })
    }

    /// A warrant that no operator signed.
    #[cfg(any(test, feature = "testing"))]
    #[must_use]
    pub fn for_tests(job: JobId, allows: Allows, target: SignedState) -> Self {
        Self { job, allows, target }
    }

    /// The job that was signed.
    #[must_use]
    pub const fn job(&self) -> JobId {
        self.job
    }

    #[must_use]
    pub const fn target(&self) -> &SignedState {
        &self.target
    }

    /// Holds it to deleting a backup, and says which, and what may be lost with it.
    ///
    /// # Errors
    /// When it was signed for something else.
    pub const fn deletes(&self) -> Result<(&VolumeId, &BTreeSet<BackupLoss>), WrongWarrant> {
        match &self.allows {
            Allows::DeleteBackup { archive, loses } => Ok((archive, loses)),
            Allows::DestroyGuest
            | Allows::ReassignVolume { .. }
            | Allows::RestoreCopy { .. }
            | Allows::SwapGuest { .. }
            | Allows::RebaseGuest { .. }
            | Allows::DiscardCopy { .. }
            | Allows::Adopt { .. } => Err(self.wrong("deleting a backup")),
        }
    }

    /// Holds it to destroying a guest.
    ///
    /// # Errors
    /// When it was signed for something else.
    pub const fn destroys(&self) -> Result<(), WrongWarrant> {
        match &self.allows {
            Allows::DestroyGuest => Ok(()),
            Allows::DeleteBackup { .. }
            | Allows::ReassignVolume { .. }
            | Allows::RestoreCopy { .. }
            | Allows::SwapGuest { .. }
            | Allows::RebaseGuest { .. }
            | Allows::DiscardCopy { .. }
            | Allows::Adopt { .. } => Err(self.wrong("destroying a guest")),
        }
    }

    /// Holds it to handing a volume over, and says which volume and to which guest.
    ///
    /// # Errors
    /// When it was signed for something else.
    pub const fn hands_over(&self) -> Result<(&VolumeId, &SignedState), WrongWarrant> {
        match &self.allows {
            Allows::ReassignVolume { volume, to } => Ok((volume, to)),
            Allows::DeleteBackup { .. }
            | Allows::DestroyGuest
            | Allows::RestoreCopy { .. }
            | Allows::SwapGuest { .. }
            | Allows::RebaseGuest { .. }
            | Allows::DiscardCopy { .. }
            | Allows::Adopt { .. } => Err(self.wrong("handing a volume over")),
        }
    }

    /// Holds it to restoring a backup next to its guest, and says which.
    ///
    /// # Errors
    /// When it was signed for something else.
    pub const fn restores_copy(&self) -> Result<&VolumeId, WrongWarrant> {
        match &self.allows {
            Allows::RestoreCopy { archive } => Ok(archive),
            Allows::DeleteBackup { .. }
            | Allows::DestroyGuest
            | Allows::ReassignVolume { .. }
            | Allows::SwapGuest { .. }
            | Allows::RebaseGuest { .. }
            | Allows::DiscardCopy { .. }
            | Allows::Adopt { .. } => Err(self.wrong("restoring a backup beside a guest")),
        }
    }

    /// Holds it to taking a guest over, and says as whose, and from which golden.
    ///
    /// # Errors
    /// When it was signed for something else.
    pub const fn adopts(&self) -> Result<(&CustomerId, &GoldenVersion), WrongWarrant> {
        match &self.allows {
            Allows::Adopt { customer, golden } => Ok((customer, golden)),
            Allows::DeleteBackup { .. }
            | Allows::DestroyGuest
            | Allows::ReassignVolume { .. }
            | Allows::RestoreCopy { .. }
            | Allows::RebaseGuest { .. }
            | Allows::DiscardCopy { .. }
            | Allows::SwapGuest { .. } => Err(self.wrong("taking a guest over")),
        }
    }

    /// Holds it to putting a copy in its guest's place, and says which, and what stays behind.
    ///
    /// # Errors
    /// When it was signed for something else.
    pub const fn swaps(&self) -> Result<(&SignedState, &BTreeSet<VolumeId>), WrongWarrant> {
        match &self.allows {
            Allows::SwapGuest { copy, leaves } => Ok((copy, leaves)),
            Allows::DeleteBackup { .. }
            | Allows::DestroyGuest
            | Allows::ReassignVolume { .. }
            | Allows::RestoreCopy { .. }
            | Allows::RebaseGuest { .. }
            | Allows::DiscardCopy { .. }
            | Allows::Adopt { .. } => Err(self.wrong("putting a copy in the place of a guest")),
        }
    }

    /// Holds it to destroying a copy, and says which.
    ///
    /// # Errors
    /// When it was signed for something else.
    pub const fn discards(&self) -> Result<&SignedState, WrongWarrant> {
        match &self.allows {
            Allows::DiscardCopy { copy } => Ok(copy),
            Allows::DeleteBackup { .. }
            | Allows::DestroyGuest
            | Allows::ReassignVolume { .. }
            | Allows::RestoreCopy { .. }
            | Allows::SwapGuest { .. }
            | Allows::RebaseGuest { .. }
            | Allows::Adopt { .. } => Err(self.wrong("destroying a copy of a guest")),
        }
    }

    /// Holds it to putting a guest on a newer image, and says which.
    ///
    /// # Errors
    /// When it was signed for something else.
    pub const fn rebases(&self) -> Result<(&GoldenVersion, &Sha256Hex), WrongWarrant> {
        match &self.allows {
            Allows::RebaseGuest { version, sha256 } => Ok((version, sha256)),
            Allows::DeleteBackup { .. }
            | Allows::DestroyGuest
            | Allows::ReassignVolume { .. }
            | Allows::RestoreCopy { .. }
            | Allows::SwapGuest { .. }
            | Allows::DiscardCopy { .. }
            | Allows::Adopt { .. } => Err(self.wrong("putting a guest on a newer image")),
        }
    }

    const fn wrong(&self, wanted: &'static str) -> WrongWarrant {
        WrongWarrant { job: self.job, allows: self.allows.words(), wanted }
    }
}

/// How the journal writes a warrant down and reads it back. No other code may call this.
pub(crate) mod journal {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{Allows, JobId, SignedState, Warrant};

    #[derive(Serialize, Deserialize)]
    #[serde(remote = "Warrant", deny_unknown_fields)]
    struct Written {
        job: JobId,
        allows: Allows,
        target: SignedState,
    }

    pub(crate) fn serialize<S: Serializer>(warrant: &Warrant, to: S) -> Result<S::Ok, S::Error> {
        Written::serialize(warrant, to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Warrant, D::Error> {
        Written::deserialize(from)
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                sources(&path, found);
            } else if path.extension().is_some_and(|end| end == "rs") {
                found.push(path);
            }
        }
    }

    /// Reading one back from text is making one, so only the specs of operations may, and only for the journal.
    #[test]
    fn only_the_journal_reads_a_warrant_back() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut all = Vec::new();
        sources(&root, &mut all);
        let lawful = [
            "model/warrant.rs",
            "operation/adopt.rs",
            "operation/destroy.rs",
            "operation/discard_copy.rs",
            "operation/reassign_volume.rs",
            "operation/rebase_guest.rs",
            "operation/prune.rs",
            "operation/restore_copy.rs",
            "operation/swap_guest.rs",
        ];
        for path in all {
            let text = std::fs::read_to_string(&path).unwrap();
            let name = path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
            let reads = text.contains("warrant::journal") || text.contains("Written::deserialize");
            assert_eq!(reads, lawful.contains(&name.as_str()), "{name}");
            let makes = text.contains("Warrant::for_tests") && !text.contains("#[cfg(test)]");
            assert!(!makes || name.contains("tests"), "{name} makes a warrant");
        }
    }
}
