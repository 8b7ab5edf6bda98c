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
        "release {version} has {agents} programs of kind agent where a host takes exactly one, and nothing was offered: \
         make a release with `holdfast release manifest`"
    )]
    NotOneAgent { version: VersionNumber, agents: usize },
    #[error(
        "the hub has {received} of {size} bytes of the agent of release {version}, and nothing was offered: go on with \
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
            Self::NotOneAgent { .. } | Self::Incomplete { .. } => ErrorCode::PreconditionFailed,
            Self::Revoked => ErrorCode::Revoked,
        }
    }
}

/// The one program that a host would fetch of a release.
///
/// # Errors
/// [`OfferError::NotOneAgent`].
pub fn the_agent(version: VersionNumber, files: &[ReleaseFile]) -> Result<&ReleaseFile, OfferError> {
    let mut agents = files.iter().filter(|file| file.kind == ReleaseFileKind::Agent);
    match (agents.next(), agents.count()) {
        (Some(only), 0) => Ok(only),
        (None, _) => Err(OfferError::NotOneAgent { version, agents: 0 }),
        (Some(_), more) => Err(OfferError::NotOneAgent { version, agents: more.saturating_add(1) }),
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
        assert_eq!(the_agent(version, &[package.clone(), agent.clone()]), Ok(&agent));
        let none = the_agent(version, std::slice::from_ref(&package));
        assert_eq!(none, Err(OfferError::NotOneAgent { version, agents: 0 }));
        let two = [agent.clone(), package, arm];
        assert_eq!(the_agent(version, &two), Err(OfferError::NotOneAgent { version, agents: 2 }));

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
