//! Tests of the acceptance of releases.

use holdfast_protocol::release::SignedRelease;

use super::{Hand, RIGHT, Shape, at};
use crate::operators::Operators;
use crate::release::{ReleaseKeys, ReleaseKeysError, ReleaseRefused};

const MANIFEST: &str = r#"{"schema":"holdfast.release/v1","version":"2026.12.1","issued_at":"2026-12-01T00:00:00Z","expires_at":"2027-03-01T00:00:00Z","files":[{"kind":"agent","name":"agentd","sha256":"7ab13e40ebc0b4aabbca0ae9b5a2b5f7dbd1f9d2c2b1a1c0d0f0e0d0c0b0a090","size_bytes":7}]}"#;

const SHAPE: Shape = Shape { namespace: "holdfast-release", signed_for: "holdfast-release", ..RIGHT };

fn keys(needed: u8) -> Result<ReleaseKeys, ReleaseKeysError> {
    let (alice, bob) = (Hand::plain(1), Hand::plain(2));
    // One person with two keys.
    let file = format!("{}\n{}\n{}", alice.line("alice"), Hand::plain(3).line("alice"), bob.line("bob"));
    ReleaseKeys::new(Operators::parse(&file).unwrap(), needed)
}

fn signed(by: &[u8]) -> SignedRelease {
    let bytes = MANIFEST.as_bytes().to_vec();
    let signatures = by.iter().map(|seed| Hand::plain(*seed).shaped(&bytes, &SHAPE)).collect();
    SignedRelease { manifest: bytes, signatures }
}

fn code(release: &SignedRelease, needed: u8, time: &str) -> Result<usize, &'static str> {
    let accepted = keys(needed).unwrap().accept(release, at(time));
    accepted.map(|accepted| accepted.signers().len()).map_err(|refused| refused.code().as_str())
}

const NOW: &str = "2026-12-02T00:00:00Z";

#[test]
fn a_release_needs_so_many_signers_and_not_keys() {
    assert_eq!(code(&signed(&[1]), 1, NOW), Ok(1));
    assert_eq!(code(&signed(&[1, 2]), 2, NOW), Ok(2));
    assert_eq!(code(&signed(&[1]), 2, NOW), Err("SIGNATURES_MISSING"));
    assert_eq!(code(&signed(&[1, 3]), 2, NOW), Err("SIGNATURES_MISSING"), "one person with two keys");
    assert_eq!(code(&signed(&[]), 1, NOW), Err("SIGNATURES_MISSING"));
    assert_eq!(code(&signed(&[1, 9]), 1, NOW), Err("KEY_UNKNOWN"), "one that is not listed spoils the rest");
    assert_eq!(keys(0), Err(ReleaseKeysError::NoSignature));
    assert_eq!(keys(3), Err(ReleaseKeysError::TooFew { needed: 3, holders: 2 }));
}

#[test]
fn a_release_is_bound_to_its_bytes_its_purpose_and_its_end() {
    let mut changed = signed(&[1]);
    changed.manifest.push(b' ');
    assert_eq!(code(&changed, 1, NOW), Err("SIGNATURE"));
    let bytes = MANIFEST.as_bytes().to_vec();
    let job = SignedRelease { signatures: vec![Hand::plain(1).sign(&bytes)], manifest: bytes };
    assert_eq!(code(&job, 1, NOW), Err("SIGNATURE"), "signed as a job");
    assert_eq!(code(&signed(&[1]), 1, "2027-02-28T23:59:59Z"), Ok(1));
    assert_eq!(code(&signed(&[1]), 1, "2027-03-01T00:00:00Z"), Err("JOB_EXPIRED"));
    // What runs already goes on.
    assert!(keys(1).unwrap().verify(&signed(&[1]), at("2029-01-01T00:00:00Z")).is_ok());
    let refused = keys(1).unwrap().accept(&signed(&[1]), at("2027-03-01T00:00:00Z")).unwrap_err();
    assert!(matches!(refused, ReleaseRefused::Expired(_)), "{refused}");
}
