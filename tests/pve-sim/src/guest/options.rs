//! What the option keys of a container are: volumes, networks, numbers.
//!
//! In: a key, perhaps a value. Out: its kind, its volumes in the real order, its JSON form. The definitions come from the call table.
use serde_json::{Map, Value};

use super::config::Section;
use crate::fail::{Fallible, Refusal};
use crate::schema::format::parse_size;
use crate::schema::property::{self, Fault, Properties};
use crate::schema::table::{Params, Table, lookup};

/// `rootfs` or `mpN`.
#[must_use]
pub fn is_volume_key(key: &str) -> bool {
    key == "rootfs" || numbered(key, "mp").is_some()
}

/// The number of `netN`, `mpN`, …
#[must_use]
pub fn numbered(key: &str, stem: &str) -> Option<u32> {
    key.strip_prefix(stem).filter(|digits| !digits.is_empty()).and_then(|digits| digits.parse().ok())
}

/// Where a volume comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// A managed volume.
    Volume,
    /// A folder of the node.
    Bind,
    /// A device of the node.
    Device,
}

impl Origin {
    /// As messages name it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Volume => "volume",
            Self::Bind => "bind",
            Self::Device => "device",
        }
    }
}

/// A read `rootfs` or `mpN`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// `rootfs`, `mp0`, …
    pub key: String,
    pub props: Properties,
}

impl Mount {
    /// Reads a value.
    ///
    /// # Errors
    /// When the value does not parse; the error names the key.
    pub fn parse(table: &Table, key: &str, value: &str) -> Result<Self, Fault> {
        let format = table.format(if key == "rootfs" { "rootfs" } else { "mp" });
        let format = format.ok_or_else(|| Fault::Text("unknown format".to_owned()))?;
        Ok(Self { key: key.to_owned(), props: property::parse(table, format, value)? })
    }

    /// The same without names in front, as the real code reports it when it fails in the middle of an operation.
    ///
    /// # Errors
    /// 500 `format error` with an `errors` object.
    pub fn parse_or_die(table: &Table, key: &str, value: &str) -> Fallible<Self> {
        Self::parse(table, key, value).map_err(|fault| match fault {
            Fault::Text(text) => Refusal::die(text),
            Fault::Keys(keys) => Refusal {
                status: 500,
                message: "format error".to_owned(),
                errors: keys.into_iter().collect(),
            },
        })
    }

    /// The `volume` property.
    #[must_use]
    pub fn volume(&self) -> &str {
        self.props.get("volume").map_or("", String::as_str)
    }

    /// Where in the guest it is seen.
    #[must_use]
    pub fn path(&self) -> &str {
        if self.key == "rootfs" { "/" } else { self.props.get("mp").map_or("", String::as_str) }
    }

    /// Its size in bytes, when the value says so.
    #[must_use]
    pub fn size(&self) -> Option<u64> {
        self.props.get("size").and_then(|text| parse_size(text))
    }

    /// Where the volume comes from.
    #[must_use]
    pub fn origin(&self) -> Origin {
        match self.volume() {
            path if path.starts_with("/dev/") => Origin::Device,
            path if path.starts_with('/') => Origin::Bind,
            _ => Origin::Volume,
        }
    }

    /// `storage:SIZE_IN_GIB`, which requests a new volume.
    #[must_use]
    pub fn goal(&self) -> Option<(&str, f64)> {
        let (storage, size) = self.volume().split_once(':')?;
        let shaped = !size.is_empty()
            && size.bytes().all(|b| b.is_ascii_digit() || b == b'.')
            && !size.starts_with('.')
            && !size.ends_with('.');
        Some((storage, if shaped { size.parse().ok()? } else { return None }))
    }

    /// Whether its content is included in backups.
    #[must_use]
    pub fn in_backup(&self) -> bool {
        self.key == "rootfs"
            || (self.origin() == Origin::Volume && self.props.get("backup").is_some_and(|on| on == "1"))
    }

    /// The value again.
    #[must_use]
    pub fn print(&self, table: &Table) -> String {
        let format = table.format("mp");
        let mut props = self.props.clone();
        if self.key == "rootfs" {
            props.remove("mp");
        }
        if let Some(size) = self.size() {
            props.insert("size".to_owned(), crate::schema::format::format_size(size));
        }
        format.map(|format| property::print(format, &props)).unwrap_or_default()
    }
}

/// The mounts of a section: `rootfs` first, then by number. Values that do not parse are skipped.
#[must_use]
pub fn mounts(table: &Table, section: &Section) -> Vec<Mount> {
    let mut keys: Vec<&String> = section.values.keys().filter(|key| is_volume_key(key)).collect();
    keys.sort_by_key(|key| numbered(key, "mp").map_or(0, |n| n + 1));
    keys.into_iter().filter_map(|key| Mount::parse(table, key, section.get(key)?).ok()).collect()
}

/// The definitions of all options.
#[must_use]
pub fn definitions(table: &Table) -> Option<&Params> {
    table.call("PUT /nodes/{node}/lxc/{vmid}/config").map(|call| &call.params)
}

/// Whether an option exists at all (`delete=bogus` does not).
#[must_use]
pub fn exists(table: &Table, key: &str) -> bool {
    let other = matches!(key, "node" | "vmid" | "digest" | "delete" | "revert");
    matches!(key, "parent" | "snaptime")
        || (!other && definitions(table).is_some_and(|params| lookup(params, key).is_some()))
}

/// A value in its JSON form: booleans and integers are numbers, everything else is text.
#[must_use]
pub fn json_value(table: &Table, key: &str, value: &str) -> Value {
    let kind =
        definitions(table).and_then(|params| lookup(params, key)).and_then(|spec| spec.kind.as_deref());
    match kind {
        _ if key == "snaptime" => value.parse::<i64>().map_or_else(|_| Value::from(value), Value::from),
        Some("boolean" | "integer") => value.parse::<i64>().map_or_else(|_| Value::from(value), Value::from),
        // The file is read as bytes, so that a second encoding is seen outside ASCII.
        _ if matches!(key, "env" | "entrypoint") => {
            Value::from(value.bytes().map(char::from).collect::<String>())
        }
        _ => Value::from(value),
    }
}

/// A section as the API shows it.
#[must_use]
pub fn json_section(table: &Table, section: &Section) -> Map<String, Value> {
    let mut out: Map<String, Value> =
        section.values.iter().map(|(key, value)| (key.clone(), json_value(table, key, value))).collect();
    if !section.lxc.is_empty() {
        let pairs = section
            .lxc
            .iter()
            .map(|(key, value)| Value::from(vec![key.as_str(), value.as_str()]))
            .collect::<Vec<_>>();
        out.insert("lxc".to_owned(), Value::from(pairs));
    }
    out
}
