//! Errors of `holdfast release`.
//!
//! They are separate from the commands, since every command returns the error that contains all of them.

use std::path::PathBuf;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::job::UtcSecond;
use holdfast_protocol::release::window::WindowError;
use holdfast_protocol::release::{RELEASE_SIGNATURES_MAX, ReleaseError, VersionNumber};
use holdfast_trust::operators::OperatorsError;
use holdfast_trust::release::{ReleaseKeysError, ReleaseRefused};
use holdfast_trust::signature::SignatureError;

/// Why a manifest or a signed release is not read or not written.
#[derive(Debug, thiserror::Error)]
pub enum ReleaseFileError {
    /// The system refused.
    #[error("cannot {verb} {}", path.display())]
    Io {
        verb: &'static str,
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("{} is not the manifest of a release", path.display())]
    Manifest {
        path: PathBuf,
        #[source]
        source: ReleaseError,
    },
    #[error("{} is not a signed release", path.display())]
    Signed {
        path: PathBuf,
        #[source]
        source: ReleaseError,
    },
    /// The manifest would not be accepted anywhere.
    #[error("no manifest was written")]
    Content(#[source] ReleaseError),
    /// A file that has no name, or one that no release may have.
    #[error("{} cannot be a file of a release, and no manifest was written", path.display())]
    Name {
        path: PathBuf,
        #[source]
        source: NameError,
    },
    #[error(
        "the name of {} does not show its kind, and no manifest was written: give it as --file KIND=PATH, with agent, \
         guest_agent, golden, golden_manifest, package or sbom as KIND",
        path.display()
    )]
    Kind { path: PathBuf },
    /// The clock, with the days added to it.
    #[error("no manifest was written: {0}")]
    Clock(&'static str),
    /// Cannot happen for what was made here.
    #[error("the document cannot be written as JSON")]
    Unwritable(#[source] serde_json::Error),
}

/// Why a name is not taken.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct NameError(pub &'static str);

/// Why a release is not signed.
#[derive(Debug, thiserror::Error)]
pub enum ReleaseSignError {
    /// The signatures next to the manifest are over other bytes.
    #[error(
        "{} has signatures of another manifest, and nothing was signed: move it away if this manifest is the right one",
        path.display()
    )]
    OtherManifest { path: PathBuf },
    #[error("signature {number} in {} is not valid, and nothing was signed: begin anew with the manifest", path.display())]
    Signature {
        path: PathBuf,
        /// Counted from 1.
        number: usize,
        #[source]
        source: SignatureError,
    },
    #[error("{key} has signed this release already: another person must sign with another key")]
    Twice { key: String },
    #[error("a release carries at most {RELEASE_SIGNATURES_MAX} signatures, and nothing was signed")]
    Full,
    #[error(
        "the release ended at {0}, and nothing was signed: write a new manifest with `holdfast release manifest`"
    )]
    Expired(UtcSecond),
}

/// Why a release is not accepted.
#[derive(Debug, thiserror::Error)]
pub enum ReleaseVerifyError {
    #[error("{} does not hold release keys", path.display())]
    Keys {
        path: PathBuf,
        #[source]
        source: OperatorsError,
    },
    #[error("no release can be verified with {}", path.display())]
    Threshold {
        path: PathBuf,
        #[source]
        source: ReleaseKeysError,
    },
    #[error("{} is refused, as a host with these keys would refuse it", path.display())]
    Refused {
        path: PathBuf,
        #[source]
        source: ReleaseRefused,
    },
    #[error("in {} these files are missing or are not those of the release: {names}", folder.display())]
    Files { folder: PathBuf, names: String },
}

/// Why a release at the hub is not as it was to be.
#[derive(Debug, thiserror::Error)]
pub enum ReleaseStoreError {
    #[error(
        "the hub has {received} of {size} bytes of {name} after the last piece, and took no more: run the command again"
    )]
    Stalled { name: String, received: u64, size: u64 },
    #[error(
        "rollout {number} is held, and nothing is offered: {reason}; `holdfast rollout resume {number}` accepts the failures \
         and goes on, `holdfast rollout abort {number}` ends it"
    )]
    RolloutHeld { number: u32, reason: String },
    #[error(
        "rollout {number} is held, and its hosts are offered the release to go back to: {reason}; `holdfast rollout show {number}` \
         says which of them run it"
    )]
    RolloutBack { number: u32, reason: String },
    #[error("no rollout was planned")]
    Times(#[from] WindowError),
    #[error("the hub has no release {version}, and nothing was changed: see `holdfast release list`")]
    Unknown { version: VersionNumber },
}

impl ReleaseVerifyError {
    /// The stable code, where a host would print one.
    pub fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Refused { source, .. } => Some(source.code()),
            Self::Files { .. } => Some(ErrorCode::ArtifactWrong),
            Self::Keys { .. } | Self::Threshold { .. } => None,
        }
    }
}
