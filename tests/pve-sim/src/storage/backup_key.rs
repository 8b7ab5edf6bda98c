//! Keys of backups.
//!
//! In: random bytes, or a key's JSON. Out: the client's one line of JSON, and the fingerprint that a key is known by. Deliberately
//! absent: passphrases (on a node a key has none), and encryption itself.
use std::iter::repeat_n;

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::clock::stamp;

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const KEY_BYTES: usize = 32;
const HASH_BLOCK_BYTES: usize = 64;
/// How often the client hashes a key to get its id.
const ID_ROUNDS: u32 = 10;

/// A new key without a passphrase: one line, and no end of line.
#[must_use]
pub fn made(raw: &[u8; KEY_BYTES], now_s: i64) -> String {
    let now = format!("{}+00:00", stamp(now_s).replace(' ', "T"));
    // Written out, because the order of the names is the client's.
    format!(
        r#"{{"kdf":null,"created":"{now}","modified":"{now}","data":"{}","fingerprint":"{}"}}"#,
        encoded(raw),
        fingerprint_of(raw)
    )
}

/// The fingerprint of a key that the client can use.
///
/// # Errors
/// Why it cannot: the key needs a passphrase and no operator can enter one, or the key's data does not match the fingerprint
/// that it states. When the data does not decode to a key here, the stated fingerprint is used.
pub fn fingerprint(key: &Value) -> Result<String, String> {
    if key.get("kdf").is_some_and(|kdf| !kdf.is_null()) {
        return Err("no password input mechanism available".to_owned());
    }
    let raw = key.get("data").and_then(Value::as_str).and_then(decoded);
    let held = raw.filter(|raw| raw.len() == KEY_BYTES).map(|raw| fingerprint_of(&raw));
    let says = key.get("fingerprint").and_then(Value::as_str).map(str::to_owned);
    match (says, held) {
        (Some(says), Some(held)) if says != held => Err(format!(
            "KeyConfig contains wrong fingerprint {}, contained key has fingerprint {}",
            short(&says),
            short(&held)
        )),
        (says, held) => Ok(held.or(says).unwrap_or_default()),
    }
}

/// As messages show a fingerprint: its first eight bytes.
#[must_use]
pub fn short(fingerprint: &str) -> &str {
    fingerprint.get(..23).unwrap_or(fingerprint)
}

fn fingerprint_of(raw: &[u8]) -> String {
    let mut hash = Sha256::new();
    hash.update(Sha256::digest("Proxmox Backup Encryption Key Fingerprint"));
    hash.update(stretched(raw, b"_id_key"));
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":")
}

/// PBKDF2 with HMAC-SHA256, one block.
fn stretched(secret: &[u8], salt: &[u8]) -> Vec<u8> {
    let mut round = hmac(secret, &[salt, &1_u32.to_be_bytes()].concat());
    let mut sum = round.clone();
    for _ in 1..ID_ROUNDS {
        round = hmac(secret, &round);
        sum.iter_mut().zip(&round).for_each(|(held, byte)| *held ^= byte);
    }
    sum
}

/// For secrets that are no longer than one block of the hash.
fn hmac(secret: &[u8], text: &[u8]) -> Vec<u8> {
    let padded = |mask: u8| -> Vec<u8> {
        let bytes = secret.iter().copied().chain(repeat_n(0, HASH_BLOCK_BYTES.saturating_sub(secret.len())));
        bytes.map(|byte| byte ^ mask).collect()
    };
    let inner = Sha256::digest([padded(0x36), text.to_vec()].concat());
    Sha256::digest([padded(0x5c), inner.to_vec()].concat()).to_vec()
}

fn encoded(bytes: &[u8]) -> String {
    let mut out = String::new();
    for part in bytes.chunks(3) {
        let word = part
            .iter()
            .chain(repeat_n(&0, 3 - part.len()))
            .fold(0_u32, |word, byte| word << 8 | u32::from(*byte));
        for at in 0..4 {
            let letter = LETTERS.get((word >> (18 - 6 * at)) as usize & 63).copied().unwrap_or_default();
            out.push(if at > part.len() { '=' } else { char::from(letter) });
        }
    }
    out
}

fn decoded(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    for part in text.trim_end_matches('=').as_bytes().chunks(4) {
        let mut word = 0_u32;
        for letter in part {
            let value = LETTERS.iter().position(|held| held == letter)?;
            word = word << 6 | u32::try_from(value).ok()?;
        }
        let word = word << (6 * (4 - part.len()));
        out.extend(word.to_be_bytes().into_iter().skip(1).take(part.len() * 6 / 8));
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Made by the genuine client.
    const GENUINE: &str = r#"{"kdf":null,"created":"2026-11-21T04:10:22+00:00","modified":"2026-11-21T04:10:22+00:00","data":"1mvQQrO1g3zbE8Dg8J6CUTLhMFJ85Rx2DBn3UAegOtM=","fingerprint":"52:28:ea:c0:39:82:5d:0f:3d:58:b1:d6:66:8a:82:b1:e0:1d:42:8d:8c:6e:3d:87:c5:20:2a:a4:60:63:73:dd"}"#;

    #[test]
    fn a_genuine_key_is_made_again_and_known_by_what_it_holds() {
        let key: Value = serde_json::from_str(GENUINE).expect("JSON");
        let raw = decoded(key["data"].as_str().expect("data")).expect("base64");
        let raw: [u8; KEY_BYTES] = raw.try_into().expect("32 bytes");
        assert_eq!(made(&raw, 1_795_234_222), GENUINE);
        let bare = json!({ "kdf": null, "data": key["data"] });
        let own = key["fingerprint"].as_str().expect("a fingerprint");
        assert_eq!((fingerprint(&bare), fingerprint(&key)), (Ok(own.to_owned()), Ok(own.to_owned())));
        let other = json!({ "kdf": null, "data": key["data"], "fingerprint": own.replace("52:28", "00:28") });
        let why = fingerprint(&other).expect_err("another key");
        assert_eq!(
            why,
            "KeyConfig contains wrong fingerprint 00:28:ea:c0:39:82:5d:0f, contained key has fingerprint 52:28:ea:c0:39:82:5d:0f"
        );
        let closed = json!({ "kdf": { "Scrypt": {} }, "data": key["data"], "fingerprint": own });
        assert_eq!(fingerprint(&closed).expect_err("closed"), "no password input mechanism available");
    }

    #[test]
    fn letters_go_there_and_back() {
        for text in ["", "a", "ab", "abc", "abcd"] {
            assert_eq!(decoded(&encoded(text.as_bytes())).as_deref(), Some(text.as_bytes()));
        }
        assert_eq!(decoded("a<"), None);
    }
}
