//! Downloads of builds of the guest agent, part by part.
//!
//! In: the parts of one build, in order. Out: the build under its digest, once all of its bytes were hashed and synced. A
//! download that was cut off goes on where it ended. What nothing needs is removed where the folder is nearly full, the
//! oldest first. Deliberately absent: where the parts come from, and whether the bytes may run.

use std::collections::BTreeSet;
use std::time::SystemTime;

use holdfast_protocol::local::desired::CONTROLLER_BYTES_MAX;

use super::{ArtifactError, Artifacts, FILES_MAX};
use crate::atomic_file;
use crate::model::policy::Sha256Hex;
use crate::part_file::{PartFile, Removes};

/// How many builds that nothing needs may lie here. The rest of [`FILES_MAX`] is room for those that come.
const UNNEEDED_ABOVE: usize = FILES_MAX - 4;

impl Artifacts {
    fn part(&self, sha256: &Sha256Hex) -> PartFile {
        PartFile::of(&self.0, sha256.as_str(), CONTROLLER_BYTES_MAX)
    }

    /// How many bytes of a build are here. Parts of others are removed: nothing asks for them now.
    ///
    /// # Errors
    /// [`ArtifactError`].
    pub fn begin(&self, sha256: &Sha256Hex) -> Result<u64, ArtifactError> {
        atomic_file::private_folder(&self.0)?;
        let stored = self.stored();
        if !stored.contains_key(sha256) && stored.len() >= FILES_MAX {
            return Err(ArtifactError::Full { path: self.0.clone() });
        }
        Ok(self.part(sha256).begin(Removes::OtherParts, CONTROLLER_BYTES_MAX)?)
    }

    /// Appends bytes. More than a controller may have are refused, and the download begins anew.
    ///
    /// # Errors
    /// [`ArtifactError`].
    pub fn append(&self, sha256: &Sha256Hex, bytes: &[u8]) -> Result<(), ArtifactError> {
        Ok(self.part(sha256).append(bytes)?)
    }

    /// Checks the whole download, and gives it its name. Of another digest nothing stays.
    ///
    /// # Errors
    /// [`ArtifactError`].
    pub fn complete(&self, sha256: &Sha256Hex) -> Result<u64, ArtifactError> {
        let part = self.part(sha256);
        let bytes = part.check()?;
        part.sync()?;
        part.rename(&self.path(sha256))?;
        Ok(bytes)
    }

    /// Removes builds that nothing needs, the oldest first, until the folder has room again. Says which.
    ///
    /// # Errors
    /// [`ArtifactError`].
    pub fn make_room(&self, needed: &BTreeSet<Sha256Hex>) -> Result<Vec<Sha256Hex>, ArtifactError> {
        let stored = self.stored();
        let above = stored.len().saturating_sub(UNNEEDED_ABOVE);
        let age = |sha256: &Sha256Hex| {
            let about = std::fs::symlink_metadata(self.path(sha256)).and_then(|about| about.modified());
            about.unwrap_or(SystemTime::UNIX_EPOCH)
        };
        let mut unneeded: Vec<_> = stored
            .into_keys()
            .filter(|sha256| !needed.contains(sha256))
            .map(|one| (age(&one), one))
            .collect();
        unneeded.sort();
        let removed: Vec<Sha256Hex> = unneeded.into_iter().take(above).map(|(_, sha256)| sha256).collect();
        for sha256 in &removed {
            atomic_file::remove(&self.path(sha256))?;
        }
        Ok(removed)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;
    use crate::part_file::PartFileError;

    const PROGRAM: &[u8] = b"\x7fELF a controller";

    fn digest(bytes: &[u8]) -> Sha256Hex {
        use sha2::{Digest as _, Sha256};
        super::super::hex(&Sha256::digest(bytes)).try_into().unwrap()
    }

    #[test]
    fn a_download_goes_on_and_only_the_right_bytes_get_the_name() {
        let state = tempfile::tempdir().unwrap();
        let artifacts = Artifacts::of(state.path());
        let (old, new) = (digest(b"old"), digest(PROGRAM));
        assert_eq!(artifacts.begin(&old).unwrap(), 0);
        artifacts.append(&old, b"ol").unwrap();
        assert_eq!(artifacts.begin(&new).unwrap(), 0);
        assert!(!artifacts.part(&old).path().exists(), "nothing asks for it any more");
        artifacts.append(&new, &PROGRAM[..5]).unwrap();
        assert_eq!(artifacts.begin(&new).unwrap(), 5);
        artifacts.append(&new, b"something else").unwrap();
        assert!(matches!(artifacts.complete(&new), Err(ArtifactError::Part(PartFileError::Digest { .. }))));
        assert!(artifacts.stored().is_empty());
        assert_eq!(artifacts.begin(&new).unwrap(), 0, "nothing of it stayed");
        artifacts.append(&new, PROGRAM).unwrap();
        assert_eq!(artifacts.complete(&new).unwrap(), PROGRAM.len() as u64);
        assert_eq!(artifacts.open(&new).unwrap().unwrap().bytes(), PROGRAM.len() as u64);
        assert!(!artifacts.part(&new).path().exists());
    }

    #[test]
    fn a_download_without_end_is_cut_off() {
        let state = tempfile::tempdir().unwrap();
        let artifacts = Artifacts::of(state.path());
        let sha256 = digest(PROGRAM);
        artifacts.begin(&sha256).unwrap();
        File::create(artifacts.part(&sha256).path()).unwrap().set_len(CONTROLLER_BYTES_MAX).unwrap();
        assert!(matches!(
            artifacts.append(&sha256, b"x"),
            Err(ArtifactError::Part(PartFileError::TooLong { .. }))
        ));
        assert_eq!(artifacts.begin(&sha256).unwrap(), 0);
    }

    #[test]
    fn the_oldest_that_nothing_needs_makes_room() {
        let state = tempfile::tempdir().unwrap();
        let artifacts = Artifacts::of(state.path());
        let mut all = Vec::new();
        for n in 0..FILES_MAX {
            let from = state.path().join("guestd");
            std::fs::write(&from, [PROGRAM, &[u8::try_from(n).unwrap()]].concat()).unwrap();
            let (sha256, _) = artifacts.take_in(&from).unwrap();
            let second = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000 + n as u64);
            File::options().write(true).open(artifacts.path(&sha256)).unwrap().set_modified(second).unwrap();
            all.push(sha256);
        }
        assert!(matches!(artifacts.begin(&digest(b"one more")), Err(ArtifactError::Full { .. })));
        // The oldest is needed.
        let needed = BTreeSet::from([all[0].clone()]);
        assert_eq!(artifacts.make_room(&needed).unwrap(), all[1..5]);
        assert!(artifacts.make_room(&needed).unwrap().is_empty(), "there is room");
        assert_eq!(artifacts.begin(&digest(b"one more")).unwrap(), 0);
    }
}
