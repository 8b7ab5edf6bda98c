//! Values of columns: their form in the file, and in digests.
//!
//! The digest of a table is made of its rows in their order, each value with its type and length, so that no two tables have
//! the same. Text that holds the character NUL counts with U+FFFD in its place: PostgreSQL holds every other character.

use std::borrow::Cow;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::{Error as _, MapAccess, Visitor};
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};

use super::{ColumnKind, TableSummary};

/// A value of one column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    Null,
    Integer(i64),
    Text(Cow<'a, str>),
    Bytes(Cow<'a, [u8]>),
}

/// A row out of a file.
pub type Row = Vec<Value<'static>>;

/// The one key of bytes in the file.
const BYTES_KEY: &str = "base64";

impl<'a> Value<'a> {
    /// Text in the form that every engine holds.
    #[must_use]
    pub fn text(text: &'a str) -> Self {
        let has_nul = text.contains('\0');
        Self::Text(if has_nul { text.replace('\0', "\u{fffd}").into() } else { text.into() })
    }

    /// Whether a column of this type may hold it.
    #[must_use]
    pub const fn is_of(&self, kind: ColumnKind) -> bool {
        matches!(
            (self, kind),
            (Self::Null, _)
                | (Self::Integer(_), ColumnKind::Integer)
                | (Self::Text(_), ColumnKind::Text)
                | (Self::Bytes(_), ColumnKind::Bytes)
        )
    }

    fn hash_into(&self, hash: &mut Sha256) {
        let mut sized = |tag: u8, bytes: &[u8]| {
            hash.update([tag]);
            hash.update((bytes.len() as u64).to_be_bytes());
            hash.update(bytes);
        };
        match self {
            Self::Null => sized(b'n', &[]),
            Self::Integer(number) => sized(b'i', &number.to_be_bytes()),
            Self::Text(text) => sized(b't', text.as_bytes()),
            Self::Bytes(bytes) => sized(b'b', bytes),
        }
    }
}

impl Serialize for Value<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Integer(number) => serializer.serialize_i64(*number),
            Self::Text(text) => serializer.serialize_str(text),
            Self::Bytes(bytes) => {
                let mut map = serializer.serialize_map(Some(1))?;
                map.serialize_entry(BYTES_KEY, &STANDARD.encode(bytes))?;
                map.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for Value<'static> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AnyValue;
        impl<'de> Visitor<'de> for AnyValue {
            type Value = Value<'static>;
            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("null, an integer, text or bytes")
            }
            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Value::Null)
            }
            fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
                Ok(Value::Integer(number))
            }
            fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Self::Value, E> {
                i64::try_from(number).map(Value::Integer).map_err(E::custom)
            }
            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Value::Text(text.to_owned().into()))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let Some((key, text)) = map.next_entry::<Cow<'de, str>, String>()? else {
                    return Err(A::Error::custom("an empty object is no value"));
                };
                if key != BYTES_KEY || map.next_key::<String>()?.is_some() {
                    return Err(A::Error::custom(format!("bytes have one key, {BYTES_KEY}")));
                }
                STANDARD.decode(text).map(|bytes| Value::Bytes(bytes.into())).map_err(A::Error::custom)
            }
        }
        deserializer.deserialize_any(AnyValue)
    }
}

/// Count and digest of rows, while they pass.
#[derive(Default)]
pub(super) struct RowDigest {
    rows: u64,
    hash: Sha256,
}

impl RowDigest {
    pub(super) fn add(&mut self, row: &[Value<'_>]) {
        self.rows += 1;
        for value in row {
            value.hash_into(&mut self.hash);
        }
    }

    pub(super) const fn rows(&self) -> u64 {
        self.rows
    }

    pub(super) fn done(self, name: &str) -> TableSummary {
        TableSummary { name: name.to_owned(), rows: self.rows, sha256: hex::encode(self.hash.finalize()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_read_as_it_was_written() {
        let row = [
            Value::Null,
            Value::Integer(i64::MIN),
            Value::text("a\"\0\u{1f980}"),
            Value::Bytes(vec![0, 1, 255].into()),
        ];
        let line = serde_json::to_string(&row).unwrap();
        let read: Row = serde_json::from_str(&line).unwrap();
        assert_eq!(read, row);
        assert_eq!(row[2], Value::Text("a\"\u{fffd}\u{1f980}".into()));
        for refused in ["[1.5]", "[true]", "[[]]", "[{}]", r#"[{"base64":"*"}]"#, "[18446744073709551615]"] {
            assert!(serde_json::from_str::<Row>(refused).is_err(), "{refused}");
        }
    }

    #[test]
    fn no_two_rows_have_the_same_digest() {
        let digest = |row: &[Value<'_>]| {
            let mut digest = RowDigest::default();
            digest.add(row);
            digest.done("t").sha256
        };
        let text = |text: &'static str| Value::text(text);
        let rows = [
            vec![text("ab"), text("c")],
            vec![text("a"), text("bc")],
            vec![text("a"), Value::Null, text("bc")],
            vec![Value::Bytes(b"a".to_vec().into()), text("bc")],
        ];
        let digests: std::collections::BTreeSet<_> = rows.iter().map(|row| digest(row)).collect();
        assert_eq!(digests.len(), rows.len());
    }
}
