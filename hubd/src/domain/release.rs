//! Whether a signed release is kept, and the bound of all files.
//!
//! In: the release of that version that is kept, if any, and what the others need. Out: a decision. Deliberately absent:
//! signatures. The hub has no keys; hosts and operators verify.

use std::collections::BTreeMap;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::job::UtcSecond;
use holdfast_protocol::job::act::Sha256Text;
use holdfast_protocol::release::{ReleaseFile, VersionNumber};

/// Releases at a time.
pub const RELEASES_MAX: usize = 50;

/// What tells two releases of one version apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edition {
    /// SHA-256 of the signed manifest.
    pub manifest_sha256: Sha256Text,
    /// SHA-256 of manifest and signatures as they travel.
    pub signed_sha256: Sha256Text,
    pub issued_at: UtcSecond,
}

/// What is done with a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReleasePut {
    /// It is new.
    Add,
    /// It is kept already, signatures and all.
    Again,
    /// It takes the place of the one that is kept: the same manifest with other signatures, or a later manifest.
    Replace,
}

/// Why a release is not kept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReleasePutError {
    #[error(
        "release {version} is here with another manifest that was not made earlier, and nothing was changed: delete it \
         first with `holdfast release delete {version}` if this one is right"
    )]
    Taken { version: VersionNumber },
    #[error(
        "{RELEASES_MAX} releases are here, as many as are kept: delete one with `holdfast release delete VERSION`"
    )]
    TooMany,
    #[error(
        "with this release all files would have {bytes} bytes, and {max} are accepted (release_gib_max in hub.toml): \
         delete a release with `holdfast release delete VERSION`"
    )]
    Bytes { bytes: u64, max: u64 },
    #[error("the file with digest {digest} has two sizes, {one} and {other} bytes: write the manifest anew", digest = .digest.as_str())]
    TwoSizes { digest: Sha256Text, one: u64, other: u64 },
}

impl ReleasePutError {
    /// The stable code.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Taken { .. } => ErrorCode::NameTaken,
            Self::TooMany | Self::Bytes { .. } => ErrorCode::Quota,
            Self::TwoSizes { .. } => ErrorCode::Range,
        }
    }
}

/// Judges a release of a version against the one that is kept. `others` is how many of other versions are.
///
/// # Errors
/// [`ReleasePutError`].
pub fn judge_put(
    version: VersionNumber,
    kept: Option<&Edition>,
    incoming: &Edition,
    others: usize,
) -> Result<ReleasePut, ReleasePutError> {
    match kept {
        None if others >= RELEASES_MAX => Err(ReleasePutError::TooMany),
        None => Ok(ReleasePut::Add),
        Some(kept) if kept.signed_sha256 == incoming.signed_sha256 => Ok(ReleasePut::Again),
        Some(kept) if kept.manifest_sha256 == incoming.manifest_sha256 => Ok(ReleasePut::Replace),
        // An older edition would bring back an end or files that were withdrawn.
        Some(kept) if kept.issued_at < incoming.issued_at => Ok(ReleasePut::Replace),
        Some(_) => Err(ReleasePutError::Taken { version }),
    }
}

/// Judges how many bytes all files have together; a digest that several releases name counts once.
///
/// # Errors
/// [`ReleasePutError`].
pub fn judge_bytes(
    others: BTreeMap<Sha256Text, u64>,
    files: &[ReleaseFile],
    max: u64,
) -> Result<(), ReleasePutError> {
    let mut sizes = others;
    for file in files {
        match sizes.insert(file.sha256.clone(), file.size_bytes) {
            Some(one) if one != file.size_bytes => {
                let (digest, other) = (file.sha256.clone(), file.size_bytes);
                return Err(ReleasePutError::TwoSizes { digest, one, other });
            }
            Some(_) | None => {}
        }
    }
    let bytes = sizes.values().fold(0_u64, |sum, size| sum.saturating_add(*size));
    if bytes > max { Err(ReleasePutError::Bytes { bytes, max }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use holdfast_protocol::release::ReleaseFileKind;

    use super::*;

    fn edition(content: &str, day: u8) -> Edition {
        let issued_at = format!("2026-12-{day:02}T00:00:00Z").try_into().unwrap();
        let signed_sha256 = Sha256Text::of(format!("signed {content} {day}").as_bytes());
        Edition { manifest_sha256: Sha256Text::of(content.as_bytes()), signed_sha256, issued_at }
    }

    #[test]
    fn a_version_is_replaced_by_the_same_or_a_later_manifest_alone() {
        let version = VersionNumber::new(2026, 12, 1);
        let put =
            |kept: Option<&Edition>, incoming: &Edition, others| judge_put(version, kept, incoming, others);
        let (first, other, later) = (edition("a", 1), edition("b", 1), edition("b", 2));
        assert_eq!(put(None, &first, 49), Ok(ReleasePut::Add));
        assert_eq!(put(None, &first, 50), Err(ReleasePutError::TooMany));
        assert_eq!(put(Some(&first), &first, 50), Ok(ReleasePut::Again));
        let signed_sha256 = Sha256Text::of(b"two signatures");
        let more = Edition { signed_sha256, ..first.clone() };
        assert_eq!(put(Some(&first), &more, 50), Ok(ReleasePut::Replace), "other signatures");
        assert_eq!(put(Some(&first), &later, 49), Ok(ReleasePut::Replace));
        assert_eq!(put(Some(&first), &other, 0), Err(ReleasePutError::Taken { version }));
        assert_eq!(put(Some(&later), &first, 0), Err(ReleasePutError::Taken { version }));
    }

    #[test]
    fn a_digest_counts_once_and_has_one_size() {
        let file = |content: &str, size_bytes| ReleaseFile {
            kind: ReleaseFileKind::Package,
            name: content.to_owned().try_into().unwrap(),
            sha256: Sha256Text::of(content.as_bytes()),
            size_bytes,
        };
        let others = || BTreeMap::from([(Sha256Text::of(b"a"), 60)]);
        assert_eq!(judge_bytes(others(), &[file("a", 60), file("b", 40)], 100), Ok(()));
        let beyond = judge_bytes(others(), &[file("b", 41)], 100);
        assert_eq!(beyond, Err(ReleasePutError::Bytes { bytes: 101, max: 100 }));
        let twice = judge_bytes(others(), &[file("a", 61)], 1000);
        assert!(matches!(twice, Err(ReleasePutError::TwoSizes { one: 60, other: 61, .. })));
        let huge = judge_bytes(others(), &[file("b", u64::MAX)], 100);
        assert_eq!(huge, Err(ReleasePutError::Bytes { bytes: u64::MAX, max: 100 }));
    }
}
