//! Fuzzed check-ins and reports.

use holdfast_protocol::checkin::{CheckinAnswer, CheckinRequest};
use holdfast_protocol::envelope::{Envelope, ErrorBody};
use holdfast_protocol::report::{REPORT_BYTES_MAX, Sections};

use crate::round;

/// One input.
///
/// # Panics
/// When a rule does not hold.
pub fn target(data: &[u8]) {
    round::document::<CheckinAnswer>(data, 2 * REPORT_BYTES_MAX);
    round::document::<Envelope<CheckinAnswer>>(data, 2 * REPORT_BYTES_MAX);
    round::document::<ErrorBody>(data, REPORT_BYTES_MAX);
    let Some(request) = round::document::<CheckinRequest>(data, REPORT_BYTES_MAX) else { return };
    let now = request.sections;
    let halves = [
        Sections { guests: now.guests.clone(), trust: now.trust.clone(), ..Sections::default() },
        Sections { waiting: Some(Vec::new()), jobs: Some(Vec::new()), ..now.clone() },
        Sections::default(),
    ];
    for before in halves {
        let changed = now.changed_since(&before);
        let mut after = before.clone();
        after.apply(changed.clone());
        let mut expected = before.clone();
        expected.apply(now.clone());
        assert_eq!(after, expected, "a change is lost");
        assert_eq!(changed.is_empty(), expected == before, "noise is a change, or a change is noise");
    }
    assert!(now.changed_since(&now).is_empty());
}
