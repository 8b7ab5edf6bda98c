//! Tests of handmade ECDSA signatures of hardware keys.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use sha2::{Digest, Sha256, Sha512};

use super::{PAYLOAD, armoured, string};
use crate::operators::Operators;
use crate::signature::{self, Namespace, SignatureError};

const KIND: &[u8] = b"sk-ecdsa-sha2-nistp256@openssh.com";

struct Token(EcdsaKeyPair);

impl Token {
    fn new() -> Self {
        let made =
            EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new()).unwrap();
        let key =
            EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, made.as_ref(), &SystemRandom::new());
        Self(key.unwrap())
    }

    fn blob(&self) -> Vec<u8> {
        let mut blob = Vec::new();
        for part in [KIND, b"nistp256", self.0.public_key().as_ref(), b"ssh:"] {
            string(&mut blob, part);
        }
        blob
    }

    /// Both numbers of a signature over the payload, 32 bytes each.
    fn numbers(&self, flags: u8) -> ([u8; 32], [u8; 32]) {
        let mut signed = b"SSHSIG".to_vec();
        for part in [&b"holdfast-job"[..], b"", b"sha512", Sha512::digest(PAYLOAD).as_slice()] {
            string(&mut signed, part);
        }
        let message = [&Sha256::digest("ssh:")[..], &[flags, 0, 0, 0, 7], &Sha256::digest(&signed)].concat();
        let both = self.0.sign(&SystemRandom::new(), &message).unwrap();
        let (r, s) = both.as_ref().split_at(32);
        (r.try_into().unwrap(), s.try_into().unwrap())
    }

    /// A signature whose inner part is these bytes.
    fn around(&self, inner: &[u8], flags: u8) -> String {
        let mut signature = Vec::new();
        string(&mut signature, KIND);
        string(&mut signature, inner);
        signature.extend([flags, 0, 0, 0, 7]);
        let mut all = b"SSHSIG\0\0\0\x01".to_vec();
        for part in [&self.blob()[..], b"holdfast-job", b"", b"sha512", &signature] {
            string(&mut all, part);
        }
        armoured(&all)
    }
}

/// As OpenSSH writes a number: no needless zero before it, and one where it would be negative.
fn plain(number: &[u8]) -> Vec<u8> {
    let start = number.iter().position(|byte| *byte != 0).unwrap();
    let mut digits = number[start..].to_vec();
    if digits[0] >= 0x80 {
        digits.insert(0, 0);
    }
    digits
}

fn pair(r: &[u8], s: &[u8]) -> Vec<u8> {
    let mut inner = Vec::new();
    string(&mut inner, r);
    string(&mut inner, s);
    inner
}

fn check(text: &str) -> Result<String, SignatureError> {
    signature::check(PAYLOAD.as_bytes(), text, Namespace::Job).map(|key| key.fingerprint())
}

/// Until numbers with and without a leading zero, and short ones, were among them; of 256 one is short.
#[test]
fn a_touched_token_signs_whatever_its_numbers_look_like() {
    let token = Token::new();
    let line = format!("alice sk-ecdsa-sha2-nistp256@openssh.com {}", STANDARD.encode(token.blob()));
    let operators = Operators::parse(&line).unwrap();
    let (_, print) = operators.holders().next().unwrap();
    let (mut high, mut low, mut short) = (0, 0, 0);
    for _ in 0..20_000 {
        let (r, s) = token.numbers(1);
        assert_eq!(check(&token.around(&pair(&plain(&r), &plain(&s)), 1)).unwrap(), print);
        high += usize::from(r[0] >= 0x80);
        low += usize::from(r[0] < 0x80);
        short += usize::from(r[0] == 0 || s[0] == 0);
        if high > 0 && low > 0 && short > 0 {
            break;
        }
    }
    assert!(high > 0 && low > 0 && short > 0, "{high} {low} {short}");
    let (r, s) = token.numbers(0);
    assert!(matches!(check(&token.around(&pair(&plain(&r), &plain(&s)), 0)), Err(SignatureError::Untouched)));
    // The token signed that no person touched it; claiming otherwise does not help.
    assert!(matches!(check(&token.around(&pair(&plain(&r), &plain(&s)), 1)), Err(SignatureError::Mismatch)));
}

#[test]
fn each_number_has_one_spelling() {
    let token = Token::new();
    let (r, s) = token.numbers(1);
    let (r, s) = (plain(&r), plain(&s));
    let zero = |number: &[u8]| [&[0], number].concat();
    let wide = |number: &[u8]| [&[1], &[0; 32][..], number].concat();
    let cut = |number: &[u8]| number[..number.len() - 1].to_vec();
    let mut longer = pair(&r, &s);
    longer.push(0);
    let mut lengths = pair(&r, &s);
    lengths[0] = 0xff;
    let inner = [
        longer,
        lengths,
        pair(&zero(&r), &s),
        pair(&r, &zero(&s)),
        pair(&wide(&r), &s),
        pair(&cut(&r), &s),
        pair(&r, &cut(&s)),
        pair(&s, &r),
        pair(&[], &s),
        pair(&r, &[]),
        pair(&[0], &[0]),
        pair(&[0xff; 32], &s),
        r.clone(),
        Vec::new(),
    ];
    for (number, inner) in inner.iter().enumerate() {
        assert!(check(&token.around(inner, 1)).is_err(), "case {number}");
    }
    assert!(check(&token.around(&pair(&r, &s), 1)).is_ok());
}
