//! Properties of every strict JSON document.

use std::collections::BTreeSet;
use std::fmt;

use holdfast_protocol::json;
use serde::de::{DeserializeOwned, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};

/// Reads bytes as a document. A valid document is checked against its rules and returned.
///
/// # Panics
/// When a rule does not hold.
pub fn document<T: DeserializeOwned + Serialize>(bytes: &[u8], max: usize) -> Option<T> {
    let read = json::parse::<T>("a document", bytes, max);
    let value = match read {
        Ok(value) => value,
        Err(error) => {
            // A refusal can be shown to a person and to a program.
            assert!(!json::chain(&error).is_empty() && !error.code().as_str().is_empty());
            return None;
        }
    };
    assert!(bytes.len() <= max);
    assert!(serde_json::from_slice::<Unique>(bytes).is_ok(), "a key stands twice");
    let text = serde_json::to_vec(&value).expect("what was read can be written");
    let again: T = json::parse("a document", &text, usize::MAX).expect("what was written can be read");
    assert_eq!(serde_json::to_vec(&again).expect("twice"), text, "it reads back as another");
    for tail in [&b"x"[..], b"{}", b"\0", b",", b"]"] {
        assert!(json::parse::<T>("a document", &[bytes, tail].concat(), usize::MAX).is_err(), "it goes on");
    }
    assert!(json::parse::<T>("a document", bytes, bytes.len() - 1).is_err(), "it has no bound");
    Some(value)
}

/// Any JSON in which no object says a key twice.
pub struct Unique;

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Looker)
    }
}

struct Looker;

impl<'de> Visitor<'de> for Looker {
    type Value = Unique;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON without a key twice")
    }
    fn visit_bool<E>(self, _: bool) -> Result<Unique, E> {
        Ok(Unique)
    }
    fn visit_i64<E>(self, _: i64) -> Result<Unique, E> {
        Ok(Unique)
    }
    fn visit_u64<E>(self, _: u64) -> Result<Unique, E> {
        Ok(Unique)
    }
    fn visit_f64<E>(self, _: f64) -> Result<Unique, E> {
        Ok(Unique)
    }
    fn visit_str<E>(self, _: &str) -> Result<Unique, E> {
        Ok(Unique)
    }
    fn visit_unit<E>(self) -> Result<Unique, E> {
        Ok(Unique)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Unique, A::Error> {
        while seq.next_element::<Unique>()?.is_some() {}
        Ok(Unique)
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Unique, A::Error> {
        let mut seen = BTreeSet::new();
        while let Some((key, Unique)) = map.next_entry::<String, Unique>()? {
            if !seen.insert(key) {
                return Err(A::Error::custom("a key stands twice"));
            }
        }
        Ok(Unique)
    }
}
