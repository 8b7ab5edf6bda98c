//! Downloads of builds of the guest agent, part by part.
//!
//! In: the parts of one build, in order. Out: the build under its digest, once all of its bytes were hashed and synced. A
//! download that was cut off goes on where it ended. What nothing needs is removed where the folder is nearly full, the
//! oldest first. Deliberately absent: where the parts come from, and whether the bytes may run.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::time::SystemTime;

use holdfast_protocol::local::desired::CONTROLLER_BYTES_MAX;

use super::{ArtifactError, Artifacts, FILES_MAX, hash, no_follow};
use crate::atomic_file;
use crate::model::policy::Sha256Hex;

/// How many builds that nothing needs may lie here. The rest of [`FILES_MAX`] is room for those that come.
const UNNEEDED_ABOVE: usize = FILES_MAX - 4;

impl Artifacts {
    fn part(&self, sha256: &Sha256Hex) -> PathBuf {
        self.0.join(format!("{}.part", sha256.as_str()))
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
        let part = self.part(sha256);
        let unread = |source| ArtifactError::Read { path: self.0.clone(), source };
        for entry in std::fs::read_dir(&self.0).map_err(unread)? {
            let path = entry.map_err(unread)?.path();
            if path != part && path.extension().is_some_and(|end| end == "part") {
                atomic_file::remove(&path)?;
            }
        }
        Ok(std::fs::symlink_metadata(&part).map_or(0, |about| about.len()))
    }

    /// Appends bytes. More than a controller may have are refused, and the download begins anew.
    ///
    /// # Errors
    /// [`ArtifactError`].
    pub fn append(&self, sha256: &Sha256Hex, bytes: &[u8]) -> Result<(), ArtifactError> {
        let path = self.part(sha256);
        let failed = |source| ArtifactError::Write { path: path.clone(), source };
        let mut open = OpenOptions::new();
        let mut file =
            open.create(true).append(true).custom_flags(no_follow()).open(&path).map_err(failed)?;
        let here = file.metadata().map_err(failed)?.len();
        let long = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if here.saturating_add(long) > CONTROLLER_BYTES_MAX {
            atomic_file::remove(&path)?;
            return Err(ArtifactError::NotOne { path });
        }
        file.write_all(bytes).map_err(failed)
    }

    /// Checks the whole download, and gives it its name. Of another digest nothing stays.
    ///
    /// # Errors
    /// [`ArtifactError`].
    pub fn complete(&self, sha256: &Sha256Hex) -> Result<u64, ArtifactError> {
        let part = self.part(sha256);
        let unread = |source| ArtifactError::Read { path: part.clone(), source };
        let mut file = OpenOptions::new().read(true).custom_flags(no_follow()).open(&part).map_err(unread)?;
        let (found, bytes) = hash(&mut file, &part)?;
        if found != sha256.as_str() {
            atomic_file::remove(&part)?;
            return Err(ArtifactError::OtherDigest { wanted: sha256.as_str().to_owned(), found });
        }
        file.sync_all().map_err(unread)?;
        let failed = |source| ArtifactError::Write { path: self.0.clone(), source };
        std::fs::rename(&part, self.path(sha256)).map_err(failed)?;
        File::open(&self.0).and_then(|folder| folder.sync_all()).map_err(failed)?;
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
    use super::*;

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
        assert!(!artifacts.part(&old).exists(), "nothing asks for it any more");
        artifacts.append(&new, &PROGRAM[..5]).unwrap();
        assert_eq!(artifacts.begin(&new).unwrap(), 5);
        artifacts.append(&new, b"something else").unwrap();
        assert!(matches!(artifacts.complete(&new), Err(ArtifactError::OtherDigest { .. })));
        assert!(artifacts.stored().is_empty());
        assert_eq!(artifacts.begin(&new).unwrap(), 0, "nothing of it stayed");
        artifacts.append(&new, PROGRAM).unwrap();
        assert_eq!(artifacts.complete(&new).unwrap(), PROGRAM.len() as u64);
        assert_eq!(artifacts.open(&new).unwrap().unwrap().bytes(), PROGRAM.len() as u64);
        assert!(!artifacts.part(&new).exists());
    }

    #[test]
    fn a_download_without_end_is_cut_off() {
        let state = tempfile::tempdir().unwrap();
        let artifacts = Artifacts::of(state.path());
        let sha256 = digest(PROGRAM);
        artifacts.begin(&sha256).unwrap();
        File::create(artifacts.part(&sha256)).unwrap().set_len(CONTROLLER_BYTES_MAX).unwrap();
        assert!(matches!(artifacts.append(&sha256, b"x"), Err(ArtifactError::NotOne { .. })));
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
