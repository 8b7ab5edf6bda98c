//! Property strings such as `name=eth0,bridge=vmbr0`: reading, checking and writing.
//!
//! In: the text and the format's keys. Out: an ordered map, or the refusal text of the real API, with its trailing newline.
use std::collections::BTreeMap;

use serde_json::Value;

use super::check;
use super::table::{Format, Table};

/// A read property string.
pub type Properties = BTreeMap<String, String>;

/// Why a property string is not accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The text cannot be split into keys.
    Text(String),
    /// Keys are missing or wrong: (key, text).
    Keys(Vec<(String, String)>),
}

impl Fault {
    /// As the real API flattens it; `prefix` is the parameter's name.
    #[must_use]
    pub fn text(&self, prefix: &str) -> String {
        match self {
            Self::Text(text) => format!("{text}\n"),
            Self::Keys(keys) => {
                let lines: String =
                    keys.iter().map(|(key, text)| format!("{prefix}{key}: {text}\n")).collect();
                format!("format error\n{lines}")
            }
        }
    }
}

/// Of a key that the format does not have.
const UNKNOWN: &str = "property is not defined in schema and the schema does not allow additional properties";

/// Reads and checks a property string.
///
/// # Errors
/// The first fault of the text, or all faults of its keys.
pub fn parse(table: &Table, format: &Format, data: &str) -> Result<Properties, Fault> {
    let mut held = Properties::new();
    let mut bare_seen = false;
    for part in data.split(',').filter(|part| !part.trim().is_empty()) {
        let (key, value) = split(format, part, bare_seen)?;
        bare_seen |= !part.contains('=');
        if held.contains_key(&key) {
            return Err(Fault::Text(format!("duplicate key in comma-separated list property: {key}")));
        }
        let is_boolean = format.get(&key).is_some_and(|spec| spec.kind.as_deref() == Some("boolean"));
        let value =
            if is_boolean { boolean(value).map_or(value, |on| if on { "1" } else { "0" }) } else { value };
        held.insert(key, value.to_owned());
    }
    let mut faults = Vec::new();
    for (key, spec) in format {
        match held.get(key) {
            None if spec.optional => {}
            None => faults.push((key.clone(), "property is missing and it is not optional".to_owned())),
            Some(value) => {
                let mut errors = check::Errors::new();
                check::one(table, key, spec, &Value::String(value.clone()), &mut errors);
                faults.extend(errors);
            }
        }
    }
    let unknown = held.keys().filter(|key| !format.contains_key(*key));
    faults.extend(unknown.map(|key| (key.clone(), UNKNOWN.to_owned())));
    if faults.is_empty() { Ok(held) } else { Err(Fault::Keys(faults)) }
}

fn split<'a>(format: &Format, part: &'a str, bare_seen: bool) -> Result<(String, &'a str), Fault> {
    match part.split_once('=') {
        Some((key, value)) if !key.is_empty() && !value.is_empty() => Ok((key.to_owned(), value)),
        Some(_) => Err(Fault::Text("missing key in comma-separated list property".to_owned())),
        None => {
            let default = format.iter().find(|(_, spec)| spec.default_key).map(|(key, _)| key.clone());
            match default {
                None => {
                    Err(Fault::Text("value without key, but schema does not define a default key".to_owned()))
                }
                Some(key) if bare_seen => {
                    Err(Fault::Text(format!("duplicate key in comma-separated list property: {key}")))
                }
                Some(key) => Ok((key, part)),
            }
        }
    }
}

fn boolean(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "on" | "yes" | "true" => Some(true),
        "0" | "off" | "no" | "false" => Some(false),
        _ => None,
    }
}

/// Writes a property string in the canonical order: the bare key, then required keys, then the rest, each sorted.
#[must_use]
pub fn print(format: &Format, held: &Properties) -> String {
    let mut parts = Vec::new();
    let bare = format.iter().find(|(_, spec)| spec.default_key).map(|(key, _)| key.as_str());
    if let Some(value) = bare.and_then(|key| held.get(key)) {
        parts.push(value.clone());
    }
    for wanted_optional in [false, true] {
        for (key, value) in held {
            let optional = format.get(key).is_none_or(|spec| spec.optional);
            if Some(key.as_str()) != bare && optional == wanted_optional {
                parts.push(format!("{key}={value}"));
            }
        }
    }
    parts.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_printed_in_the_real_order() {
        let table = Table::committed().expect("table");
        let format = table.format("net").expect("net");
        let mut net = parse(
            &table,
            format,
            "ip=10.66.0.20/24,name=eth0,firewall=on,bridge=vmbr0,hwaddr=BC:24:11:00:00:01,tag=5",
        )
        .expect("net");
        net.insert("type".into(), "veth".into());
        assert_eq!(
            print(format, &net),
            "name=eth0,bridge=vmbr0,firewall=1,hwaddr=BC:24:11:00:00:01,ip=10.66.0.20/24,tag=5,type=veth"
        );
    }

    #[test]
    fn faults_read_as_the_real_ones() {
        let table = Table::committed().expect("table");
        let mp = table.format("mp").expect("mp");
        let text = parse(&table, mp, "labdir:1,mp=../x").expect_err("refused").text("mp2.");
        assert_eq!(
            text,
            "format error\nmp2.mp: invalid format - ../x contains illegal character sequences\n\n"
        );
        assert_eq!(
            parse(&table, mp, "a,b,mp=/x").expect_err("refused").text(""),
            "duplicate key in comma-separated list property: volume\n"
        );
        assert_eq!(
            parse(&table, mp, "a,nope=1,mp=/x").expect_err("refused").text("mp0."),
            "format error\nmp0.nope: property is not defined in schema and the schema does not allow additional properties\n"
        );
    }
}
