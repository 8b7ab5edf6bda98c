//! Audit lines of a host, chained by hashes.
//!
//! What comes in: lines. What goes out: the hash of each, or the first line that does not hold. Each hash covers the
//! one before, the line's number, its time and every field with its length in front. So no line can be cut out, changed
//! or re-split unseen. A reader that knows a later head detects a cut tail: the head is in every report. An exported
//! file has the same form: one JSON object a line, a header first.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::json::{self, JsonError};

/// A line of an export is at most this long.
pub const LINE_BYTES_MAX: usize = 256 * 1024;

/// One line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AuditLine {
    /// Its number, from 1, without gaps.
    pub number: i64,
    /// When, in microseconds since 1970.
    pub at_us: i64,
    /// What.
    pub action: String,
    /// About which guest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guest: Option<String>,
    /// In which operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// More of it.
    pub detail: String,
    /// Its hash, in hex.
    pub chain: String,
}

/// The first line of an export.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExportHeader {
    /// What follows.
    pub schema: ExportSchema,
    /// How many lines follow.
    pub lines: u64,
    /// The line behind which they begin, where earlier ones are not in this file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Link>,
}

/// One line of a chain, by its number and hash: what follows begins behind it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Its number, from 1.
    pub number: u64,
    /// Its hash, in hex.
    pub chain: String,
}

/// The schema of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ExportSchema {
    /// The first.
    #[serde(rename = "holdfast.audit/v1")]
    V1,
}

/// The fields of a line that its hash covers.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    /// Its number.
    pub number: i64,
    /// When, in microseconds since 1970.
    pub at_us: i64,
    /// What.
    pub action: &'a str,
    /// About which guest.
    pub guest: Option<&'a str>,
    /// In which operation.
    pub operation: Option<&'a str>,
    /// More of it.
    pub detail: &'a str,
}

/// The hash of a line after the one before it; nothing precedes the first.
#[must_use]
pub fn chain(before: &[u8], line: Fields<'_>) -> [u8; 32] {
    let mut hash = Sha256::new();
    let mut field = |bytes: &[u8]| {
        hash.update((bytes.len() as u64).to_be_bytes());
        hash.update(bytes);
    };
    field(before);
    field(&line.number.to_be_bytes());
    field(&line.at_us.to_be_bytes());
    field(line.action.as_bytes());
    for text in [line.guest, line.operation] {
        // Absent and empty are not the same.
        field(&[u8::from(text.is_some())]);
        field(text.unwrap_or_default().as_bytes());
    }
    field(line.detail.as_bytes());
    hash.finalize().into()
}

/// Where a chain does not hold.
#[derive(Debug, thiserror::Error)]
pub enum ChainError {
    /// A line is missing, or was changed.
    #[error(
        "the audit does not hold at line {number}: it was cut or changed; keep the file and look who could write it"
    )]
    Broken {
        /// The first line that does not hold.
        number: u64,
    },
    /// Lines are missing at its end.
    #[error("the audit ends at line {found}, and line {wanted} was seen before: its end was cut off")]
    Short {
        /// Where it ends.
        found: u64,
        /// How far it was.
        wanted: u64,
    },
    /// Another history.
    #[error("line {number} is not the one that was seen before: this is another history")]
    Other {
        /// Which line.
        number: u64,
    },
    /// The line that was seen before is not in the file.
    #[error(
        "line {number} was seen before, and the file begins behind line {after}: verify an export that has it"
    )]
    Unseen {
        /// The line that was seen.
        number: u64,
        /// The line behind which the file begins.
        after: u64,
    },
    /// Not an export.
    #[error("line {number} of the file cannot be read")]
    Form {
        /// Which line of the file, from 1.
        number: u64,
        /// Why.
        #[source]
        source: JsonError,
    },
}

/// Holds lines to their hashes, one after the other.
#[derive(Clone, Debug, Default)]
pub struct Verifier {
    number: u64,
    before: Vec<u8>,
    /// Hashes that were seen before, by their lines.
    seen: BTreeMap<u64, String>,
}

impl Verifier {
    /// For a chain of which this line's hash was seen before; number 0 for one of which none was.
    #[must_use]
    pub fn with_head(number: u64, chain: String) -> Self {
        Self::with_heads([(number, chain)])
    }

    /// For a chain of which the hashes of these lines were seen before.
    #[must_use]
    pub fn with_heads(seen: impl IntoIterator<Item = (u64, String)>) -> Self {
        Self { seen: seen.into_iter().collect(), ..Self::default() }
    }

    /// Whether another hash of a line was seen before.
    fn contradicts(&self, number: u64, chain: &str) -> bool {
        number > 0 && self.seen.get(&number).is_some_and(|seen| seen != chain)
    }

    /// Begins behind a line, where earlier ones were removed. That line is believed as it is given.
    ///
    /// # Errors
    /// [`ChainError`]: its hash is none, or it is not the line that was seen before.
    pub fn begin_after(&mut self, link: &Link) -> Result<(), ChainError> {
        let broken = ChainError::Broken { number: link.number };
        if self.contradicts(link.number, &link.chain) {
            return Err(ChainError::Other { number: link.number });
        }
        // Of several the newest must be in the file: without it nothing shows how far the chain was.
        if let Some(newest) = self.seen.keys().next_back().filter(|newest| (1..link.number).contains(*newest))
        {
            return Err(ChainError::Unseen { number: *newest, after: link.number });
        }
        self.before = unhex(&link.chain).ok_or(broken)?;
        self.number = link.number;
        Ok(())
    }

    /// The next line.
    ///
    /// # Errors
    /// [`ChainError`].
    pub fn line(&mut self, line: &AuditLine) -> Result<(), ChainError> {
        self.number += 1;
        let fields = Fields {
            number: line.number,
            at_us: line.at_us,
            action: &line.action,
            guest: line.guest.as_deref(),
            operation: line.operation.as_deref(),
            detail: &line.detail,
        };
        let hash = chain(&self.before, fields);
        let in_order = u64::try_from(line.number) == Ok(self.number);
        if !in_order || hex(&hash) != line.chain {
            return Err(ChainError::Broken { number: self.number });
        }
        if self.contradicts(self.number, &line.chain) {
            return Err(ChainError::Other { number: self.number });
        }
        self.before = hash.to_vec();
        Ok(())
    }

    /// The end: how many lines there were, and the last one's hash.
    ///
    /// # Errors
    /// [`ChainError::Short`].
    pub fn end(self) -> Result<(u64, String), ChainError> {
        match self.seen.keys().next_back() {
            Some(wanted) if *wanted > self.number => {
                Err(ChainError::Short { found: self.number, wanted: *wanted })
            }
            _ => Ok((self.number, hex(&self.before))),
        }
    }
}

/// A chain that holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedChain {
    /// So many lines at its beginning are not there: they were removed, or are in another file.
    pub missing: u64,
    /// The number of its last line.
    pub lines: u64,
    /// The last line's hash, in hex.
    pub head: String,
}

/// Holds an exported text to its hashes.
///
/// # Errors
/// [`ChainError`], with the first line that does not hold.
pub fn verify(text: &str, mut verifier: Verifier) -> Result<VerifiedChain, ChainError> {
    let mut lines = (1_u64..).zip(text.lines());
    let header = lines.next().map_or("", |(_, line)| line);
    let header: ExportHeader = json::parse("the header", header.as_bytes(), LINE_BYTES_MAX)
        .map_err(|source| ChainError::Form { number: 1, source })?;
    if let Some(link) = &header.after {
        verifier.begin_after(link)?;
    }
    let missing = verifier.number;
    for (number, line) in lines {
        let line: AuditLine = json::parse("the line", line.as_bytes(), LINE_BYTES_MAX)
            .map_err(|source| ChainError::Form { number, source })?;
        verifier.line(&line)?;
    }
    let wanted = missing.saturating_add(header.lines);
    if verifier.number != wanted {
        return Err(ChainError::Short { found: verifier.number, wanted });
    }
    let (lines, head) = verifier.end()?;
    Ok(VerifiedChain { missing, lines, head })
}

/// The bytes of a hash in lower-case hex; none for anything else.
fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let pairs = text.as_bytes().chunks_exact(2);
    let bytes: Option<Vec<u8>> = pairs
        .map(|pair| match pair {
            [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
            _ => None,
        })
        .collect();
    bytes.filter(|bytes| bytes.len() == 32 && text.len() == 64)
}

/// Lower-case hex.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing into a string cannot fail.
        let _infallible = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(count: i64) -> Vec<AuditLine> {
        let mut before = Vec::new();
        (1..=count)
            .map(|number| {
                let guest = (number % 2 == 0).then(|| format!("guest \n{number}"));
                let detail = format!("détail {number}");
                let fields = Fields {
                    number,
                    at_us: number * 1_000_000,
                    action: "step_intended",
                    guest: guest.as_deref(),
                    operation: None,
                    detail: &detail,
                };
                let hash = chain(&before, fields);
                before = hash.to_vec();
                let (action, chain) = ("step_intended".to_owned(), hex(&hash));
                AuditLine { number, at_us: number * 1_000_000, action, guest, operation: None, detail, chain }
            })
            .collect()
    }

    fn export(lines: &[AuditLine]) -> String {
        export_after(None, lines)
    }

    fn export_after(after: Option<Link>, lines: &[AuditLine]) -> String {
        let header = ExportHeader { schema: ExportSchema::V1, lines: lines.len() as u64, after };
        let mut text = serde_json::to_string(&header).unwrap();
        for line in lines {
            text.push('\n');
            text.push_str(&serde_json::to_string(line).unwrap());
        }
        text
    }

    #[test]
    fn a_whole_chain_holds_and_says_its_head() {
        let all = lines(9);
        let last = all.last().unwrap().chain.clone();
        let held = VerifiedChain { missing: 0, lines: 9, head: last.clone() };
        assert_eq!(verify(&export(&all), Verifier::default()).unwrap(), held);
        assert!(verify(&export(&all), Verifier::with_head(9, last)).is_ok());
        assert!(verify(&export(&all), Verifier::with_head(4, all[3].chain.clone())).is_ok());
        assert_eq!(verify(&export(&[]), Verifier::default()).unwrap().lines, 0);
    }

    #[test]
    fn an_export_without_its_beginning_says_so() {
        let all = lines(9);
        let after = |place: usize| Link { number: place as u64, chain: all[place - 1].chain.clone() };
        let text = export_after(Some(after(4)), &all[4..]);
        let held = verify(&text, Verifier::default()).unwrap();
        assert_eq!((held.missing, held.lines, &held.head), (4, 9, &all[8].chain));
        for seen in [4, 6, 9] {
            assert!(verify(&text, Verifier::with_head(seen, all[seen as usize - 1].chain.clone())).is_ok());
        }
        let unseen = verify(&text, Verifier::with_head(3, all[2].chain.clone()));
        assert!(matches!(unseen, Err(ChainError::Unseen { number: 3, after: 4 })));
        let other = verify(&text, Verifier::with_head(4, all[2].chain.clone()));
        assert!(matches!(other, Err(ChainError::Other { number: 4 })));
        // A beginning that is not this chain's, and one that is no hash.
        assert!(verify(&export_after(Some(after(3)), &all[4..]), Verifier::default()).is_err());
        let longer = format!("{}0", all[3].chain);
        for chain in ["", "00", &"g".repeat(64), &"0".repeat(65), &longer] {
            let link = Link { number: 4, chain: chain.to_owned() };
            assert!(verify(&export_after(Some(link), &all[4..]), Verifier::default()).is_err(), "{chain}");
        }
    }

    #[test]
    fn each_flipped_bit_cut_line_and_swap_is_seen_and_named() {
        let all = lines(9);
        let text = export(&all);
        let header = text.find('\n').unwrap() + 1;
        for at in header..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1;
            // A newline more or less, or text that is no text, is seen as well.
            let Ok(flipped) = String::from_utf8(bytes) else { continue };
            assert!(verify(&flipped, Verifier::default()).is_err(), "byte {at}");
        }
        for place in 0..9 {
            let mut cut = all.clone();
            cut.remove(place);
            let broken = verify(&export(&cut), Verifier::default());
            match broken {
                Err(ChainError::Broken { number }) => assert_eq!(number, place as u64 + 1),
                // The last line alone is missed only by who saw it before.
                Ok(VerifiedChain { lines: 8, .. }) if place == 8 => {}
                other => panic!("line {place} cut: {other:?}"),
            }
            if place < 8 {
                let mut swapped = all.clone();
                swapped.swap(place, place + 1);
                let error = verify(&export(&swapped), Verifier::default()).unwrap_err();
                assert!(matches!(error, ChainError::Broken { number } if number == place as u64 + 1));
            }
        }
        let head = Verifier::with_head(9, all[8].chain.clone());
        assert!(matches!(
            verify(&export(&all[..8]), head.clone()),
            Err(ChainError::Short { found: 8, wanted: 9 })
        ));
        let mut other = lines(9);
        other[8].detail = "another end".to_owned();
        let fields = Fields {
            number: 9,
            at_us: 9_000_000,
            action: "step_intended",
            guest: None,
            operation: None,
            detail: "another end",
        };
        let bytes: Vec<u8> =
            (0..32).map(|n| u8::from_str_radix(&all[7].chain[2 * n..2 * n + 2], 16).unwrap()).collect();
        other[8].chain = hex(&chain(&bytes, fields));
        assert!(verify(&export(&other), Verifier::default()).is_ok());
        assert!(matches!(verify(&export(&other), head), Err(ChainError::Other { number: 9 })));
    }
}
