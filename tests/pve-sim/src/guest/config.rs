//! A container's configuration, in the form of `.conf`.
//!
//! ```text
//! #description, a comment line per line        current values
//! key: value            (sorted)
//! lxc.environment.runtime: KEY=value           = the option `env`
//! lxc.…: …                                     raw entries
//! [pve:pending]         changes that wait for a stop; `delete: a,b`
//! [snapname]            one section per snapshot
//! ```
//! In: the text. Out: [`GuestConfig`] and the text again. Deliberately absent: what the values mean.
use std::collections::BTreeMap;
use std::fmt::Write as _;

use sha2::{Digest, Sha256};

use crate::access::config::{decode, encode};
use crate::access::credential::hex;

/// One section: plain values (with `description`, `env`, `lock`, `parent`, `snaptime`, `snapstate`) and raw entries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Section {
    /// By key. `env` is a NUL-separated list; `description` keeps its newlines.
    pub values: BTreeMap<String, String>,
    /// Raw `lxc.` entries.
    pub lxc: Vec<(String, String)>,
}

/// A whole configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GuestConfig {
    pub main: Section,
    pub pending: BTreeMap<String, String>,
    /// Options that wait for their deletion.
    pub pending_delete: Vec<String>,
    /// Snapshots by name.
    pub snapshots: BTreeMap<String, Section>,
}

impl Section {
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.values.get(key).map(String::as_str)
    }

    /// Sets a value.
    pub fn set(&mut self, key: &str, value: impl Into<String>) {
        self.values.insert(key.to_owned(), value.into());
    }

    /// Removes a value.
    pub fn unset(&mut self, key: &str) -> Option<String> {
        self.values.remove(key)
    }

    /// A value that means yes.
    #[must_use]
    pub fn flag(&self, key: &str) -> bool {
        self.get(key) == Some("1")
    }

    fn print(&self, out: &mut String) {
        for line in self.get("description").unwrap_or_default().lines() {
            let _ = writeln!(out, "#{}", encode(line));
        }
        for (key, value) in &self.values {
            if !matches!(key.as_str(), "description" | "env") {
                let _ = writeln!(out, "{key}: {value}");
            }
        }
        for variable in
            self.get("env").unwrap_or_default().split('\0').filter(|variable| !variable.is_empty())
        {
            let _ = writeln!(out, "lxc.environment.runtime: {variable}");
        }
        for (key, value) in &self.lxc {
            let _ = writeln!(out, "{key}: {value}");
        }
    }

    fn take(&mut self, line: &str, description: &mut String) {
        if let Some(comment) = line.strip_prefix('#') {
            description.push_str(&decode(comment));
            description.push('\n');
            return;
        }
        let Some((key, value)) = line.split_once(':').or_else(|| line.split_once('=')) else {
            tracing::warn!(line, "guest config: line ignored");
            return;
        };
        // Of a value that is nothing but blanks the real reader keeps one.
        let blank = if value.is_empty() { "" } else { " " };
        let (key, value) =
            (key.trim_end(), Some(value.trim()).filter(|text| !text.is_empty()).unwrap_or(blank));
        match key {
            "description" => description.push_str(&decode(value)),
            "lxc.environment.runtime" => match self.values.get_mut("env") {
                None => self.set("env", value),
                Some(held) => {
                    held.push('\0');
                    held.push_str(value);
                }
            },
            _ if key.starts_with("lxc.") => self.lxc.push((key.to_owned(), value.to_owned())),
            _ if !value.is_empty() => self.set(key, value),
            _ => tracing::warn!(line, "guest config: line ignored"),
        }
    }
}

impl GuestConfig {
    /// Reads a configuration.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut config = Self::default();
        let mut section = Section::default();
        let mut name: Option<String> = None;
        let mut description = String::new();
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            if let Some(next) = line.trim_end().strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                config.place(name.take(), std::mem::take(&mut section), std::mem::take(&mut description));
                name = Some(next.to_owned());
            } else {
                section.take(line, &mut description);
            }
        }
        config.place(name, section, description);
        config
    }

    fn place(&mut self, name: Option<String>, mut section: Section, description: String) {
        if !description.is_empty() {
            section.set("description", description);
        }
        match name.as_deref() {
            None => self.main = section,
            Some(word) if word.eq_ignore_ascii_case("pve:pending") => {
                let delete = section.unset("delete").unwrap_or_default();
                self.pending_delete = crate::schema::format::split_list(&delete)
                    .map(|word| word.trim_start_matches('!').to_owned())
                    .collect();
                self.pending = section.values;
            }
            Some(word) => drop(self.snapshots.insert(word.to_owned(), section)),
        }
    }

    /// Writes the configuration.
    #[must_use]
    pub fn print(&self) -> String {
        let mut out = String::new();
        self.main.print(&mut out);
        if !self.pending.is_empty() || !self.pending_delete.is_empty() {
            out.push_str("\n[pve:pending]\n");
            let mut section = Section { values: self.pending.clone(), lxc: Vec::new() };
            if !self.pending_delete.is_empty() {
                section.set("delete", self.pending_delete.join(","));
            }
            section.print(&mut out);
        }
        for (name, section) in &self.snapshots {
            let _ = write!(out, "\n[{name}]\n");
            section.print(&mut out);
        }
        out
    }

    /// Names the exact content; 40 hexadecimal digits like the real one.
    #[must_use]
    pub fn digest(&self) -> String {
        let mut name = hex(&Sha256::digest(self.print()));
        name.truncate(40);
        name
    }

    /// The values as they will be: pending changes taken in.
    #[must_use]
    pub fn upcoming(&self) -> Section {
        let mut section = self.main.clone();
        section.values.extend(self.pending.clone());
        for key in &self.pending_delete {
            section.unset(key);
        }
        section
    }

    /// The `lock`, if any.
    #[must_use]
    pub fn lock(&self) -> Option<&str> {
        self.main.get("lock")
    }

    /// Drops pending changes that change nothing.
    pub fn cleanup_pending(&mut self) {
        let main = &self.main;
        self.pending.retain(|key, value| main.get(key) != Some(value.as_str()));
        self.pending_delete.retain(|key| main.values.contains_key(key));
    }

    /// Queues a deletion.
    pub fn queue_delete(&mut self, key: &str) {
        self.pending.remove(key);
        if !self.pending_delete.iter().any(|held| held == key) {
            self.pending_delete.push(key.to_owned());
        }
    }

    /// Takes a deletion back.
    pub fn unqueue_delete(&mut self, key: &str) {
        self.pending_delete.retain(|held| held != key);
    }

    /// Puts a volume on the list of unused ones and returns its key.
    pub fn add_unused(section: &mut Section, volid: &str) -> Option<String> {
        let held = |section: &Section, index: u32| section.get(&format!("unused{index}")).map(str::to_owned);
        if (0..256).any(|index| held(section, index).as_deref() == Some(volid)) {
            return None;
        }
        let free = (0..256).find(|index| held(section, *index).is_none())?;
        let key = format!("unused{free}");
        section.set(&key, volid);
        Some(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "#line one\n#t%C3%A4g%3A 5%25\narch: amd64\nhostname: ct\nlock: backup\nrootfs: labdir:120/vm-120-disk-0.raw,size=1G\n\
        lxc.environment.runtime: A=1\nlxc.environment.runtime: B=two words\nlxc.environment: FOO=bar\n\n[pve:pending]\ncmode: shell\ndelete: env,net1\n\n\
        [s1]\n#first\narch: amd64\nsnaptime: 1795233627\n";

    #[test]
    fn a_configuration_survives_a_round_trip() {
        let config = GuestConfig::parse(TEXT);
        assert_eq!(config.print(), TEXT);
        assert_eq!(config.main.get("description"), Some("line one\ntäg: 5%\n"));
        assert_eq!(config.main.get("env"), Some("A=1\0B=two words"));
        assert_eq!(config.pending_delete, ["env", "net1"]);
        assert_eq!(config.upcoming().get("env"), None);
        assert_eq!(config.digest().len(), 40);
    }

    #[test]
    fn unused_volumes_take_the_lowest_free_key_once() {
        let mut section = Section::default();
        section.set("unused1", "s:1/b");
        assert_eq!(GuestConfig::add_unused(&mut section, "s:1/a").as_deref(), Some("unused0"));
        assert_eq!(GuestConfig::add_unused(&mut section, "s:1/a"), None);
        assert_eq!(GuestConfig::add_unused(&mut section, "s:1/c").as_deref(), Some("unused2"));
    }
}
