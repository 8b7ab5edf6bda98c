//! OpenSSH's armour of a signature, written out again.
//!
//! The parser overlooks lengths within a signature that do not agree, and more; so what it read is written again and must
//! be what came. It is written here because the parser's own writer puts flags and counter of an ECDSA hardware key where
//! OpenSSH does not.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ssh_key::{Algorithm, PublicKey, SshSig};

/// OpenSSH breaks its lines there.
const LINE_CHARS: usize = 70;

/// Flags and counter of a hardware key.
const TRAILER_BYTES: usize = 5;

/// The whole armour, with a newline at its end. None when it has parts that cannot be written.
pub(crate) fn written(signature: &SshSig) -> Option<String> {
    let mut inner = Vec::new();
    string(&mut inner, signature.algorithm().as_str().as_bytes())?;
    let blob = signature.signature_bytes();
    let trailer = match signature.algorithm() {
        Algorithm::SkEd25519 | Algorithm::SkEcdsaSha2NistP256 => TRAILER_BYTES,
        _ => 0,
    };
    let (number, trailer) = blob.split_at_checked(blob.len().checked_sub(trailer)?)?;
    string(&mut inner, number)?;
    inner.extend(trailer);
    let mut all = b"SSHSIG".to_vec();
    all.extend(SshSig::VERSION.to_be_bytes());
    string(&mut all, &PublicKey::from(signature.public_key().clone()).to_bytes().ok()?)?;
    for part in [signature.namespace(), "", signature.hash_alg().as_str()] {
        string(&mut all, part.as_bytes())?;
    }
    string(&mut all, &inner)?;
    let mut text = String::from("-----BEGIN SSH SIGNATURE-----\n");
    let encoded = STANDARD.encode(&all);
    let mut rest = encoded.as_str();
    while !rest.is_empty() {
        let (line, more) = rest.split_at_checked(LINE_CHARS).unwrap_or((rest, ""));
        text.push_str(line);
        text.push('\n');
        rest = more;
    }
    text.push_str("-----END SSH SIGNATURE-----\n");
    Some(text)
}

fn string(out: &mut Vec<u8>, bytes: &[u8]) -> Option<()> {
    out.extend(u32::try_from(bytes.len()).ok()?.to_be_bytes());
    out.extend(bytes);
    Some(())
}
