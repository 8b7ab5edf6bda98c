//! Files of releases: manifests, signed releases, and what they name.
//!
//! In: paths. Out: checked documents, and sizes with hashes. Nothing is read beyond its bound, and nothing is written
//! over that was not read before. Deliberately absent: keys.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use holdfast_protocol::job::act::Sha256Text;
use holdfast_protocol::release::{
    MANIFEST_BYTES_MAX, RELEASE_FILE_BYTES_MAX, ReleaseFile, ReleaseManifest, SIGNED_RELEASE_BYTES_MAX,
    SignedRelease,
};
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use crate::release_errors::ReleaseFileError;

/// The end of the name of a signed release.
pub const SIGNED_END: &str = ".signed.json";

/// How much of a file is read at once.
const CHUNK_BYTES: usize = 256 * 1024;

/// Reads a manifest, with its exact bytes.
pub fn manifest(path: &Path) -> Result<(ReleaseManifest, Vec<u8>), ReleaseFileError> {
    let bytes = bounded(path, MANIFEST_BYTES_MAX)?;
    let manifest = ReleaseManifest::parse(&bytes)
        .map_err(|source| ReleaseFileError::Manifest { path: path.to_owned(), source })?;
    Ok((manifest, bytes))
}

/// Reads a signed release, and not the manifest in it.
pub fn envelope(path: &Path) -> Result<SignedRelease, ReleaseFileError> {
    let bytes = bounded(path, SIGNED_RELEASE_BYTES_MAX)?;
    let failed = |source| ReleaseFileError::Signed { path: path.to_owned(), source };
    SignedRelease::parse(&bytes).map_err(failed)
}

/// Reads a signed release and the manifest in it. No signature is checked.
pub fn signed(path: &Path) -> Result<(SignedRelease, ReleaseManifest), ReleaseFileError> {
    let signed = envelope(path)?;
    let failed = |source| ReleaseFileError::Signed { path: path.to_owned(), source };
    let manifest = ReleaseManifest::parse(&signed.manifest).map_err(failed)?;
    Ok((signed, manifest))
}

/// Whether a path is that of a signed release, by its name.
pub fn is_signed(path: &Path) -> bool {
    path.to_string_lossy().ends_with(SIGNED_END)
}

/// Where the signatures over a manifest are.
pub fn signed_path(manifest: &Path) -> PathBuf {
    let mut path = manifest.as_os_str().to_owned();
    path.push(SIGNED_END);
    PathBuf::from(path)
}

/// One byte more than is accepted, so that what is too long is seen to be.
fn bounded(path: &Path, max: usize) -> Result<Vec<u8>, ReleaseFileError> {
    let failed = |source| ReleaseFileError::Io { verb: "read", path: path.to_owned(), source };
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(failed)?;
    file.take(max as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

/// A file's size and hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measured {
    pub size_bytes: u64,
    pub sha256: Sha256Text,
}

/// Hashes a file. More than a release may hold is not read on.
pub fn measure(path: &Path) -> io::Result<Measured> {
    let file = File::open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let mut file = file.take(RELEASE_FILE_BYTES_MAX + 1);
    let (mut hasher, mut size_bytes) = (Sha256::new(), 0_u64);
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        let count = file.read(&mut chunk)?;
        if count == 0 {
            let sha256 = Sha256Text::from_digest(hasher.finalize().into());
            return Ok(Measured { size_bytes, sha256 });
        }
        hasher.update(chunk.get(..count).unwrap_or_default());
        size_bytes += count as u64;
    }
}

/// What a folder has of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FileState {
    /// No folder was given.
    NotChecked,
    Same,
    Missing,
    /// It cannot be read.
    Unreadable,
    OtherSize,
    /// The size is right, and the bytes are not.
    OtherBytes,
}

impl FileState {
    /// Whether it may be installed as far as was looked.
    pub const fn is_good(self) -> bool {
        match self {
            Self::NotChecked | Self::Same => true,
            Self::Missing | Self::Unreadable | Self::OtherSize | Self::OtherBytes => false,
        }
    }
}

/// Compares a file of a folder with what the release says of it.
pub fn compare(folder: &Path, file: &ReleaseFile) -> FileState {
    let path = folder.join(file.name.as_str());
    match path.metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return FileState::Missing,
        Err(_) => return FileState::Unreadable,
        // Not hashed: it is another one in any case.
        Ok(found) if found.is_file() && found.len() != file.size_bytes => return FileState::OtherSize,
        Ok(_) => {}
    }
    match measure(&path) {
        Err(_) => FileState::Unreadable,
        Ok(found) if found.size_bytes != file.size_bytes => FileState::OtherSize,
        Ok(found) if found.sha256 != file.sha256 => FileState::OtherBytes,
        Ok(_) => FileState::Same,
    }
}
