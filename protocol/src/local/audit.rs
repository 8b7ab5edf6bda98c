//! Audit lines about one guest, as its guest agent reads them.
//!
//! One chain runs through the records of all guests of a host, and a guest is shown only its own. Each record comes
//! with the hash of the line before it, which may be about another guest. So the guest can compute the record's own
//! hash, and the hash reveals nothing about the other line. A guest can compare a record later with what it read
//! before, and the head with what the hub received. A record that was changed, cut or put in between does not fit any
//! more.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::audit::{AuditLine, Fields, chain, hex};
use crate::report::AuditHead;

/// Records of one page at most.
pub const RECORDS_MAX: u32 = 100;

/// `GET /v1/audit`: records about this guest, oldest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AuditPage {
    /// The records.
    pub records: Vec<AuditRecord>,
    /// `?after=` this number gives the next page; none when there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<i64>,
    /// How far the whole chain is.
    pub head: AuditHead,
}

/// One record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AuditRecord {
    /// What was written, with its number in the chain and its hash.
    pub line: AuditLine,
    /// The hash of the line before it, in hex; empty for the first line of all.
    pub before: String,
}

impl AuditRecord {
    /// Whether the record is what its hash says, behind the line whose hash comes with it.
    #[must_use]
    pub fn holds(&self) -> bool {
        let line = &self.line;
        let Some(before) = bytes(&self.before) else { return false };
        let fields = Fields {
            number: line.number,
            at_us: line.at_us,
            action: &line.action,
            guest: line.guest.as_deref(),
            operation: line.operation.as_deref(),
            detail: &line.detail,
        };
        before.is_empty() == (line.number == 1) && hex(&chain(&before, fields)) == line.chain
    }
}

/// Lower-case hex, read.
fn bytes(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let pair = |pair: &[u8]| match pair {
        [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
        _ => None,
    };
    text.as_bytes().chunks(2).map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(number: i64, before: &[u8]) -> AuditRecord {
        let fields = Fields {
            number,
            at_us: 7,
            action: "claim_minted",
            guest: Some("g"),
            operation: None,
            detail: "d",
        };
        let line = AuditLine {
            number,
            at_us: 7,
            action: "claim_minted".to_owned(),
            guest: Some("g".to_owned()),
            operation: None,
            detail: "d".to_owned(),
            chain: hex(&chain(before, fields)),
        };
        AuditRecord { line, before: hex(before) }
    }

    #[test]
    fn a_record_holds_and_nothing_about_it_can_be_changed() {
        let good = record(2, &[7; 32]);
        assert!(good.holds() && record(1, &[]).holds());
        let spoilt: [fn(&mut AuditRecord); 9] = [
            |r| r.line.number += 1,
            |r| r.line.at_us += 1,
            |r| r.line.action.push('x'),
            |r| r.line.guest = None,
            |r| r.line.operation = Some(String::new()),
            |r| r.line.detail.clear(),
            |r| r.line.chain = r.line.chain.to_uppercase(),
            |r| r.before = "08".repeat(32),
            |r| r.before = "zz".repeat(32),
        ];
        for (place, spoil) in spoilt.into_iter().enumerate() {
            let mut bad = good.clone();
            spoil(&mut bad);
            assert!(!bad.holds(), "{place}");
        }
        // Nothing precedes the first line, and something precedes every other.
        assert!(!record(2, &[]).holds() && !record(1, &[7; 32]).holds());
        assert!(!AuditRecord { before: "7".to_owned(), ..good }.holds());
    }
}
