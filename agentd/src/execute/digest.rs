//! SHA-256 of archive files, each computed once per state of the file.

use std::collections::HashMap;
use std::fs::Metadata;
use std::io::Read;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use sha2::{Digest, Sha256};

/// Identifies one state of a file: which file it is, its size, and when its bytes and its entry were last changed. The
/// last time is set by the kernel and cannot be set by hand.
#[derive(Clone, PartialEq, Eq)]
struct State {
    file: (u64, u64),
    bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl State {
    fn of(meta: &Metadata) -> Self {
        Self {
            file: (meta.dev(), meta.ino()),
            bytes: meta.len(),
            modified: (meta.mtime(), meta.mtime_nsec()),
            changed: (meta.ctime(), meta.ctime_nsec()),
        }
    }
}

/// Hashes that were computed in this run. A replaced file is another one, or has another time or size.
#[derive(Default)]
pub struct DigestCache(Mutex<HashMap<PathBuf, (State, String)>>);

impl DigestCache {
    /// The file's SHA-256 in hex. Blocks; a gigabyte takes some seconds.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn sha256(&self, path: &Path) -> Result<String, std::io::Error> {
        let mut file = std::fs::File::open(path)?;
        let state = State::of(&file.metadata()?);
        if let Some(known) = self.known(path, &state) {
            return Ok(known);
        }
        let mut hash = Sha256::new();
        let mut buffer = vec![0; 256 * 1024];
        loop {
            let count = file.read(&mut buffer)?;
            match buffer.get(..count) {
                None | Some([]) => break,
                Some(bytes) => hash.update(bytes),
            }
        }
        let digest: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        if let Ok(mut known) = self.0.lock() {
            known.insert(path.to_owned(), (state, digest.clone()));
        }
        Ok(digest)
    }

    /// The file's SHA-256 when it was read before and has not changed. Reads nothing of it.
    #[must_use]
    pub fn remembered(&self, path: &Path) -> Option<String> {
        self.known(path, &State::of(&std::fs::metadata(path).ok()?))
    }

    fn known(&self, path: &Path, state: &State) -> Option<String> {
        let known = self.0.lock().ok()?;
        known.get(path).filter(|(seen, _)| seen == state).map(|(_, digest)| digest.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exchanged_file_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("golden");
        let cache = DigestCache::default();
        std::fs::write(&path, b"one").unwrap();
        let one = cache.sha256(&path).unwrap();
        assert_eq!(one, "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed");
        assert_eq!(cache.sha256(&path).unwrap(), one);
        assert_eq!(cache.remembered(&path), Some(one.clone()));
        // Exchanged for another of the same size and time.
        let (other, time) =
            (folder.path().join("other"), std::fs::metadata(&path).unwrap().modified().unwrap());
        std::fs::write(&other, b"two").unwrap();
        std::fs::File::options().write(true).open(&other).unwrap().set_modified(time).unwrap();
        std::fs::rename(&other, &path).unwrap();
        assert_eq!(cache.remembered(&path), None);
        assert_ne!(cache.sha256(&path).unwrap(), one);
        std::fs::write(&path, b"three").unwrap();
        assert_ne!(cache.sha256(&path).unwrap(), one);
        assert!(cache.sha256(&folder.path().join("none")).is_err());
    }
}
