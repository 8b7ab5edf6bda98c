//! Signed jobs about guests, as customers see them.

use holdfast_protocol::objection::{GuestJobView, ObjectionView};
use jiff::Timestamp;

use super::table::{NOTHING, Tone, plain, table};
use super::time::when;
use crate::screen::Style;

pub fn jobs(all: &[GuestJobView], now: Timestamp, style: Style) -> String {
    if all.is_empty() {
        return "No signed job about your guests is known.\n".to_owned();
    }
    let rows = all.iter().map(|job| {
        let due = job.due_at.map_or_else(|| NOTHING.to_owned(), |at| when(at, now));
        vec![
            plain(job.id),
            plain(job.verb.map_or(NOTHING, |verb| verb.as_str())),
            plain(&job.host),
            plain(job.guest),
            plain(job.state.as_str()),
            plain(due),
            objections(&job.objections),
        ]
    });
    table(&["JOB", "WHAT", "HOST", "GUEST", "STATE", "DONE AFTER", "OBJECTIONS"], rows, style)
}

/// How many object, and the newest of them.
pub fn objections(all: &[ObjectionView]) -> (String, Tone) {
    match all {
        [] => plain(NOTHING),
        [one] => (format!("{}: {}", one.by, one.reason.as_str()), Tone::Bad),
        [.., last] => (format!("{}, last {}: {}", all.len(), last.by, last.reason.as_str()), Tone::Bad),
    }
}

/// After an objection.
pub fn objected(job: &GuestJobView, now: Timestamp) -> String {
    let due = job.due_at.map_or_else(String::new, |at| format!(" It is done {}.", when(at, now)));
    format!(
        "Written down: operators see the objection with job {}.{due} It goes on unless one of them signs a cancel.\n",
        job.id
    )
}
