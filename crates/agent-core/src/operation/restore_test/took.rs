//! How long a backup took to come back when it was tried.
//!
//! What comes in: the journal of a test. What goes out: the seconds of its two parts, as far as it came. These are
//! Proxmox's work of the restore, without the time in its queue, and the time between the start and the verdict. A
//! clock that was set back meanwhile gives no duration. A restore that was found again after a crash is counted from
//! when it was found. Pure.

use holdfast_protocol::protection::Took;
use jiff::Timestamp;

use crate::operation::progress::OperationState;
use crate::operation::step::Step;

/// The parts. `seen` is when the verdict came; where none did, only the restore says how long it took.
#[must_use]
pub fn of(test: &OperationState, seen: Timestamp) -> Took {
    let seconds = |from: Timestamp, to: Timestamp| u64::try_from(to.duration_since(from).as_secs()).ok();
    let restore_s = test.worked(Step::Restore).and_then(|(from, to)| seconds(from, to?));
    let up_s = test.tested().and(test.worked(Step::FirstStart)).and_then(|(from, _)| seconds(from, seen));
    Took { restore_s, up_s }
}
