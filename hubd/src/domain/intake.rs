//! Whether a report begins a run of the agent anew, is laid over what is kept, or comes too late.
//!
//! In: what is kept (the agent run and its sequence), and the new report's coverage, run and sequence. Out: what to do
//! with its sections and what the next report should carry. A run is told by when the agent started; each run begins
//! with a full report. Deliberately absent: the sections themselves.

use holdfast_protocol::checkin::{Coverage, Need};
use jiff::Timestamp;

/// What is kept of a host's reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept {
    /// When that agent run began, where it said so.
    pub run: Option<Timestamp>,
    /// The newest sequence number of that run.
    pub sequence: u64,
}

/// A report, without its sections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arriving {
    /// Which sections it carries.
    pub coverage: Coverage,
    /// When its agent run began, where the report says so.
    pub run: Option<Timestamp>,
    /// Its sequence number.
    pub sequence: u64,
}

/// What is done with a report's sections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intake {
    /// They are all that a run of the agent knows, and are laid over what is kept: what it has not looked at yet stays as
    /// it was last told. Later changes are laid over them.
    Anew,
    /// They are laid over what is kept.
    LayOver,
    /// They are left aside; the host was heard of all the same.
    Aside,
}

/// Judges a report.
#[must_use]
pub fn judge(kept: Option<Kept>, arriving: Arriving) -> (Intake, Need) {
    let Some(kept) = kept else {
        return match arriving.coverage {
            Coverage::Full => (Intake::Anew, Need::Changed),
            Coverage::Changed | Coverage::Farewell => (Intake::Aside, Need::Full),
        };
    };
    let same_run = arriving.run.is_none() || arriving.run == kept.run;
    let newer = arriving.sequence > kept.sequence;
    match arriving.coverage {
        // A late copy of an old full report of the same run would put back what changed since.
        Coverage::Full if same_run && arriving.run.is_some() && !newer => (Intake::Aside, Need::Changed),
        Coverage::Full => (Intake::Anew, Need::Changed),
        Coverage::Changed | Coverage::Farewell if same_run && newer => (Intake::LayOver, Need::Changed),
        Coverage::Changed | Coverage::Farewell => (Intake::Aside, Need::Full),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_report_against_what_is_kept() {
        let (old, new) = (Timestamp::from_second(10).unwrap(), Timestamp::from_second(20).unwrap());
        let kept = Some(Kept { run: Some(new), sequence: 5 });
        let table = [
            (None, Coverage::Full, Some(new), 1, Intake::Anew, Need::Changed),
            (None, Coverage::Changed, None, 9, Intake::Aside, Need::Full),
            (None, Coverage::Farewell, None, 9, Intake::Aside, Need::Full),
            (kept, Coverage::Changed, None, 6, Intake::LayOver, Need::Changed),
            (kept, Coverage::Changed, Some(new), 9, Intake::LayOver, Need::Changed),
            (kept, Coverage::Changed, None, 5, Intake::Aside, Need::Full),
            (kept, Coverage::Changed, Some(old), 6, Intake::Aside, Need::Full),
            (kept, Coverage::Full, Some(new), 5, Intake::Aside, Need::Changed),
            (kept, Coverage::Full, Some(new), 6, Intake::Anew, Need::Changed),
            // Another run, and be its clock behind: its own full report is the truth now.
            (kept, Coverage::Full, Some(old), 1, Intake::Anew, Need::Changed),
            (kept, Coverage::Full, None, 1, Intake::Anew, Need::Changed),
            (kept, Coverage::Farewell, None, 6, Intake::LayOver, Need::Changed),
        ];
        for (kept, coverage, run, sequence, intake, need) in table {
            let arriving = Arriving { coverage, run, sequence };
            assert_eq!(judge(kept, arriving), (intake, need), "{arriving:?} over {kept:?}");
        }
    }
}
