//! One entry: the closed fields, each with its type, and the rest.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use holdfast_protocol::id::{CorrelationId, CustomerId, GuestUid, HostId, RequestId};
use jiff::Timestamp;
use serde::{Serialize, Serializer};
use tracing::Level;
use tracing::field::{Field, Visit};

use crate::origin::{self, Place, Service};

/// The longest message, in bytes. The plan of a recovery is the longest one.
const MESSAGE_BYTES_MAX: usize = 16 * 1024;
/// The longest text of a detail, in bytes.
const DETAIL_BYTES_MAX: usize = 2 * 1024;
/// Details of one entry.
const DETAILS_MAX: usize = 24;
/// The longest action or result, in bytes.
const WORD_BYTES_MAX: usize = 64;

/// An action or a result: up to 64 printable ASCII characters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Word(String);

impl Word {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// No action or result.
#[derive(Debug)]
pub struct NoWord;

impl FromStr for Word {
    type Err = NoWord;

    fn from_str(text: &str) -> Result<Self, NoWord> {
        let printable = text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
        if (1..=WORD_BYTES_MAX).contains(&text.len()) && printable {
            return Ok(Self(text.to_owned()));
        }
        Err(NoWord)
    }
}

/// One entry of a log.
#[derive(Clone, Debug, Serialize)]
pub struct Entry {
    pub timestamp: Timestamp,
    #[serde(serialize_with = "level")]
    pub level: Level,
    pub service: Service,
    /// On which host, or about which.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<HostId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guest: Option<GuestUid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub customer: Option<CustomerId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<RequestId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<CorrelationId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<Word>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Word>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// All other fields, as text.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub detail: BTreeMap<&'static str, String>,
}

fn level<S: Serializer>(level: &Level, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(level.as_str())
}

impl Entry {
    /// An entry without fields of its own.
    #[must_use]
    pub fn new(timestamp: Timestamp, level: Level, service: Service) -> Self {
        let Place { host, guest, customer } = origin::place();
        Self {
            timestamp,
            level,
            service,
            host,
            guest,
            customer,
            request_id: None,
            correlation_id: None,
            action: None,
            result: None,
            message: String::new(),
            detail: BTreeMap::new(),
        }
    }

    /// Sets a field. What is not of the field's type, or is of no closed field, becomes a detail.
    pub fn set(&mut self, name: &'static str, text: String) {
        let taken = match name {
            "message" => {
                self.message = cut(text, MESSAGE_BYTES_MAX);
                return;
            }
            "host" => put(&mut self.host, &text),
            "guest" => put(&mut self.guest, &text),
            "customer" => put(&mut self.customer, &text),
            "request_id" => put(&mut self.request_id, &text),
            "correlation_id" => put(&mut self.correlation_id, &text),
            "action" => put(&mut self.action, &text),
            "result" => put(&mut self.result, &text),
            // The bridge from the crate `log` names the place in the source so.
            name if name.starts_with("log.") => return,
            _ => FieldMatch::No,
        };
        if taken == FieldMatch::No && self.detail.len() < DETAILS_MAX {
            self.detail.insert(name, cut(text, DETAIL_BYTES_MAX));
        }
    }

    /// The message with all details, for people. Control characters are as they came.
    #[must_use]
    pub fn sentence(&self) -> String {
        let words = [("action", &self.action), ("result", &self.result)];
        let words = words.into_iter().filter_map(|(name, word)| Some((name, word.as_ref()?.as_str())));
        let pairs = words.chain(self.detail.iter().map(|(name, text)| (*name, text.as_str())));
        let mut sentence = self.message.clone();
        for (name, text) in pairs {
            if !sentence.is_empty() {
                sentence.push(' ');
            }
            sentence.push_str(name);
            sentence.push('=');
            if text.is_empty() || text.contains([' ', '"']) {
                sentence.push_str(&format!("{text:?}"));
            } else {
                sentence.push_str(text);
            }
        }
        sentence
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum FieldMatch {
    Yes,
    No,
}

fn put<T: FromStr>(field: &mut Option<T>, text: &str) -> FieldMatch {
    match text.parse() {
        Ok(value) => {
            *field = Some(value);
            FieldMatch::Yes
        }
        Err(_) => FieldMatch::No,
    }
}

/// The beginning of a text that is too long.
fn cut(mut text: String, max: usize) -> String {
    if text.len() > max {
        text.truncate(text.floor_char_boundary(max));
        text.push('…');
    }
    text
}

impl Visit for Entry {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.set(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.set(field.name(), format!("{value:?}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> Entry {
        Entry::new(Timestamp::UNIX_EPOCH, Level::INFO, Service::Agentd)
    }

    const ID: &str = "018f3c1e-6b1f-7c1d-9d0a-2f6d1c0b7a55";

    #[test]
    fn a_closed_field_takes_its_type_alone() {
        let long = "x".repeat(65);
        let cases: [(&'static str, &str, bool); 12] = [
            ("host", ID, true),
            ("host", "box1", false),
            ("guest", ID, true),
            ("guest", "forged\nline", false),
            ("customer", "acme", true),
            ("customer", "A CME", false),
            ("request_id", ID, true),
            ("correlation_id", ID, true),
            ("correlation_id", "0\" or 1", false),
            ("action", "GET", true),
            ("action", &long, false),
            ("result", "a\u{1b}[2J", false),
        ];
        for (name, text, typed) in cases {
            let mut entry = entry();
            entry.set(name, text.to_owned());
            assert_eq!(entry.detail.is_empty(), typed, "{name} {text:?}");
            let json = serde_json::to_value(&entry).unwrap();
            let at = if typed { &json[name] } else { &json["detail"][name] };
            assert_eq!(at, text, "{json}");
        }
    }

    #[test]
    fn an_entry_is_bounded() {
        let mut entry = entry();
        let names: Vec<&'static str> = (0..40).map(|n| &*format!("field{n}").leak()).collect();
        names.iter().for_each(|name| entry.set(name, "é".repeat(100_000)));
        entry.set("message", "é".repeat(100_000));
        assert_eq!(entry.detail.len(), DETAILS_MAX);
        assert!(entry.detail.values().all(|text| text.len() <= DETAIL_BYTES_MAX + '…'.len_utf8()));
        assert!(entry.message.len() <= MESSAGE_BYTES_MAX + '…'.len_utf8());
        assert!(serde_json::to_vec(&entry).unwrap().len() < 100 * 1024);
    }

    #[test]
    fn a_json_line_has_the_agreed_names_in_order() {
        let mut entry = entry();
        for (name, text) in
            [("correlation_id", ID), ("action", "job_taken"), ("message", "taken"), ("job", "j1")]
        {
            entry.set(name, text.to_owned());
        }
        let line = serde_json::to_string(&entry).unwrap();
        assert_eq!(
            line,
            format!(
                r#"{{"timestamp":"1970-01-01T00:00:00Z","level":"INFO","service":"agentd","correlation_id":"{ID}","action":"job_taken","message":"taken","detail":{{"job":"j1"}}}}"#
            )
        );
        assert_eq!(entry.sentence(), "taken action=job_taken job=j1");
    }
}
