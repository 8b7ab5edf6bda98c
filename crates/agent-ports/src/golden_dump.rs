//! The folder of built images.
//!
//! Input: the folder's files, which only root writes. Output: manifests in their closed form; a file of another form is
//! reported and left out. Deliberately absent: trust. A manifest only says where an archive is and how it is named. The
//! hash comes from hashing the bytes, and an operator's signature decides whether they may be used.

use std::io::Read;
use std::path::{Path, PathBuf};

use holdfast_protocol::golden::{GoldenManifest, MANIFEST_BYTES_MAX};
use holdfast_protocol::json::{self, JsonError};

/// A host keeps a dozen; more than this is a mistake.
const MANIFESTS_MAX: usize = 256;

/// One golden image as it is stored there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredImage {
    /// The manifest that belongs to it.
    pub manifest: GoldenManifest,
    /// The manifest's file.
    pub file: PathBuf,
    pub archive: PathBuf,
}

/// Why a folder or a manifest is not read.
#[derive(Debug, thiserror::Error)]
pub enum GoldenDumpError {
    /// The folder or a file in it.
    #[error("{} cannot be read: the agent's user must be able to (it is world-readable as Proxmox makes it)", path.display())]
    Unread {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    /// No manifest of this version's form.
    #[error("{} is no manifest of a golden: it is left out; take it away or build the golden anew", path.display())]
    Form {
        path: PathBuf,
        /// Where and why.
        #[source]
        source: JsonError,
    },
    /// Its archive would be somewhere else.
    #[error("{} names an archive outside its folder: it is left out", path.display())]
    LeadsAway { path: PathBuf },
}

/// Reads all manifests of a folder, the oldest version first, and the faults of the others.
///
/// # Errors
/// [`GoldenDumpError`] when the folder itself cannot be read.
pub fn read(folder: &Path) -> Result<(Vec<StoredImage>, Vec<GoldenDumpError>), GoldenDumpError> {
    let unread = |source| GoldenDumpError::Unread { path: folder.to_owned(), source };
    let (mut found, mut wrong) = (Vec::new(), Vec::new());
    for entry in std::fs::read_dir(folder).map_err(unread)? {
        let name = entry.map_err(unread)?.file_name();
        let name = name.to_string_lossy();
        let is_manifest =
            name.starts_with("golden-") && name.ends_with(".json") && !name.ends_with(".spdx.json");
        if !is_manifest || found.len() >= MANIFESTS_MAX {
            continue;
        }
        match one(&folder.join(name.as_ref())) {
            Ok(golden) => found.push(golden),
            Err(error) => wrong.push(error),
        }
    }
    found.sort_by_key(|golden| golden.manifest.version.age_key());
    Ok((found, wrong))
}

fn one(path: &Path) -> Result<StoredImage, GoldenDumpError> {
    let unread = |source| GoldenDumpError::Unread { path: path.to_owned(), source };
    let mut bytes = Vec::new();
    let bound = MANIFEST_BYTES_MAX as u64 + 1;
    std::fs::File::open(path).map_err(unread)?.take(bound).read_to_end(&mut bytes).map_err(unread)?;
    let manifest: GoldenManifest = json::parse("the manifest", &bytes, MANIFEST_BYTES_MAX)
        .map_err(|source| GoldenDumpError::Form { path: path.to_owned(), source })?;
    let plain = |c: u8| c.is_ascii_alphanumeric() || b"-_.".contains(&c);
    if !manifest.archive.starts_with("vzdump-lxc-") || !manifest.archive.bytes().all(plain) {
        return Err(GoldenDumpError::LeadsAway { path: path.to_owned() });
    }
    Ok(StoredImage { archive: path.with_file_name(&manifest.archive), file: path.to_owned(), manifest })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(version: &str, archive: &str) -> String {
        let hex = "ab".repeat(32);
        format!(
            r#"{{"schema":"holdfast.golden-manifest/v1","version":"{version}","contents":"tiny","archive":"{archive}",
            "sha256":"{hex}","size_bytes":1,"recipe_sha256":"{hex}","guestd_sha256":"{hex}","source_date_epoch":1,
            "build":{{"made_at_s":1,"seconds":1,"entries":1,"content_bytes":1}},"packages":[]}}"#
        )
    }

    #[test]
    fn manifests_are_read_in_the_order_of_their_versions_and_others_reported() {
        let folder = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        put("golden-2026.11.10.json", &manifest("2026.11.10", "vzdump-lxc-900001-a.tar.zst"));
        put("golden-2026.11.9.json", &manifest("2026.11.9", "vzdump-lxc-900001-b.tar.zst"));
        put("golden-2026.10.1.json", &manifest("2026.10.1", "vzdump-lxc-1-../../etc/shadow"));
        put("golden-2026.11.9.spdx.json", "{}");
        put("golden-odd.json", "{}");
        put("vzdump-lxc-100-2026_01_01-00_00_00.tar.zst", "");
        let (found, wrong) = read(folder.path()).unwrap();
        let versions: Vec<&str> = found.iter().map(|golden| golden.manifest.version.as_str()).collect();
        assert_eq!(versions, ["2026.11.9", "2026.11.10"], "by number, not by letters");
        assert_eq!(wrong.len(), 2, "{wrong:?}");
        assert!(read(Path::new("/nowhere")).is_err());
    }
}
