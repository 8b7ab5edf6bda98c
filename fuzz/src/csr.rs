//! Fuzzed certificate requests.

#[path = "../../hubd/src/authority/csr.rs"]
#[expect(dead_code, reason = "the hub puts the key into a certificate")]
mod reader;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{Signer as _, SigningKey};
use ring::signature::{
    ECDSA_P256_SHA256_ASN1, ECDSA_P256_SHA384_ASN1, ECDSA_P384_SHA256_ASN1, ECDSA_P384_SHA384_ASN1, ED25519,
    UnparsedPublicKey, VerificationAlgorithm,
};

use reader::AgentKey;

const LABEL: &str = "CERTIFICATE REQUEST";

const SEQUENCE: u8 = 0x30;
const BITS: u8 = 0x03;

/// `id-Ed25519`, as an algorithm.
const ED25519_NAME: [u8; 7] = [SEQUENCE, 5, 6, 3, 0x2b, 0x65, 0x70];

/// One input: the text that comes over the wire, and the contents of a request: its subject and its attributes.
///
/// # Panics
/// When a rule does not hold.
pub fn target(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data) {
        taken(text);
    }
    taken(&armoured(data));
    signed(data);
}

/// An accepted request is signed by the key that it contains.
fn taken(text: &str) {
    let key = match AgentKey::from_csr(text) {
        Ok(key) => key,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let body: String = text.trim().lines().filter(|line| !line.starts_with('-')).map(str::trim).collect();
    let der = STANDARD.decode(body).expect("what was read is base64");
    let (whole, rest) = part(&der, SEQUENCE).expect("a request is a sequence");
    assert!(rest.is_empty(), "it goes on");
    let (_, after_info) = part(whole, SEQUENCE).expect("it begins with what is signed");
    let info = &whole[..whole.len() - after_info.len()];
    let (algorithm, after_algorithm) = part(after_info, SEQUENCE).expect("then by what");
    let (signature, _) = part(after_algorithm, BITS).expect("then the signature");
    let (spki, _) = part(key.der(), SEQUENCE).expect("a key is a sequence");
    let (kind, after_kind) = part(spki, SEQUENCE).expect("it says of what kind it is");
    let (point, _) = part(after_kind, BITS).expect("then which it is");
    assert!(info.windows(key.der().len()).any(|bytes| bytes == key.der()), "the key is from elsewhere");
    let by = verifier(kind, algorithm).unwrap_or_else(|| panic!("by {algorithm:x?} with {kind:x?}"));
    UnparsedPublicKey::new(by, &point[1..]).verify(info, &signature[1..]).expect("another verifier agrees");
    let again = AgentKey::from_spki(key.der().to_vec()).ok().expect("the key is taken back");
    assert!(again.hash() == key.hash() && again.fingerprint() == key.fingerprint());
}

/// Chooses the verifier by the last bytes of the kind and algorithm names. They are enough to distinguish the accepted
/// ones.
fn verifier(kind: &[u8], algorithm: &[u8]) -> Option<&'static dyn VerificationAlgorithm> {
    let (p256, p384) = (kind.ends_with(&[3, 1, 7]), kind.ends_with(&[0, 0x22]));
    let (sha256, sha384) = (algorithm.ends_with(&[4, 3, 2]), algorithm.ends_with(&[4, 3, 3]));
    Some(match (p256, p384, sha256, sha384) {
        (true, _, true, _) => &ECDSA_P256_SHA256_ASN1,
        (true, _, _, true) => &ECDSA_P256_SHA384_ASN1,
        (_, true, true, _) => &ECDSA_P384_SHA256_ASN1,
        (_, true, _, true) => &ECDSA_P384_SHA384_ASN1,
        _ if kind.ends_with(&[0x2b, 0x65, 0x70]) => &ED25519,
        _ => return None,
    })
}

/// A request that is signed as it should be, whatever it says.
fn signed(data: &[u8]) {
    let hand = SigningKey::from_bytes(&[7; 32]);
    let spki = wrapped(
        SEQUENCE,
        &[&ED25519_NAME[..], &wrapped(BITS, &[&[0], &hand.verifying_key().to_bytes()[..]].concat())].concat(),
    );
    let cut = data.first().map_or(0, |first| usize::from(*first).min(data.len()));
    let (subject, attributes) = data.split_at(cut);
    let info = wrapped(
        SEQUENCE,
        &[
            &[2, 1, 0][..],
            &wrapped(SEQUENCE, subject.get(1..).unwrap_or_default()),
            &spki,
            &wrapped(0xa0, attributes),
        ]
        .concat(),
    );
    let with = |signature: &[u8]| {
        let bits = wrapped(BITS, &[&[0], signature].concat());
        wrapped(SEQUENCE, &[&info[..], &ED25519_NAME, &bits].concat())
    };
    let mut signature = hand.sign(&info).to_bytes();
    let right = armoured(&with(&signature));
    taken(&right);
    if let Ok(key) = AgentKey::from_csr(&right) {
        assert_eq!(key.der(), spki, "another key than the one that signed");
    }
    let at = usize::from(data.last().copied().unwrap_or(0)) % signature.len();
    signature[at] ^= 1;
    assert!(AgentKey::from_csr(&armoured(&with(&signature))).is_err(), "a signature that does not fit");
}

fn armoured(der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let lines: Vec<&str> =
        text.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).expect("ASCII")).collect();
    format!("-----BEGIN {LABEL}-----\n{}\n-----END {LABEL}-----\n", lines.join("\n"))
}

/// The contents of a part of this kind, and what follows it.
fn part(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (found, rest) = bytes.split_first()?;
    let (length, rest) = rest.split_first()?;
    let (length, rest) = match length {
        0..=0x7f => (usize::from(*length), rest),
        0x81..=0x83 => {
            let (digits, rest) = rest.split_at_checked(usize::from(length & 0x0f))?;
            (digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)), rest)
        }
        _ => return None,
    };
    (*found == tag).then(|| rest.split_at_checked(length)).flatten()
}

fn wrapped(tag: u8, bytes: &[u8]) -> Vec<u8> {
    let length = bytes.len();
    let digits = length.to_be_bytes();
    let significant = &digits[digits.iter().position(|digit| *digit != 0).unwrap_or(digits.len() - 1)..];
    let mut all = vec![tag];
    if length < 0x80 {
        all.extend(significant);
    } else {
        all.push(0x80 | u8::try_from(significant.len()).expect("few"));
        all.extend(significant);
    }
    all.extend(bytes);
    all
}
