//! Fuzzed manifests of releases, and signed releases around them.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use holdfast_protocol::release::{
    MANIFEST_BYTES_MAX, RELEASE_FILE_BYTES_MAX, RELEASE_FILES_MAX, RELEASE_SIGNATURES_MAX, ReleaseManifest,
    SIGNED_RELEASE_BYTES_MAX, SignedRelease, VersionNumber,
};

use crate::round::Unique;

/// One input: read as a manifest, as a signed release, put into one, and read as a version.
///
/// # Panics
/// When a rule does not hold.
pub fn target(data: &[u8]) {
    manifest(data);
    signed(data);
    let carried = SignedRelease { manifest: data.to_vec(), signatures: vec!["one".to_owned()] };
    let text = carried.to_json().expect("it can be written");
    match SignedRelease::parse(text.as_bytes()) {
        Ok(again) => assert_eq!(again, carried, "the signed bytes travel unchanged"),
        Err(error) => assert!(text.len() > SIGNED_RELEASE_BYTES_MAX, "{error}"),
    }
    if let Ok(text) = std::str::from_utf8(data)
        && let Ok(version) = text.parse::<VersionNumber>()
    {
        assert_eq!(version.to_string(), text, "a version has one spelling");
    }
}

fn manifest(data: &[u8]) {
    let manifest = match ReleaseManifest::parse(data) {
        Ok(manifest) => manifest,
        Err(error) => return assert!(!error.code().as_str().is_empty() && !error.to_string().is_empty()),
    };
    assert!(data.len() <= MANIFEST_BYTES_MAX);
    assert!(serde_json::from_slice::<Unique>(data).is_ok(), "a key stands twice");
    assert!((1..=RELEASE_FILES_MAX).contains(&manifest.files.len()));
    assert!(manifest.issued_at < manifest.expires_at, "it ends before it begins");
    let names: BTreeSet<&str> = manifest.files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(names.len(), manifest.files.len(), "a name stands twice");
    for file in &manifest.files {
        let name = file.name.as_str();
        assert!(!name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\\', '\0']), "{name:?}");
        assert!((1..=RELEASE_FILE_BYTES_MAX).contains(&file.size_bytes));
        let of_kind = manifest.files.iter().filter(|other| other.kind == file.kind).count();
        assert_eq!(manifest.only(file.kind).is_some(), of_kind == 1, "one of several is chosen");
    }
    let text = manifest.to_json().expect("it can be written");
    match ReleaseManifest::parse(text.as_bytes()) {
        Ok(again) => assert_eq!(again, manifest),
        // Written with spaces it is longer than what was read.
        Err(error) => assert!(text.len() > MANIFEST_BYTES_MAX, "{error}"),
    }
}

fn signed(data: &[u8]) {
    let release = match SignedRelease::parse(data) {
        Ok(release) => release,
        Err(error) => return assert!(!error.code().as_str().is_empty() && !error.to_string().is_empty()),
    };
    assert!(serde_json::from_slice::<Unique>(data).is_ok(), "a key stands twice");
    assert!((1..=RELEASE_SIGNATURES_MAX).contains(&release.signatures.len()));
    let value: serde_json::Value = serde_json::from_slice(data).expect("JSON");
    let text = STANDARD.encode(&release.manifest);
    assert_eq!(value.get("manifest").and_then(|text| text.as_str()), Some(text.as_str()), "one spelling");
    let again = SignedRelease::parse(release.to_json().expect("it can be written").as_bytes());
    assert_eq!(again.expect("and read"), release);
}
