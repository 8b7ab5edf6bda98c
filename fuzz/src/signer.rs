//! A second implementation of OpenSSH's signature format.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{Signer as _, SigningKey};
use holdfast_protocol::job::SignedJob;
use sha2::{Digest, Sha512};

/// A payload that a person might sign.
pub const PAYLOAD: &str = r#"{"schema":"holdfast.job/v1","job_id":"01906f3c-6b1f-7c1d-9d0a-2f6d1c0b7a01","host_id":"01906f3c-6b1f-7c1d-9d0a-2f6d1c0b7a02","host_epoch":1,"host":{"name":"box7","fingerprint":"4f2a-9c01-77de-b3a8-0c11"},"target":{"kind":"guest","uid":"01906f3c-6b1f-7c1d-9d0a-2f6d1c0b7a03","vmid":300,"fingerprint":{"name":"web-1","customer":"acme","volumes":["tank:300/vm-300-disk-0.raw"]}},"verb":"destroy_guest","args":{},"not_before":"2026-11-21T14:00:00Z","expires_at":"2026-11-21T15:00:00Z","nonce":"00112233445566778899aabbccddeeff","reason":"the customer left"}"#;

/// A person with a key.
pub struct Signer(SigningKey);

fn string(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend(u32::try_from(bytes.len()).expect("short").to_be_bytes());
    out.extend(bytes);
}

impl Signer {
    /// By a number, so that each run has the same.
    #[must_use]
    pub fn new(seed: u8) -> Self {
        Self(SigningKey::from_bytes(&[seed; 32]))
    }

    fn key(&self) -> Vec<u8> {
        let mut blob = Vec::new();
        string(&mut blob, b"ssh-ed25519");
        string(&mut blob, self.0.verifying_key().as_bytes());
        blob
    }

    /// A line of an operators file.
    #[must_use]
    pub fn line(&self, name: &str) -> String {
        format!("{name} ssh-ed25519 {}", STANDARD.encode(self.key()))
    }

    /// The signature over bytes, not armoured.
    #[must_use]
    pub fn blob(&self, bytes: &[u8]) -> Vec<u8> {
        let mut signed = b"SSHSIG".to_vec();
        for part in [&b"holdfast-job"[..], b"", b"sha512", Sha512::digest(bytes).as_slice()] {
            string(&mut signed, part);
        }
        let mut signature = Vec::new();
        string(&mut signature, b"ssh-ed25519");
        string(&mut signature, &self.0.sign(&signed).to_bytes());
        let mut all = b"SSHSIG\0\0\0\x01".to_vec();
        for part in [&self.key()[..], b"holdfast-job", b"", b"sha512", &signature] {
            string(&mut all, part);
        }
        all
    }

    /// A signed job.
    #[must_use]
    pub fn job(&self, payload: &[u8]) -> SignedJob {
        SignedJob {
            payload: payload.to_vec(),
            signatures: vec![armoured(&self.blob(payload))],
            consents: Vec::new(),
        }
    }
}

/// As it travels.
#[must_use]
pub fn armoured(bytes: &[u8]) -> String {
    let text = STANDARD.encode(bytes);
    let mut out = String::from("-----BEGIN SSH SIGNATURE-----\n");
    for line in text.as_bytes().chunks(70) {
        out.extend(line.iter().map(|byte| char::from(*byte)));
        out.push('\n');
    }
    out + "-----END SSH SIGNATURE-----\n"
}

/// Bytes with the changes that a fuzzer chooses: position, kind of change, new bytes.
#[must_use]
pub fn changed(good: &[u8], changes: &[u8]) -> Vec<u8> {
    let mut bytes = good.to_vec();
    for change in changes.chunks_exact(4) {
        let &[high, low, how, with] = change else { continue };
        let place = usize::from(u16::from_be_bytes([high, low])) % (bytes.len() + 1);
        match how % 4 {
            0 => bytes.insert(place, with),
            1 if place < bytes.len() => drop(bytes.remove(place)),
            2 => bytes.truncate(place),
            _ => {
                if let Some(byte) = bytes.get_mut(place) {
                    *byte = with;
                }
            }
        }
    }
    bytes
}
