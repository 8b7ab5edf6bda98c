//! What a replay found.
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Counts of one call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Equal, or different in an understood way.
    pub equal: usize,
    /// Of these, different in an understood way.
    pub understood: usize,
    /// All that were played.
    pub total: usize,
}

/// The findings over one or more files.
#[derive(Debug, Default)]
pub struct Report {
    pub calls: BTreeMap<String, Tally>,
    /// Not served, by reason.
    pub out: BTreeMap<String, usize>,
    /// Unexplained differences, a line each.
    pub differences: Vec<String>,
    /// What had to be taken for granted.
    pub premises: Vec<String>,
    /// Entries of the list of understood differences that were used.
    pub used: BTreeSet<usize>,
}

impl Report {
    /// Takes another report in.
    pub fn merge(&mut self, other: Self) {
        for (call, tally) in other.calls {
            let held = self.calls.entry(call).or_default();
            held.equal += tally.equal;
            held.understood += tally.understood;
            held.total += tally.total;
        }
        for (reason, count) in other.out {
            *self.out.entry(reason).or_default() += count;
        }
        self.differences.extend(other.differences);
        self.premises.extend(other.premises);
        self.used.extend(other.used);
    }

    /// The sum over all calls.
    #[must_use]
    pub fn sum(&self) -> Tally {
        self.calls.values().fold(Tally::default(), |sum, tally| Tally {
            equal: sum.equal + tally.equal,
            understood: sum.understood + tally.understood,
            total: sum.total + tally.total,
        })
    }

    /// Coverage by call, premises counted, and the last line `equal N of M`.
    #[must_use]
    pub fn summary(&self) -> String {
        let mut out = String::from("coverage by call (equal/played):\n");
        for (call, tally) in &self.calls {
            let mark = if tally.equal == tally.total { ' ' } else { '!' };
            let note = if tally.understood > 0 {
                format!("  ({} in an understood way)", tally.understood)
            } else {
                String::new()
            };
            let _ = writeln!(out, "{mark} {:>4}/{:<4} {call}{note}", tally.equal, tally.total);
        }
        if !self.out.is_empty() {
            out.push_str("out of scope:\n");
            for (reason, count) in &self.out {
                let _ = writeln!(out, "  {count:>4} {reason}");
            }
        }
        let sum = self.sum();
        let _ = writeln!(
            out,
            "premises taken from the recordings (hand edits between calls): {}",
            self.premises.len()
        );
        let _ = write!(out, "equal {} of {}", sum.equal, sum.total);
        out
    }
}
