//! Fuzzed audit exports.

use holdfast_protocol::audit::{AuditLine, ExportHeader, ExportSchema, VerifiedChain, Verifier, verify};
use sha2::{Digest, Sha256};

use crate::signer::changed;

/// One input: taken as an export, and as the lines of one with changes of it.
///
/// # Panics
/// When a rule does not hold.
pub fn target(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data) {
        whole(text);
    }
    let Some((cut, rest)) = data.split_first() else { return };
    let (fields, changes) = rest.split_at(usize::from(*cut).min(rest.len()));
    let lines = lines(fields);
    let text = export(&lines);
    let head = lines.last().map(|line| line.chain.clone()).unwrap_or_default();
    let count = lines.len() as u64;
    assert_eq!(
        verify(&text, Verifier::default()).expect("a whole chain"),
        VerifiedChain { missing: 0, lines: count, head: head.clone() }
    );
    verify(&text, Verifier::with_head(count, head.clone())).expect("the head that was seen");
    if count > 0 {
        assert!(verify(&text, Verifier::with_head(count + 1, head.clone())).is_err(), "a cut end holds");
        assert!(verify(&text, Verifier::with_head(count, "0".repeat(64))).is_err(), "another history holds");
    }
    let bytes = changed(text.as_bytes(), changes);
    let Ok(other) = std::str::from_utf8(&bytes) else { return };
    if verify(other, Verifier::with_head(count, head)).is_ok() {
        // Spaces between words are not part of a line; everything else is. Lines after the known ones may be new.
        assert_eq!(read(other).get(..lines.len()), Some(&lines[..]), "a changed line holds");
    }
}

/// Whatever holds is a chain.
fn whole(text: &str) {
    let Ok(VerifiedChain { missing, lines: count, head }) = verify(text, Verifier::default()) else { return };
    let lines = read(text);
    assert_eq!(missing + lines.len() as u64, count);
    let header = text.lines().next().unwrap_or_default();
    let header: ExportHeader = serde_json::from_str(header).expect("a header");
    let mut before = header.after.map(|link| bytes_of(&link.chain)).unwrap_or_default();
    for (number, line) in (1 + missing as i64..).zip(&lines) {
        assert_eq!(line.number, number);
        before = hash(&before, line);
        assert_eq!(line.chain, hex(&before));
    }
    assert_eq!(hex(&before), head);
}

fn bytes_of(hex: &str) -> Vec<u8> {
    (0..hex.len() / 2).map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).expect("hex")).collect()
}

fn read(text: &str) -> Vec<AuditLine> {
    text.lines().skip(1).map(|line| serde_json::from_str(line).expect("a line")).collect()
}

/// Lines out of a fuzzer's bytes: each byte a choice, the rest of it text.
fn lines(fields: &[u8]) -> Vec<AuditLine> {
    let mut before = Vec::new();
    let mut lines = Vec::new();
    for (number, field) in (1_i64..).zip(fields.split(|byte| *byte == b'|').take(16)) {
        let text = String::from_utf8_lossy(field).into_owned();
        let choice = field.first().copied().unwrap_or_default();
        let mut line = AuditLine {
            number,
            at_us: i64::from(choice) - 100,
            action: text.chars().rev().collect(),
            guest: (choice % 2 == 0).then(|| text.clone()),
            operation: (choice % 3 == 0).then(String::new),
            detail: text,
            chain: String::new(),
        };
        before = hash(&before, &line);
        line.chain = hex(&before);
        lines.push(line);
    }
    lines
}

fn export(lines: &[AuditLine]) -> String {
    let header = ExportHeader { schema: ExportSchema::V1, lines: lines.len() as u64, after: None };
    let mut text = serde_json::to_string(&header).expect("a header");
    for line in lines {
        text.push('\n');
        text.push_str(&serde_json::to_string(line).expect("a line"));
    }
    text
}

/// The chain's rules, written out a second time.
fn hash(before: &[u8], line: &AuditLine) -> Vec<u8> {
    let mut all: Vec<u8> = Vec::new();
    let guest = line.guest.clone().unwrap_or_default();
    let operation = line.operation.clone().unwrap_or_default();
    let fields: [&[u8]; 9] = [
        before,
        &line.number.to_be_bytes(),
        &line.at_us.to_be_bytes(),
        line.action.as_bytes(),
        &[u8::from(line.guest.is_some())],
        guest.as_bytes(),
        &[u8::from(line.operation.is_some())],
        operation.as_bytes(),
        line.detail.as_bytes(),
    ];
    for field in fields {
        all.extend((field.len() as u64).to_be_bytes());
        all.extend(field);
    }
    Sha256::digest(&all).to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
