//! SHA-256 of archive files, each computed once per size and time of change.

use std::collections::HashMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::SystemTime;

use sha2::{Digest, Sha256};

/// What names one state of a file.
#[derive(Clone, PartialEq, Eq)]
struct State {
    bytes: u64,
    changed: SystemTime,
}

/// Hashes that were computed in this run. A file that was exchanged has another time or size.
#[derive(Default)]
pub struct DigestCache(Mutex<HashMap<PathBuf, (State, String)>>);

impl DigestCache {
    /// The file's SHA-256 in hex. Blocks; a gigabyte takes some seconds.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn sha256(&self, path: &Path) -> Result<String, std::io::Error> {
        let mut file = std::fs::File::open(path)?;
        let meta = file.metadata()?;
        let state = State { bytes: meta.len(), changed: meta.modified()? };
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
        std::fs::write(&path, b"three").unwrap();
        assert_ne!(cache.sha256(&path).unwrap(), one);
        assert!(cache.sha256(&folder.path().join("none")).is_err());
    }
}
