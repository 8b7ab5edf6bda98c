//! Storage definitions, in the form of `storage.cfg`.
//!
//! ```text
//! dir: labdir
//!     path /mnt/labdir
//!     content images,rootdir
//! ```
use std::collections::BTreeMap;
use std::fmt::Write as _;

use sha2::{Digest, Sha256};

use crate::access::credential::hex;
use crate::fail::{Fallible, Refusal};
use crate::schema::format::split_list;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Definition {
    /// `dir`, `btrfs`, `pbs`, …
    pub kind: String,
    /// Its other properties.
    pub props: BTreeMap<String, String>,
}

impl Definition {
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.props.get(key).map(String::as_str)
    }

    /// Where it is on the node.
    #[must_use]
    pub fn path(&self) -> Option<&str> {
        self.get("path")
    }

    /// Whether it may hold this content.
    #[must_use]
    pub fn holds(&self, content: &str) -> bool {
        split_list(self.get("content").unwrap_or_default()).any(|held| held == content)
    }

    /// Switched off by the administrator.
    #[must_use]
    pub fn is_disabled(&self) -> bool {
        self.get("disable") == Some("1")
    }

    /// Seen by other nodes too.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.is_beyond() || self.get("shared") == Some("1")
    }

    /// Whether it is on another machine.
    #[must_use]
    pub fn is_beyond(&self) -> bool {
        matches!(self.kind.as_str(), "pbs" | "nfs" | "cifs")
    }

    /// What a definition of its kind must have, and what never changes.
    #[must_use]
    pub fn fixed(&self) -> &'static [&'static str] {
        match self.kind.as_str() {
            "dir" | "btrfs" => &["path"],
            "nfs" => &["server", "export"],
            "cifs" => &["server", "share"],
            "pbs" => &["server", "datastore"],
            _ => &[],
        }
    }

    /// Volumes can be snapshotted.
    #[must_use]
    pub fn snapshots(&self) -> bool {
        self.kind == "btrfs"
    }
}

/// All definitions, in the order of the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StorageConfig {
    /// Names and definitions.
    pub all: Vec<(String, Definition)>,
}

impl StorageConfig {
    /// Reads the file.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut config = Self::default();
        for line in text.lines() {
            if line.starts_with(['\t', ' ']) {
                let (key, value) = line.trim().split_once(char::is_whitespace).unwrap_or((line.trim(), "1"));
                if let Some((_, last)) = config.all.last_mut().filter(|_| !key.is_empty()) {
                    last.props.insert(key.to_owned(), value.trim().to_owned());
                }
            } else if let Some((kind, name)) = line.split_once(':') {
                let definition = Definition { kind: kind.trim().to_owned(), props: BTreeMap::new() };
                config.all.push((name.trim().to_owned(), definition));
            }
        }
        config
    }

    /// Writes the file.
    #[must_use]
    pub fn print(&self) -> String {
        let mut out = String::new();
        for (name, definition) in &self.all {
            let _ = writeln!(out, "{}: {name}", definition.kind);
            for (key, value) in &definition.props {
                let _ = writeln!(out, "\t{key} {value}");
            }
            out.push('\n');
        }
        out
    }

    /// Names the exact content.
    #[must_use]
    pub fn digest(&self) -> String {
        let mut name = hex(&Sha256::digest(self.print()));
        name.truncate(40);
        name
    }

    #[must_use]
    pub fn find(&self, name: &str) -> Option<&Definition> {
        self.all.iter().find(|(held, _)| held == name).map(|(_, definition)| definition)
    }

    /// A definition, or the real sentence.
    ///
    /// # Errors
    /// 500 when it is not there.
    pub fn get(&self, name: &str) -> Fallible<&Definition> {
        self.find(name).ok_or_else(|| Refusal::die(format!("storage '{name}' does not exist")))
    }

    /// A definition that is not switched off.
    ///
    /// # Errors
    /// 500 when it is not there or disabled.
    pub fn enabled(&self, name: &str) -> Fallible<&Definition> {
        let definition = self.get(name)?;
        if definition.is_disabled() {
            Err(Refusal::die(format!("storage '{name}' is disabled")))
        } else {
            Ok(definition)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lab_file_reads_and_survives() {
        let config = StorageConfig::parse(include_str!("../../lab/storage.cfg"));
        assert_eq!(config.all.len(), 5);
        assert_eq!(StorageConfig::parse(&config.print()), config);
        assert!(config.find("labbtrfs").is_some_and(Definition::snapshots));
        assert_eq!(config.get("nosuch").expect_err("missing").message, "storage 'nosuch' does not exist");
        assert!(config.find("local").is_some_and(|held| held.holds("vztmpl") && !held.holds("rootdir")));
    }
}
