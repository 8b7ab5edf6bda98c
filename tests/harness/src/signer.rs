//! Operators with keys, and their signatures.
//!
//! In: the bytes of a payload. Out: a signed job as it travels. The signatures are made here, byte by byte after OpenSSH's
//! `PROTOCOL.sshsig`, and not by the code that checks them. Deliberately absent: hardware keys (`holdfast-trust` tests those).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{Signer as _, SigningKey};
use holdfast_protocol::job::{Payload, SignedJob};
use sha2::{Digest, Sha512};

/// The namespace of jobs.
const NAMESPACE: &str = "holdfast-job";
/// The kind of key.
const KIND: &str = "ssh-ed25519";
/// A line of the armour.
const LINE: usize = 70;

#[derive(Clone, Debug)]
pub struct Signer {
    name: &'static str,
    key: SigningKey,
}

fn field(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend(u32::try_from(bytes.len()).unwrap().to_be_bytes());
    out.extend(bytes);
}

impl Signer {
    /// An operator, whose key depends only on this number.
    #[must_use]
    pub fn of(name: &'static str, number: u8) -> Self {
        Self { name, key: SigningKey::from_bytes(&[number; 32]) }
    }

    fn public(&self) -> Vec<u8> {
        let mut blob = Vec::new();
        field(&mut blob, KIND.as_bytes());
        field(&mut blob, self.key.verifying_key().as_bytes());
        blob
    }

    /// The line in the operators file, with options such as `valid-before="20200101Z"`.
    #[must_use]
    pub fn line(&self, options: &str) -> String {
        let gap = if options.is_empty() { "" } else { " " };
        format!("{}{gap}{options} {KIND} {}\n", self.name, STANDARD.encode(self.public()))
    }

    /// A signature over bytes for jobs.
    #[must_use]
    pub fn sign(&self, bytes: &[u8]) -> String {
        self.sign_for(bytes, NAMESPACE)
    }

    /// A signature over bytes for something.
    #[must_use]
    pub fn sign_for(&self, bytes: &[u8], namespace: &str) -> String {
        let digest = Sha512::digest(bytes);
        let mut signed = b"SSHSIG".to_vec();
        for part in [namespace.as_bytes(), b"", b"sha512", &digest] {
            field(&mut signed, part);
        }
        let mut signature = Vec::new();
        field(&mut signature, KIND.as_bytes());
        field(&mut signature, &self.key.sign(&signed).to_bytes());
        let mut all = b"SSHSIG".to_vec();
        all.extend(1_u32.to_be_bytes());
        for part in [&self.public()[..], namespace.as_bytes(), b"", b"sha512", &signature] {
            field(&mut all, part);
        }
        armoured(&all)
    }
}

fn armoured(bytes: &[u8]) -> String {
    let text = STANDARD.encode(bytes);
    let lines: Vec<&str> =
        text.as_bytes().chunks(LINE).map(|line| std::str::from_utf8(line).unwrap()).collect();
    format!("-----BEGIN SSH SIGNATURE-----\n{}\n-----END SSH SIGNATURE-----\n", lines.join("\n"))
}

/// A payload signed by these, as it travels.
#[must_use]
pub fn signed(payload: &Payload, signers: &[&Signer]) -> String {
    let payload = payload.to_json().unwrap().into_bytes();
    let signatures = signers.iter().map(|signer| signer.sign(&payload)).collect();
    SignedJob { payload, signatures, consents: Vec::new() }.to_json().unwrap()
}

#[cfg(test)]
mod tests {
    use holdfast_trust::signature::{Namespace, check};

    use super::*;

    #[test]
    fn what_is_signed_here_is_taken_there() {
        let signer = Signer::of("ada", 1);
        let key = check(b"bytes", &signer.sign(b"bytes"), Namespace::Job).unwrap();
        let operators = holdfast_trust::Operators::parse(&signer.line("")).unwrap();
        assert_eq!(operators.holders().next().unwrap().1, key.fingerprint());
        assert!(check(b"bytes", &signer.sign_for(b"bytes", "file"), Namespace::Job).is_err());
    }
}
