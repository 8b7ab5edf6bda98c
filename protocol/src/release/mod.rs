//! Signed releases: the manifest of a release's files.
//!
//! In: one JSON document with the signed bytes and the signatures. Out: the bytes, and what they say. A manifest is a
//! claim: `trust` checks who signed it, and whoever uses a file of it hashes that file first. Deliberately absent: keys.

mod kind;
mod number;
pub mod rollout;
pub mod stored;
pub mod window;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

use crate::code::ErrorCode;
use crate::job::UtcSecond;
use crate::job::act::Sha256Text;
use crate::json::{self, JsonError};
use crate::text::texts;

pub use kind::ReleaseFileKind;
pub use number::VersionNumber;

/// A manifest names some twenty files; this is twenty times that.
pub const MANIFEST_BYTES_MAX: usize = 64 * 1024;

/// A manifest in base64, and its signatures.
pub const SIGNED_RELEASE_BYTES_MAX: usize = 128 * 1024;

/// More signers than any host requires.
pub const RELEASE_SIGNATURES_MAX: usize = 8;

/// More files than a release has.
pub const RELEASE_FILES_MAX: usize = 64;

/// The largest file of a release: a golden image.
pub const RELEASE_FILE_BYTES_MAX: u64 = 16 * 1024 * 1024 * 1024;

texts! {
    /// The name of a file of a release, without a folder.
    ReleaseFileName, 1..=128, "a file of a release is named by letters, digits, '.', '+', '-', '_' and '~', not beginning with '.'",
        |text| !text.starts_with('.') && text.bytes().all(|b| b.is_ascii_alphanumeric() || b".+-_~".contains(&b));
}

/// The version of a manifest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ReleaseSchema {
    /// The only one so far.
    #[default]
    #[serde(rename = "holdfast.release/v1")]
    V1,
}

/// One file of a release.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReleaseFile {
    /// What it is for.
    pub kind: ReleaseFileKind,
    /// Its name.
    pub name: ReleaseFileName,
    /// SHA-256 of its bytes.
    pub sha256: Sha256Text,
    /// How many bytes it has.
    pub size_bytes: u64,
}

/// A release: its version, how long it may be installed, and its files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReleaseManifest {
    /// Which form this is.
    pub schema: ReleaseSchema,
    /// The version of all programs in it.
    pub version: VersionNumber,
    /// When it was made. A later manifest of the same files is another release to a host on which they failed.
    pub issued_at: UtcSecond,
    /// From then on no host installs it. One that runs it goes on.
    pub expires_at: UtcSecond,
    /// Its files, each name once.
    pub files: Vec<ReleaseFile>,
}

/// A manifest's bytes and who signed them. Nothing of it has been checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedRelease {
    /// The bytes that were signed.
    pub manifest: Vec<u8>,
    /// Signatures as `ssh-keygen -Y sign -n holdfast-release` writes them.
    pub signatures: Vec<String>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
enum SignedSchema {
    #[serde(rename = "holdfast.signed-release/v1")]
    V1,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Wire {
    schema: SignedSchema,
    /// The manifest's bytes in base64.
    manifest: String,
    /// Signatures over these bytes, each as `ssh-keygen -Y sign -n holdfast-release` writes it.
    signatures: Vec<String>,
}

impl JsonSchema for SignedRelease {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "SignedRelease".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Wire::json_schema(generator)
    }
}

/// Why bytes are no signed release.
#[derive(Debug, thiserror::Error)]
pub enum ReleaseError {
    /// Not the document it should be.
    #[error(transparent)]
    Form(#[from] JsonError),
    /// The manifest is not in plain base64.
    #[error("the release's manifest is not base64 in its one plain spelling")]
    Base64(#[source] base64::DecodeError),
    /// None, or too many.
    #[error("the release carries {0} signatures; 1 to {RELEASE_SIGNATURES_MAX} are accepted")]
    Signatures(usize),
    /// None, or too many.
    #[error("the release names {0} files; 1 to {RELEASE_FILES_MAX} are accepted")]
    Files(usize),
    /// Two files of one name.
    #[error("the release names {name} twice", name = .0.as_str())]
    NameTwice(ReleaseFileName),
    /// Empty, or too large.
    #[error(
        "{name} of the release has {size_bytes} bytes; 1 to {RELEASE_FILE_BYTES_MAX} are accepted",
        name = .name.as_str()
    )]
    FileSize {
        /// Which file.
        name: ReleaseFileName,
        /// What it says.
        size_bytes: u64,
    },
    /// It ends before it was made.
    #[error("the release ends at {expires_at}, before it was made ({issued_at})")]
    Times {
        /// When it was made.
        issued_at: UtcSecond,
        /// When it ends.
        expires_at: UtcSecond,
    },
}

impl ReleaseError {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Form(error) => error.code(),
            Self::Base64(_) => ErrorCode::Syntax,
            Self::Signatures(_) | Self::Files(_) | Self::FileSize { .. } | Self::Times { .. } => {
                ErrorCode::Range
            }
            Self::NameTwice(_) => ErrorCode::DuplicateName,
        }
    }
}

impl ReleaseManifest {
    /// Reads one.
    ///
    /// # Errors
    /// [`ReleaseError`], at the first mistake.
    pub fn parse(bytes: &[u8]) -> Result<Self, ReleaseError> {
        let manifest: Self = json::parse("a release's manifest", bytes, MANIFEST_BYTES_MAX)?;
        if !(1..=RELEASE_FILES_MAX).contains(&manifest.files.len()) {
            return Err(ReleaseError::Files(manifest.files.len()));
        }
        let mut names = std::collections::BTreeSet::new();
        for file in &manifest.files {
            if !names.insert(&file.name) {
                return Err(ReleaseError::NameTwice(file.name.clone()));
            }
            if !(1..=RELEASE_FILE_BYTES_MAX).contains(&file.size_bytes) {
                return Err(ReleaseError::FileSize { name: file.name.clone(), size_bytes: file.size_bytes });
            }
        }
        let (issued_at, expires_at) = (manifest.issued_at, manifest.expires_at);
        if expires_at <= issued_at {
            return Err(ReleaseError::Times { issued_at, expires_at });
        }
        Ok(manifest)
    }

    /// As it is signed: readable, with a newline at its end.
    ///
    /// # Errors
    /// Never in practice: its parts are always JSON.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self).map(|text| text + "\n")
    }

    /// The one file of a kind. None where there is none, or where a name would have to choose.
    #[must_use]
    pub fn only(&self, kind: ReleaseFileKind) -> Option<&ReleaseFile> {
        let mut files = self.files.iter().filter(|file| file.kind == kind);
        let only = files.next()?;
        files.next().is_none().then_some(only)
    }
}

impl SignedRelease {
    /// Reads one.
    ///
    /// # Errors
    /// [`ReleaseError`], at the first mistake.
    pub fn parse(bytes: &[u8]) -> Result<Self, ReleaseError> {
        let wire: Wire = json::parse("a signed release", bytes, SIGNED_RELEASE_BYTES_MAX)?;
        let manifest = STANDARD.decode(&wire.manifest).map_err(ReleaseError::Base64)?;
        match wire.signatures.len() {
            1..=RELEASE_SIGNATURES_MAX => Ok(Self { manifest, signatures: wire.signatures }),
            other => Err(ReleaseError::Signatures(other)),
        }
    }

    /// As it travels and is stored.
    ///
    /// # Errors
    /// Never in practice: strings are always JSON.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(&Wire {
            schema: SignedSchema::V1,
            manifest: STANDARD.encode(&self.manifest),
            signatures: self.signatures.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> ReleaseManifest {
        let at = |text: &str| text.to_owned().try_into().unwrap();
        ReleaseManifest {
            schema: ReleaseSchema::V1,
            version: VersionNumber::new(2026, 12, 1),
            issued_at: at("2026-12-01T00:00:00Z"),
            expires_at: at("2027-03-01T00:00:00Z"),
            files: vec![ReleaseFile {
                kind: ReleaseFileKind::Agent,
                name: "agentd".to_owned().try_into().unwrap(),
                sha256: Sha256Text::of(b"program"),
                size_bytes: 7,
            }],
        }
    }

    #[test]
    fn a_manifest_is_read_as_it_was_written() {
        let text = manifest().to_json().unwrap();
        assert_eq!(ReleaseManifest::parse(text.as_bytes()).unwrap(), manifest());
        let signed = SignedRelease { manifest: text.into_bytes(), signatures: vec!["armour".to_owned()] };
        assert_eq!(SignedRelease::parse(signed.to_json().unwrap().as_bytes()).unwrap(), signed);
        assert_eq!(manifest().only(ReleaseFileKind::Agent), manifest().files.first());
        assert_eq!(manifest().only(ReleaseFileKind::GuestAgent), None);
    }

    #[test]
    fn a_manifest_that_says_two_things_is_refused() {
        let refused = |change: &dyn Fn(&mut ReleaseManifest)| {
            let mut changed = manifest();
            change(&mut changed);
            let error = ReleaseManifest::parse(changed.to_json().unwrap().as_bytes()).unwrap_err();
            (error.code().as_str(), error.to_string())
        };
        let twice = refused(&|manifest| manifest.files.extend(manifest.files.clone()));
        assert_eq!(twice, ("DUPLICATE_NAME", "the release names agentd twice".to_owned()));
        assert_eq!(refused(&|manifest| manifest.files.clear()).0, "RANGE");
        assert_eq!(refused(&|manifest| manifest.expires_at = manifest.issued_at).0, "RANGE");
        assert_eq!(refused(&|manifest| manifest.files[0].size_bytes = 0).0, "RANGE");
        let mut two = manifest();
        two.files
            .push(ReleaseFile { name: "agentd-arm".to_owned().try_into().unwrap(), ..two.files[0].clone() });
        assert_eq!(two.only(ReleaseFileKind::Agent), None, "none is chosen by its order");
        for name in ["", ".hidden", "../agentd", "a/b", "a b"] {
            assert!(ReleaseFileName::try_from(name.to_owned()).is_err(), "{name:?}");
        }
    }
}
