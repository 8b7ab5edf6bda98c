//! Whether a release may be offered to a host.
//!
//! In: the release as the hub keeps it, and how much of its agent is here. Out: a decision. Deliberately absent: whether
//! the host takes it. Its release keys, its version and its own past decide that.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::release::stored::{ArtifactState, ArtifactView};
use holdfast_protocol::release::{ReleaseFile, ReleaseFileKind, VersionNumber};

/// Why a release is not offered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OfferError {
    #[error("the hub has no release {version}, and nothing was offered: see `holdfast release list`")]
    Unknown { version: VersionNumber },
    #[error(
        "release {version} has {count} programs of kind {} where exactly one is taken, and nothing was offered: make a release \
         with `holdfast release manifest`", kind.as_str()
    )]
    NotOne { version: VersionNumber, kind: ReleaseFileKind, count: usize },
    #[error(
        "the hub has {received} of {size} bytes of the program of release {version}, and nothing was offered: go on with \
         `holdfast release upload`"
    )]
    Incomplete { version: VersionNumber, received: u64, size: u64 },
    #[error("the host was revoked, and nothing was offered: see `holdfast host list`")]
    Revoked,
}

impl OfferError {
    /// The stable code.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Unknown { .. } => ErrorCode::NotFound,
            Self::NotOne { .. } | Self::Incomplete { .. } => ErrorCode::PreconditionFailed,
            Self::Revoked => ErrorCode::Revoked,
        }
    }
}

/// The one program of this kind that a host would fetch of a release.
///
/// # Errors
/// [`OfferError::NotOne`].
pub fn the_program(
    version: VersionNumber,
    files: &[ReleaseFile],
    kind: ReleaseFileKind,
) -> Result<&ReleaseFile, OfferError> {
    let mut found = files.iter().filter(|file| file.kind == kind);
    match (found.next(), found.count()) {
        (Some(only), 0) => Ok(only),
        (None, _) => Err(OfferError::NotOne { version, kind, count: 0 }),
        (Some(_), more) => Err(OfferError::NotOne { version, kind, count: more.saturating_add(1) }),
    }
}

/// Judges whether a host could fetch the agent now.
///
/// # Errors
/// [`OfferError::Incomplete`].
pub fn judge_here(version: VersionNumber, agent: &ArtifactView) -> Result<(), OfferError> {
    match agent.state {
        ArtifactState::Complete => Ok(()),
        ArtifactState::Missing | ArtifactState::Partial => {
            let (received, size) = (agent.received_bytes, agent.size_bytes);
            Err(OfferError::Incomplete { version, received, size })
        }
    }
}

#[cfg(test)]
mod tests {
    use holdfast_protocol::job::act::Sha256Text;

    use super::*;

    #[test]
    fn a_release_is_offered_with_exactly_one_agent() {
        let version = VersionNumber::new(2026, 12, 1);
        let file = |kind, name: &str| ReleaseFile {
            kind,
            name: name.to_owned().try_into().unwrap(),
            sha256: Sha256Text::of(name.as_bytes()),
            size_bytes: 7,
        };
        let package = file(ReleaseFileKind::Package, "a.deb");
        let agent = file(ReleaseFileKind::Agent, "agentd");
        let arm = file(ReleaseFileKind::Agent, "agentd-arm64");
        let kind = ReleaseFileKind::Agent;
        let the_agent = |files: &[ReleaseFile]| the_program(version, files, kind).cloned();
        assert_eq!(the_agent(&[package.clone(), agent.clone()]), Ok(agent.clone()));
        let none = the_agent(std::slice::from_ref(&package));
        assert_eq!(none, Err(OfferError::NotOne { version, kind, count: 0 }));
        let two = [agent.clone(), package, arm];
        assert_eq!(the_agent(&two), Err(OfferError::NotOne { version, kind, count: 2 }));

        let here = |received_bytes, state| {
            judge_here(
                version,
                &ArtifactView { sha256: agent.sha256.clone(), size_bytes: 7, received_bytes, state },
            )
        };
        assert_eq!(here(7, ArtifactState::Complete), Ok(()));
        // All bytes are here, and their hash is not checked yet.
        let unchecked = here(7, ArtifactState::Partial);
        assert_eq!(unchecked, Err(OfferError::Incomplete { version, received: 7, size: 7 }));
        assert!(here(0, ArtifactState::Missing).is_err());
    }
}
