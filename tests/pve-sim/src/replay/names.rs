//! Names that differ between a recording and its replay: task names, archives with a time in their name, digests, snapshot times.
//!
//! In: pairs learnt from answers. Out: a text with recorded names replaced by ours, for requests and for expectations.
use std::collections::BTreeMap;

use regex::Regex;

/// The dictionary.
#[derive(Debug)]
pub struct Names {
    pairs: BTreeMap<String, String>,
    archive: Regex,
}

impl Names {
    /// An empty one.
    ///
    /// # Errors
    /// Never in practice: the pattern is fixed.
    pub fn new() -> Result<Self, regex::Error> {
        Ok(Self {
            pairs: BTreeMap::new(),
            archive: Regex::new(r"vzdump-lxc-\d+-\d{4}_\d\d_\d\d-\d\d_\d\d_\d\d")?,
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
            let made = lines.iter().filter(|line| line.contains("creating vzdump archive"));
            made.filter_map(|line| self.archive.find(line).map(|found| found.as_str().to_owned())).collect()
        };
        for (recorded, ours) in found(recorded).iter().zip(found(ours)) {
            self.learn(recorded, &ours);
        }
    }

    /// Replaces recorded names by ours.
    #[must_use]
    pub fn ours(&self, text: &str) -> String {
        let mut out = text.to_owned();
        for (recorded, ours) in &self.pairs {
            if out.contains(recorded.as_str()) {
                out = out.replace(recorded.as_str(), ours);
            }
        }
        out
    }
}
