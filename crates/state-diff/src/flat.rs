//! Documents as flat fields, and the fields that differ.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use crate::change::{Area, Change, Direction};

/// Longer values are cut.
const WORD_CHARS_MAX: usize = 120;

type Fields = BTreeMap<String, String>;

/// The fields of a document. Lists of things with names are fields under these names, so that their order is no change.
pub(crate) fn fields(document: &impl Serialize, without: &[&str]) -> Fields {
    let mut into = Fields::new();
    // What was read from JSON can be written as JSON; if not, it has no fields.
    if let Ok(Value::Object(mut whole)) = serde_json::to_value(document) {
        whole.retain(|name, _| !without.contains(&name.as_str()));
        flatten("", &Value::Object(whole), &mut into);
    }
    into
}

fn flatten(path: &str, value: &Value, into: &mut Fields) {
    let join = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    match value {
        Value::Object(map) => map.iter().for_each(|(name, inner)| flatten(&join(name), inner, into)),
        Value::Array(list) if !list.is_empty() && list.iter().all(|item| name_of(item).is_some()) => {
            for item in list {
                let mut item = item.clone();
                let name = name_of(&item).unwrap_or_default();
                if let Value::Object(map) = &mut item {
                    map.remove("name");
                }
                flatten(&join(&name), &item, into);
            }
        }
        Value::Array(list) => {
            into.insert(path.to_owned(), word(&list.iter().map(text).collect::<Vec<_>>().join(", ")));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            into.insert(path.to_owned(), word(&text(value)));
        }
    }
}

fn name_of(item: &Value) -> Option<String> {
    item.get("name").and_then(Value::as_str).map(str::to_owned)
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A value, as long as a person reads it.
pub(crate) fn word(text: &str) -> String {
    if text.chars().count() <= WORD_CHARS_MAX {
        return text.to_owned();
    }
    let begin: String = text.chars().take(WORD_CHARS_MAX).collect();
    format!("{begin}…")
}

/// The fields that differ, without a direction.
pub(crate) fn changes(area: Area, before: &Fields, after: &Fields) -> Vec<Change> {
    let mut names: Vec<&String> = before.keys().chain(after.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let change = |name: &String| {
        Change::of((Direction::Different, area), name, before.get(name).cloned(), after.get(name).cloned())
    };
    names.into_iter().filter_map(change).collect()
}

/// A value of a closed type as it is on the wire.
pub(crate) fn written(value: &impl Serialize) -> String {
    serde_json::to_value(value).map(|value| text(&value)).unwrap_or_default()
}
