//! Names that differ between a recording and its replay.
//!
//! In: pairs learnt from answers. Out: a text with recorded names replaced by ours, for requests and for expectations.
use std::collections::BTreeMap;

use regex::Regex;
use serde_json::Value;

use crate::storage::backup_key::short;

#[derive(Debug)]
pub struct Names {
    pairs: BTreeMap<String, String>,
    archive: Regex,
    snapshot: Regex,
    time: Regex,
    print: Regex,
}

impl Names {
    /// An empty one.
    ///
    /// # Errors
    /// Never in practice: the pattern is fixed.
    pub fn new() -> Result<Self, regex::Error> {
        Ok(Self {
            // The content of a key was scrubbed from the recording. A text of the same length that is no key replaces it.
            pairs: BTreeMap::from([("<key>".to_owned(), "A".repeat(44))]),
            archive: Regex::new(r"vzdump-lxc-\d+-\d{4}_\d\d_\d\d-\d\d_\d\d_\d\d")?,
            snapshot: Regex::new(r"ct/\d+/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")?,
            time: Regex::new(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00$")?,
            print: Regex::new(r"^([0-9a-f]{2}:){31}[0-9a-f]{2}$")?,
        })
    }

    /// Learns that `recorded` is `ours`.
    pub fn learn(&mut self, recorded: &str, ours: &str) {
        if !recorded.is_empty() && recorded != ours {
            self.pairs.insert(recorded.to_owned(), ours.to_owned());
        }
    }

    /// Learns archive names from two logs of the same task, in their order.
    pub fn learn_archives(&mut self, recorded: &[String], ours: &[String]) {
        let found = |lines: &[String]| -> Vec<String> {
            let name = |line: &String| {
                match line.split_once("INFO: creating ")?.1 {
                    rest if rest.starts_with("vzdump archive") => self.archive.find(rest),
                    rest if rest.starts_with("Proxmox Backup Server archive") => self.snapshot.find(rest),
                    _ => None,
                }
                .map(|found| found.as_str().to_owned())
            };
            lines.iter().filter_map(name).collect()
        };
        for (recorded, ours) in found(recorded).iter().zip(found(ours)) {
            self.learn(recorded, &ours);
        }
    }

    /// Pairs a key that was made in the recording with one that is made now, when both have the same form. The recorder scrubbed its content.
    pub fn learn_key(&mut self, recorded: &str, ours: &str) {
        let form = |text: &str| {
            let key: Value = serde_json::from_str(text).ok()?;
            let map = key.as_object()?;
            let word = |name: &str| map.get(name).and_then(Value::as_str).map(str::to_owned);
            let times =
                ["created", "modified"].map(|name| word(name).filter(|time| self.time.is_match(time)));
            let print = word("fingerprint").filter(|print| self.print.is_match(print))?;
            let whole = word("data").is_some() && times.iter().all(Option::is_some);
            whole.then(|| (map.keys().cloned().collect::<Vec<_>>(), map.get("kdf").cloned(), print))
        };
        let (Some(then), Some(now)) = (form(recorded), form(ours)) else { return };
        if (&then.0, &then.1) == (&now.0, &now.1) {
            self.learn(recorded, ours);
            // As it is written in an answer.
            let within = |text: &str| Value::from(text).to_string().trim_matches('"').to_owned();
            self.learn(&within(recorded), &within(ours));
            self.learn(short(&then.2), short(&now.2));
            self.learn(&then.2, &now.2);
        }
    }

    /// Replaces recorded names by ours; of two that begin alike the longer one first.
    #[must_use]
    pub fn ours(&self, text: &str) -> String {
        let mut out = text.to_owned();
        for (recorded, ours) in self.pairs.iter().rev() {
            if out.contains(recorded.as_str()) {
                out = out.replace(recorded.as_str(), ours);
            }
        }
        out
    }
}
