//! Recorded reads of the node itself.
//!
//! In: the recorded output. Out: what is different here now. Sizes are compared because they distinguish a key with a line end from one
//! without. Deliberately absent: everything else that was read.
use std::collections::BTreeMap;

use regex::Regex;

use super::names::Names;
use crate::node::World;
use crate::storage::config::StorageConfig;

/// The compared part of one recorded read.
#[derive(Debug, PartialEq, Eq)]
pub struct Look {
    secrets: BTreeMap<String, u64>,
    entries: Vec<(String, String)>,
}

impl Look {
    /// Parses the recorded output; nothing when it does not list storages' secrets.
    #[must_use]
    pub fn read(output: &str) -> Option<Self> {
        let file = Regex::new(r"^-rw------- +1 root www-data +(\d+) .* (\S+)$").ok()?;
        let shown = |line: &str| -> Option<(String, u64)> {
            let found = file.captures(line)?;
            Some((found.get(2)?.as_str().to_owned(), found.get(1)?.as_str().parse().ok()?))
        };
        if !output.contains("drwx------ 2 root www-data") {
            return None;
        }
        let mut entries: Vec<(String, String)> = Vec::new();
        let mut open = false;
        for line in output.lines() {
            if line.starts_with("pbs: ") {
                entries.push((line.trim_start_matches("pbs: ").to_owned(), format!("{line}\n")));
                open = true;
            } else if let Some((_, text)) = entries.last_mut().filter(|_| open && line.starts_with('\t')) {
                text.push_str(&format!("{line}\n"));
            } else {
                // A definition that ends in an empty line was shown whole.
                if let Some((_, text)) = entries.last_mut().filter(|_| open && line.is_empty()) {
                    text.push('\n');
                }
                open = false;
            }
        }
        Some(Self { secrets: output.lines().filter_map(shown).collect(), entries })
    }

    /// The differences here.
    #[must_use]
    pub fn differences(&self, world: &World, names: &Names) -> Vec<String> {
        let mut found = Vec::new();
        let folder = std::fs::read_dir(world.store().secrets()).into_iter().flatten().flatten();
        let ours: BTreeMap<String, u64> = folder
            .filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.metadata().ok()?.len())))
            .collect();
        if ours != self.secrets {
            found.push(format!("secrets are {ours:?}, recorded {:?}", self.secrets));
        }
        for (name, text) in &self.entries {
            let shown = StorageConfig::parse(&names.ours(text));
            let (Some(shown), Some(held)) = (shown.find(name), world.storage.find(name)) else {
                found.push(format!("storage {name} is not defined"));
                continue;
            };
            let whole = text.ends_with("\n\n");
            let same = shown.props.iter().all(|(key, value)| held.get(key) == Some(value))
                && (!whole || shown.props.len() == held.props.len());
            if !same {
                found.push(format!("{name} is {:?}, recorded {:?}", held.props, shown.props));
            }
        }
        found
    }
}
