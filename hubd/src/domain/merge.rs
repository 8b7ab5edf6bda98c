//! The merge of a report into the stored one.
//!
//! In: the stored agent run and its sequence, and the new report's coverage, run and sequence. Out: what to do with its
//! sections and what the next report should carry. A run is identified by the agent's start time; each run begins with
//! a full report. Deliberately absent: the sections themselves.

use holdfast_protocol::checkin::{Coverage, Need};
use jiff::Timestamp;

/// The stored report of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredReport {
    /// When that agent run began, where it said so.
    pub run: Option<Timestamp>,
    /// The newest sequence number of that run.
    pub sequence: u64,
}

/// A new report, without its sections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IncomingReport {
    /// Which sections it carries.
    pub coverage: Coverage,
    /// When its agent run began, where the report says so.
    pub run: Option<Timestamp>,
    /// Its sequence number.
    pub sequence: u64,
}

/// How a report's sections are merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merge {
    /// They are all that a run of the agent knows, and are laid over the stored ones. What the agent has not checked
    /// yet stays as it was last reported. Later changes are merged over them.
    Replace,
    /// They are merged over the stored ones.
    Merge,
    /// They are dropped; the contact counts all the same.
    Ignore,
}

/// Judges a report.
#[must_use]
pub fn judge(stored: Option<StoredReport>, incoming: IncomingReport) -> (Merge, Need) {
    let Some(stored) = stored else {
        return match incoming.coverage {
            Coverage::Full => (Merge::Replace, Need::Changed),
            Coverage::Changed | Coverage::Farewell => (Merge::Ignore, Need::Full),
        };
    };
    let same_run = incoming.run.is_none() || incoming.run == stored.run;
    let newer = incoming.sequence > stored.sequence;
    match incoming.coverage {
        // A late copy of an old full report of the same run would put back what changed since.
        Coverage::Full if same_run && incoming.run.is_some() && !newer => (Merge::Ignore, Need::Changed),
        Coverage::Full => (Merge::Replace, Need::Changed),
        Coverage::Changed | Coverage::Farewell if same_run && newer => (Merge::Merge, Need::Changed),
        Coverage::Changed | Coverage::Farewell => (Merge::Ignore, Need::Full),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_report_against_what_is_kept() {
        let (old, new) = (Timestamp::from_second(10).unwrap(), Timestamp::from_second(20).unwrap());
        let stored = Some(StoredReport { run: Some(new), sequence: 5 });
        let table = [
            (None, Coverage::Full, Some(new), 1, Merge::Replace, Need::Changed),
            (None, Coverage::Changed, None, 9, Merge::Ignore, Need::Full),
            (None, Coverage::Farewell, None, 9, Merge::Ignore, Need::Full),
            (stored, Coverage::Changed, None, 6, Merge::Merge, Need::Changed),
            (stored, Coverage::Changed, Some(new), 9, Merge::Merge, Need::Changed),
            (stored, Coverage::Changed, None, 5, Merge::Ignore, Need::Full),
            (stored, Coverage::Changed, Some(old), 6, Merge::Ignore, Need::Full),
            (stored, Coverage::Full, Some(new), 5, Merge::Ignore, Need::Changed),
            (stored, Coverage::Full, Some(new), 6, Merge::Replace, Need::Changed),
            // Another run, and be its clock behind: its own full report is the truth now.
            (stored, Coverage::Full, Some(old), 1, Merge::Replace, Need::Changed),
            (stored, Coverage::Full, None, 1, Merge::Replace, Need::Changed),
            (stored, Coverage::Farewell, None, 6, Merge::Merge, Need::Changed),
        ];
        for (stored, coverage, run, sequence, merge, need) in table {
            let incoming = IncomingReport { coverage, run, sequence };
            assert_eq!(judge(stored, incoming), (merge, need), "{incoming:?} over {stored:?}");
        }
    }
}
