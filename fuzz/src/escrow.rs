//! Fuzzed escrow files.

use std::sync::LazyLock;

use holdfast_protocol::json;
use holdfast_recovery::escrow::{Escrow, EscrowFile, FILE_BYTES_MAX, PLAIN_BYTES_MAX};
use regex::bytes::Regex;

/// One passphrase and no other reader, by another reading.
static HEADER: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new("^(?-u)age-encryption\\.org/v1\n-> scrypt [^ \n]* (1[6-9]|20)\n[^\n]*\n--- ")
        .expect("it is one")
});

/// One input: a file, or the contents of one.
///
/// # Panics
/// When a rule does not hold.
pub fn target(data: &[u8]) {
    match EscrowFile::parse(data) {
        Ok(file) => {
            let text = file.to_text();
            assert!(text.len() <= FILE_BYTES_MAX, "it grew");
            assert!(EscrowFile::parse(text.as_bytes()).expect("its own text") == file);
            assert!(HEADER.is_match(&decoded(&text)), "another reader, or other work");
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    if let Ok(escrow) = json::parse::<Escrow>("the escrow", data, PLAIN_BYTES_MAX) {
        let written = serde_json::to_string(&escrow).expect("plain text");
        let again: Escrow =
            json::parse("the escrow", written.as_bytes(), 2 * PLAIN_BYTES_MAX).expect("its own");
        assert!(again.record() == escrow.record());
        assert_eq!(serde_json::to_string(&again).expect("plain text"), written);
    }
}

fn decoded(text: &str) -> Vec<u8> {
    use base64::Engine as _;
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('-')).collect();
    base64::engine::general_purpose::STANDARD.decode(lines.concat()).expect("it was read before")
}
