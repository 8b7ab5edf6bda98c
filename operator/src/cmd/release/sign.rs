//! `holdfast release sign`: one more signature over a manifest.

use std::path::{Path, PathBuf};

use holdfast_protocol::job::UtcSecond;
use holdfast_protocol::job::act::Sha256Text;
use holdfast_protocol::release::{RELEASE_SIGNATURES_MAX, ReleaseManifest, SignedRelease, VersionNumber};
use holdfast_trust::OperatorKey;
use holdfast_trust::signature::{Namespace, check};
use serde::Serialize;

use crate::args::KeyArgs;
use crate::error::CliError;
use crate::job_file::{self, Overwrite};
use crate::release_errors::{ReleaseFileError, ReleaseSignError};
use crate::release_file;
use crate::screen::Screen;
use crate::{clock, keygen, prompt, render};

/// A signed release: the document for programs.
#[derive(Debug, Serialize)]
struct SignOutcome {
    version: VersionNumber,
    /// SHA-256 of the signed bytes.
    manifest_sha256: Sha256Text,
    expires_at: UtcSecond,
    /// Fingerprints of the keys that signed.
    keys: Vec<String>,
    file: PathBuf,
}

pub fn run(file: PathBuf, key: &KeyArgs, screen: &Screen) -> Result<(), CliError> {
    let (mut release, manifest, path, over) = open(file)?;
    if clock::now() >= manifest.expires_at.at() {
        return Err(ReleaseSignError::Expired(manifest.expires_at).into());
    }
    let mut keys = signers(&release, &path)?;
    let digest = Sha256Text::of(&release.manifest);
    screen.before_question(&render::release::to_sign(
        &manifest,
        &digest,
        &fingerprints(&keys),
        screen.style(),
    ));
    let version = manifest.version.to_string();
    prompt::name(&version, "\nType the version to sign this release:", key.confirm.as_deref())?;
    let signature = keygen::sign(&release.manifest, &key.key, Namespace::Release)?;
    if keys.contains(&signature.key) {
        return Err(ReleaseSignError::Twice { key: signature.key.fingerprint() }.into());
    }
    if keys.len() >= RELEASE_SIGNATURES_MAX {
        return Err(ReleaseSignError::Full.into());
    }
    release.signatures.push(signature.armoured);
    keys.push(signature.key);
    let text = release.to_json().map_err(ReleaseFileError::Unwritable)? + "\n";
    job_file::write(&path, &text, over)?;
    let outcome = SignOutcome {
        version: manifest.version,
        manifest_sha256: digest,
        expires_at: manifest.expires_at,
        keys: fingerprints(&keys),
        file: path,
    };
    screen.show(&outcome, |done, _| render::release::signed(done.version, done.keys.len(), &done.file))
}

/// The bytes to sign, with the signatures so far and where they are written.
fn open(file: PathBuf) -> Result<(SignedRelease, ReleaseManifest, PathBuf, Overwrite), CliError> {
    if release_file::is_signed(&file) {
        let (release, manifest) = release_file::signed(&file)?;
        return Ok((release, manifest, file, Overwrite::SameFile));
    }
    let (manifest, bytes) = release_file::manifest(&file)?;
    let path = release_file::signed_path(&file);
    if !path.exists() {
        let release = SignedRelease { manifest: bytes, signatures: Vec::new() };
        return Ok((release, manifest, path, Overwrite::Never));
    }
    let (release, _) = release_file::signed(&path)?;
    if release.manifest != bytes {
        return Err(ReleaseSignError::OtherManifest { path }.into());
    }
    Ok((release, manifest, path, Overwrite::SameFile))
}

fn signers(release: &SignedRelease, path: &Path) -> Result<Vec<OperatorKey>, ReleaseSignError> {
    let numbered = (1..).zip(&release.signatures);
    let keys =
        numbered.map(|(number, armoured)| {
            check(&release.manifest, armoured, Namespace::Release)
                .map_err(|source| ReleaseSignError::Signature { path: path.to_owned(), number, source })
        });
    keys.collect()
}

fn fingerprints(keys: &[OperatorKey]) -> Vec<String> {
    keys.iter().map(OperatorKey::fingerprint).collect()
}
