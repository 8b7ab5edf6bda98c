//! Values as Proxmox sends them, read leniently.
//!
//! One number may arrive as `1`, `"1"` or `1.0`, a boolean as `1`, `"1"` or `true`, an absent value as null or not at
//! all. Rows gain keys with each release. [`Row`] reads one JSON object by key and says which key was missing or
//! unreadable. Deliberately absent: interpretation; `read` and `config` make domain types of rows.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// Why a body could not be read: where, and what was expected there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable(pub(super) String);

impl Unreadable {
    fn new(key: &str, wanted: &str) -> Self {
        Self(format!("{key}: {wanted}"))
    }
}

/// One object of an answer.
#[derive(Clone, Copy)]
pub(super) struct Row<'a>(&'a Map<String, Value>);

impl<'a> Row<'a> {
    pub(super) fn of(value: &'a Value) -> Result<Self, Unreadable> {
        value.as_object().map(Self).ok_or_else(|| Unreadable::new("data", "an object is expected"))
    }

    /// `null` counts as absent.
    fn get(self, key: &str) -> Option<&'a Value> {
        self.0.get(key).filter(|value| !value.is_null())
    }

    pub(super) fn text(self, key: &str) -> Result<String, Unreadable> {
        self.text_opt(key)?.ok_or_else(|| Unreadable::new(key, "missing"))
    }

    /// Numbers are texts too: Proxmox does not keep the two apart.
    pub(super) fn text_opt(self, key: &str) -> Result<Option<String>, Unreadable> {
        self.get(key)
            .map(|value| scalar(value).ok_or_else(|| Unreadable::new(key, "a text is expected")))
            .transpose()
    }

    pub(super) fn whole(self, key: &str) -> Result<u64, Unreadable> {
        self.whole_opt(key)?.ok_or_else(|| Unreadable::new(key, "missing"))
    }

    pub(super) fn whole_opt(self, key: &str) -> Result<Option<u64>, Unreadable> {
        self.get(key)
            .map(|value| whole(value).ok_or_else(|| Unreadable::new(key, "a whole number is expected")))
            .transpose()
    }

    pub(super) fn share_opt(self, key: &str) -> Result<Option<f64>, Unreadable> {
        let read = |value: &Value| value.as_f64().or_else(|| value.as_str()?.parse().ok());
        self.get(key)
            .map(|value| read(value).ok_or_else(|| Unreadable::new(key, "a number is expected")))
            .transpose()
    }

    /// A measured value that no decision depends on. A negative one is 0, since a real list has it for a guest that has
    /// just started. An unreadable one is absent.
    pub(super) fn measure(self, key: &str) -> Option<f64> {
        let value = self.get(key)?;
        let number: f64 = value.as_f64().or_else(|| value.as_str()?.parse().ok())?;
        number.is_finite().then(|| number.max(0.0))
    }

    /// The same in whole units.
    pub(super) fn measure_whole(self, key: &str) -> Option<u64> {
        self.get(key).and_then(whole).or_else(|| exact(self.measure(key)?.trunc()))
    }

    /// A measured share in thousandths. More than all of it is an error of measurement.
    pub(super) fn measure_permille(self, key: &str) -> Option<u64> {
        exact((self.measure(key)? * 1000.0).round()).map(|thousandths| thousandths.min(1000))
    }

    /// Absent is `false`: Proxmox leaves out unset keys.
    pub(super) fn flag(self, key: &str) -> Result<bool, Unreadable> {
        let read =
            self.get(key).map(|value| flag(value).ok_or_else(|| Unreadable::new(key, "0 or 1 is expected")));
        Ok(read.transpose()?.unwrap_or(false))
    }

    pub(super) fn parsed<T: std::str::FromStr>(self, key: &str, wanted: &str) -> Result<T, Unreadable> {
        self.text(key)?.parse().map_err(|_| Unreadable::new(key, wanted))
    }

    pub(super) fn parsed_opt<T: std::str::FromStr>(
        self,
        key: &str,
        wanted: &str,
    ) -> Result<Option<T>, Unreadable> {
        self.text_opt(key)?.map(|text| text.parse().map_err(|_| Unreadable::new(key, wanted))).transpose()
    }

    pub(super) fn row(self, key: &str) -> Result<Row<'a>, Unreadable> {
        self.get(key)
            .and_then(Value::as_object)
            .map(Row)
            .ok_or_else(|| Unreadable::new(key, "an object is expected"))
    }

    pub(super) fn rows(self, key: &str) -> Result<Vec<Row<'a>>, Unreadable> {
        self.get(key).map_or(Ok(Vec::new()), rows)
    }

    /// All scalars by key; structures are left out.
    pub(super) fn scalars(self) -> BTreeMap<String, String> {
        self.0.iter().filter_map(|(key, value)| Some((key.clone(), scalar(value)?))).collect()
    }

    pub(super) fn keys(self) -> impl Iterator<Item = &'a str> {
        self.0.keys().map(String::as_str)
    }
}

/// A list of objects. Proxmox writes an empty list of interfaces as null.
pub(super) fn rows(value: &Value) -> Result<Vec<Row<'_>>, Unreadable> {
    match value {
        Value::Null => Ok(Vec::new()),
        Value::Array(items) => items.iter().map(Row::of).collect(),
        _ => Err(Unreadable::new("data", "a list is expected")),
    }
}

/// Proxmox takes `;`, `,` and blanks between tags and writes `;`.
pub(super) fn split_tags(text: &str) -> Vec<String> {
    text.split([';', ',', ' ']).filter(|tag| !tag.is_empty()).map(str::to_owned).collect()
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(u8::from(*flag).to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// `1`, `"1"`, `1.0` and `"1.0"` are 1; `1.5`, `-1` and `"x"` are none.
pub(super) fn whole(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => number.as_u64().or_else(|| number.as_f64().and_then(exact)),
        Value::String(text) => text.parse().ok().or_else(|| text.parse().ok().and_then(exact)),
        _ => None,
    }
}

fn flag(value: &Value) -> Option<bool> {
    match scalar(value)?.as_str() {
        "0" | "" => Some(false),
        "1" => Some(true),
        _ => None,
    }
}

pub(super) fn exact(number: f64) -> Option<u64> {
    // 2^53: above it a double no longer names one whole number.
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    let fits = (0.0..=EXACT_MAX).contains(&number) && number.fract() == 0.0;
    fits.then(|| format!("{number:.0}").parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_measure_is_never_below_zero_and_never_an_error() {
        let value =
            json!({"a": -3, "b": "-0.0007", "c": 1.9, "d": "x", "e": [], "f": null, "g": 7, "h": 1e300});
        let row = Row::of(&value).unwrap();
        let whole = |key| row.measure_whole(key);
        assert_eq!([whole("a"), whole("b"), whole("c"), whole("g")], [Some(0), Some(0), Some(1), Some(7)]);
        assert_eq!(row.measure("b"), Some(0.0));
        for key in ["d", "e", "f", "h", "absent"] {
            assert_eq!(whole(key), None, "{key}");
        }
    }

    #[test]
    fn numbers_and_flags_in_every_spelling() {
        let value = json!({"a": 1, "b": "1", "c": 1.0, "d": "1.0", "e": true, "f": null, "g": 1.5, "h": "x", "i": -1});
        let row = Row::of(&value).unwrap();
        for key in ["a", "b", "c", "d"] {
            assert_eq!(row.whole_opt(key), Ok(Some(1)), "{key}");
        }
        assert_eq!(row.whole_opt("f"), Ok(None));
        assert_eq!(row.whole_opt("absent"), Ok(None));
        for key in ["g", "h", "i", "e"] {
            assert!(row.whole_opt(key).is_err(), "{key}");
        }
        for key in ["a", "b", "e"] {
            assert_eq!(row.flag(key), Ok(true), "{key}");
        }
        assert_eq!(row.flag("absent"), Ok(false));
        assert!(row.flag("h").is_err());
    }
}
