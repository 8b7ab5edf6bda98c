//! Canaries: random files, written before stacks stop.
//!
//! A restore test that finds them unchanged has the data of the right moment.

use std::path::PathBuf;

use holdfast_protocol::id::MountPath;
use holdfast_protocol::job::act::Sha256Text;
use holdfast_protocol::json::chain;
use holdfast_protocol::local::window::{CANARIES_MAX, Canary};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::file::{self, Eyes};
use crate::paths::Paths;

const CONTENT_BYTES: usize = 64;

/// How much of a canary is read; the agent writes no more than this.
const CANARY_BYTES_MAX: usize = 4 * 1024;

/// Seventeen hashes with their mounts.
const LIST_BYTES_MAX: usize = 16 * 1024;

/// The version of the list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Schema {
    #[default]
    #[serde(rename = "holdfast.guestd-canaries/v1")]
    V1,
}

/// What was written last, for people and for a restore test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CanaryList {
    schema: Schema,
    pub at: Timestamp,
    pub canaries: Vec<Canary>,
}

fn list_path(paths: &Paths) -> PathBuf {
    paths.state_dir().join("canaries.json")
}

fn path(paths: &Paths, mount: Option<&MountPath>) -> PathBuf {
    match mount {
        None => paths.state_dir().join("canary"),
        Some(mount) => paths.inside(mount.as_str().as_ref()).join(".holdfast-canary"),
    }
}

/// Writes a canary on the root disk and on each mount, durably. Returns what was written, and the errors as text. A
/// missing canary makes the proof weaker, but it does not stop the backup.
pub fn write(paths: &Paths, mounts: &[MountPath]) -> (Vec<Canary>, Vec<String>) {
    let (mut canaries, mut notes) = (Vec::new(), Vec::new());
    let all = std::iter::once(None).chain(mounts.iter().map(Some)).take(CANARIES_MAX);
    for mount in all {
        match write_one(paths, mount) {
            Ok(canary) => canaries.push(canary),
            Err(note) => notes.push(note),
        }
    }
    let written = CanaryList { schema: Schema::V1, at: crate::clock::now(), canaries };
    let kept = serde_json::to_vec_pretty(&written).map_err(|error| chain(&error)).and_then(|bytes| {
        file::replace(&list_path(paths), &bytes, Eyes::Owner).map_err(|error| chain(&error))
    });
    notes.extend(kept.err());
    (written.canaries, notes)
}

fn write_one(paths: &Paths, mount: Option<&MountPath>) -> Result<Canary, String> {
    let mut bytes = [0; CONTENT_BYTES / 2];
    getrandom::fill(&mut bytes).map_err(|error| format!("the kernel gives no random bytes: {error}"))?;
    let content = hex::encode(bytes);
    file::replace(&path(paths, mount), content.as_bytes(), Eyes::Owner).map_err(|error| chain(&error))?;
    let sha256 = hash(content.as_bytes()).ok_or("the canary cannot be hashed")?;
    Ok(Canary { mount: mount.cloned(), sha256 })
}

fn hash(bytes: &[u8]) -> Option<Sha256Text> {
    Sha256Text::try_from(hex::encode(Sha256::digest(bytes))).ok()
}

/// What was last written.
pub fn last(paths: &Paths) -> Option<CanaryList> {
    let bytes = file::read(&list_path(paths), LIST_BYTES_MAX, Eyes::Owner).ok()??;
    serde_json::from_slice(&bytes).ok()
}

/// The canaries as they are now, on the root disk and where one was ever written. One that is not there is left out.
pub fn find(paths: &Paths) -> Vec<Canary> {
    let listed = last(paths).map(|written| written.canaries).unwrap_or_default();
    let mounts = listed.into_iter().filter_map(|canary| canary.mount).map(Some);
    std::iter::once(None)
        .chain(mounts)
        .take(CANARIES_MAX)
        .filter_map(|mount| {
            let bytes = file::read(&path(paths, mount.as_ref()), CANARY_BYTES_MAX, Eyes::Owner).ok()??;
            Some(Canary { sha256: hash(&bytes)?, mount })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_found_is_what_was_written_and_a_change_is_seen() {
        let root = tempfile::tempdir().unwrap();
        let paths = Paths::new(root.path());
        std::fs::create_dir_all(paths.state_dir()).unwrap();
        std::fs::create_dir_all(root.path().join("srv/db")).unwrap();
        assert!(find(&paths).is_empty() && last(&paths).is_none());
        let mounts: Vec<MountPath> = ["/srv/db", "/srv/gone"].map(|path| path.parse().unwrap()).to_vec();
        let (written, notes) = write(&paths, &mounts);
        assert_eq!((written.len(), notes.len()), (2, 1), "{notes:?}");
        assert_eq!(find(&paths), written);
        let (again, _) = write(&paths, &mounts);
        assert!(
            again.iter().zip(&written).all(|(new, old)| new.sha256 != old.sha256),
            "never twice the same"
        );
        std::fs::write(root.path().join("srv/db/.holdfast-canary"), "other").unwrap();
        assert_eq!(find(&paths)[0], again[0]);
        assert_ne!(find(&paths)[1], again[1]);
        std::fs::remove_file(root.path().join("srv/db/.holdfast-canary")).unwrap();
        assert_eq!(find(&paths).len(), 1);
    }
}
