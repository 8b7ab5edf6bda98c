//! A signer in the form of `ssh-keygen -Y sign`, with faults.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{Signer as _, SigningKey};
use holdfast_protocol::job::SignedJob;
use sha2::{Digest as _, Sha512};

pub struct Hand(SigningKey);

fn string(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend(u32::try_from(bytes.len()).unwrap().to_be_bytes());
    out.extend(bytes);
}

/// What may be wrong about a signature.
#[derive(Clone, Copy)]
pub struct Shape {
    /// The namespace that it names.
    pub says: &'static str,
    /// The namespace it was made for.
    pub made_for: &'static str,
    /// What happens to its 64 bytes.
    pub touch: fn(&mut Vec<u8>),
    /// What happens to the whole, before the armour.
    pub whole: fn(&mut Vec<u8>),
}

pub const RIGHT: Shape =
    Shape { says: "holdfast-job", made_for: "holdfast-job", touch: |_| {}, whole: |_| {} };

impl Hand {
    pub fn new(seed: u8) -> Self {
        Self(SigningKey::from_bytes(&[seed; 32]))
    }

    fn blob(&self) -> Vec<u8> {
        let mut blob = Vec::new();
        string(&mut blob, b"ssh-ed25519");
        string(&mut blob, self.0.verifying_key().as_bytes());
        blob
    }

    /// A line of an operators file.
    pub fn line(&self, name: &str) -> String {
        format!("{name} ssh-ed25519 {}\n", STANDARD.encode(self.blob()))
    }

    pub fn sign(&self, bytes: &[u8]) -> String {
        self.shaped(bytes, RIGHT)
    }

    pub fn shaped(&self, bytes: &[u8], shape: Shape) -> String {
        armoured(&self.raw(bytes, shape))
    }

    pub fn raw(&self, bytes: &[u8], shape: Shape) -> Vec<u8> {
        let mut signed = b"SSHSIG".to_vec();
        for part in [shape.made_for.as_bytes(), b"", b"sha512", Sha512::digest(bytes).as_slice()] {
            string(&mut signed, part);
        }
        let mut inner = self.0.sign(&signed).to_bytes().to_vec();
        (shape.touch)(&mut inner);
        let mut signature = Vec::new();
        string(&mut signature, b"ssh-ed25519");
        string(&mut signature, &inner);
        let mut all = b"SSHSIG".to_vec();
        all.extend(1_u32.to_be_bytes());
        for part in [&self.blob()[..], shape.says.as_bytes(), b"", b"sha512", &signature] {
            string(&mut all, part);
        }
        (shape.whole)(&mut all);
        all
    }
}

pub fn armoured(bytes: &[u8]) -> String {
    let text = STANDARD.encode(bytes);
    let lines: Vec<&str> =
        text.as_bytes().chunks(70).map(|line| std::str::from_utf8(line).unwrap()).collect();
    format!("-----BEGIN SSH SIGNATURE-----\n{}\n-----END SSH SIGNATURE-----\n", lines.join("\n"))
}

/// A signed job, as it is left.
pub fn job(payload: &[u8], hands: &[&Hand]) -> String {
    let signatures = hands.iter().map(|hand| hand.sign(payload)).collect();
    SignedJob { payload: payload.to_vec(), signatures, consents: Vec::new() }.to_json().unwrap()
}
