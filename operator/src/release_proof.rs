//! The proof that a release is accepted, with its files.
//!
//! In: a release that the keys accepted, and perhaps a folder. Out: the document for programs, and whether the folder has
//! each file as it was released.

use std::path::Path;

use holdfast_protocol::id::OperatorName;
use holdfast_protocol::job::UtcSecond;
use holdfast_protocol::job::act::Sha256Text;
use holdfast_protocol::release::{ReleaseFile, ReleaseManifest, VersionNumber};
use holdfast_trust::AcceptedRelease;
use jiff::Timestamp;
use serde::Serialize;

use crate::release_errors::ReleaseVerifyError;
use crate::release_file::{FileState, compare};

/// A release that its keys accept.
#[derive(Debug, Serialize)]
pub struct ReleaseProof {
    pub version: VersionNumber,
    /// SHA-256 of the signed bytes.
    pub manifest_sha256: Sha256Text,
    pub issued_at: UtcSecond,
    pub expires_at: UtcSecond,
    /// For which time it was verified.
    pub at: Timestamp,
    /// Who signed, each once.
    pub signers: Vec<OperatorName>,
    /// How many people had to.
    pub signatures: u8,
    pub files: Vec<CheckedFile>,
}

/// A file of the release, as a folder has it.
#[derive(Debug, Serialize)]
pub struct CheckedFile {
    #[serde(flatten)]
    pub file: ReleaseFile,
    pub state: FileState,
}

impl ReleaseProof {
    /// Of an accepted release; with a folder each of its files is hashed.
    pub fn of(accepted: &AcceptedRelease, at: Timestamp, signatures: u8, folder: Option<&Path>) -> Self {
        let manifest = accepted.manifest();
        Self {
            version: manifest.version,
            manifest_sha256: Sha256Text::from_digest(accepted.digest()),
            issued_at: manifest.issued_at,
            expires_at: manifest.expires_at,
            at,
            signers: accepted.signers().iter().cloned().collect(),
            signatures,
            files: checked(manifest, folder),
        }
    }
}

/// Each file of a release, hashed where there is a folder.
pub fn checked(manifest: &ReleaseManifest, folder: Option<&Path>) -> Vec<CheckedFile> {
    let state = |file: &ReleaseFile| folder.map_or(FileState::NotChecked, |folder| compare(folder, file));
    manifest.files.iter().map(|file| CheckedFile { file: file.clone(), state: state(file) }).collect()
}

/// Whether the folder has each file as it was released.
pub fn require_files(files: &[CheckedFile], folder: &Path) -> Result<(), ReleaseVerifyError> {
    let wrong = files.iter().filter(|checked| !checked.state.is_good());
    let names: Vec<&str> = wrong.map(|checked| checked.file.name.as_str()).collect();
    if names.is_empty() {
        return Ok(());
    }
    Err(ReleaseVerifyError::Files { folder: folder.to_owned(), names: names.join(", ") })
}
