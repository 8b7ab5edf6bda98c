//! Reports shortened to what the hub accepts.
//!
//! In: the sections of a report. Out: the same where they fit; otherwise fewer conditions and approvals, then fewer guests, with a problem
//! that counts what is missing. Guests that exist stay before guests that are only wanted. Deliberately absent: the other
//! sections, which have bounds of their own.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::report::{GuestReport, GuestStatus, REPORT_BYTES_MAX, Sections};
use serde::Serialize;

/// What the sections may take, in bytes of JSON. The rest of a check-in and the problem itself have the remainder.
const SECTIONS_BYTES_MAX: usize = REPORT_BYTES_MAX - 64 * 1024;

/// What approvals may take where a report is too long, in bytes of JSON.
const APPROVALS_BYTES_MAX: usize = SECTIONS_BYTES_MAX / 4;

/// What conditions may take where a report is too long, in bytes of JSON. A few hundred fit.
const CONDITIONS_BYTES_MAX: usize = SECTIONS_BYTES_MAX / 4;

/// Shortens a report that the hub would refuse.
#[must_use]
pub fn shorten(mut sections: Sections) -> Sections {
    if bytes(&sections) <= SECTIONS_BYTES_MAX {
        return sections;
    }
    if let Some(conditions) = sections.conditions.take() {
        let most = fitting(conditions.conditions().iter(), CONDITIONS_BYTES_MAX);
        sections.conditions = Some(conditions.shortened(most));
    }
    let approvals = sections.waiting.as_ref().map_or(0, Vec::len);
    if let Some(waiting) = &mut sections.waiting {
        waiting.truncate(fitting(waiting.iter(), APPROVALS_BYTES_MAX));
    }
    let guests = sections.guests.take();
    let all = guests.as_ref().map_or(0, Vec::len);
    let room = SECTIONS_BYTES_MAX.saturating_sub(bytes(&sections));
    sections.guests = guests.map(|guests| shorten_guests(guests, room));
    let left = (
        all - sections.guests.as_ref().map_or(0, Vec::len),
        approvals - sections.waiting.as_ref().map_or(0, Vec::len),
    );
    if let Some(agent) = &mut sections.agent {
        agent.problems.push(shortened(left, (all, approvals)));
    }
    sections
}

/// Existing guests first; what is kept stays in its order.
fn shorten_guests(guests: Vec<GuestReport>, room: usize) -> Vec<GuestReport> {
    let mut order: Vec<usize> = (0..guests.len()).collect();
    order.sort_by_key(|index| guests.get(*index).is_some_and(|guest| guest.status == GuestStatus::Absent));
    order.truncate(fitting(order.iter().filter_map(|index| guests.get(*index)), room));
    order.sort_unstable();
    guests
        .into_iter()
        .enumerate()
        .filter_map(|(index, guest)| order.binary_search(&index).is_ok().then_some(guest))
        .collect()
}

/// How many items of a list fit into `room`, each with its comma.
fn fitting<'a, T: Serialize + 'a>(items: impl Iterator<Item = &'a T>, room: usize) -> usize {
    items
        .scan(0_usize, |used, item| {
            *used = used.saturating_add(bytes(item) + 1);
            (*used <= room).then_some(())
        })
        .count()
}

fn bytes<T: Serialize>(value: &T) -> usize {
    serde_json::to_vec(value).map_or(0, |text| text.len())
}

fn shortened((guests, approvals): (usize, usize), (all_guests, all_approvals): (usize, usize)) -> ErrorBody {
    ErrorBody::new(
        ErrorCode::ReportShortened,
        format!(
            "the report is longer than the hub accepts: {guests} of {all_guests} guests and {approvals} of {all_approvals} \
             approvals are left out of it, though the agent works on all of them; `holdfast desired show` has every guest of \
             the document: split it over more hosts"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_protocol::report::WaitingForSignature;
    use serde_json::json;

    fn guest(n: usize, status: &str) -> GuestReport {
        let condition = json!({ "code": "NEEDS_SIGNATURE", "message": "x".repeat(700) });
        let guest = json!({ "name": format!("web-{n}"), "status": status, "run": "unknown", "conditions": [condition] });
        serde_json::from_value(guest).unwrap()
    }

    fn approval() -> WaitingForSignature {
        WaitingForSignature {
            guest: None,
            effect: "provision".to_owned(),
            reason: "it is beyond the budget".to_owned(),
            payload: "y".repeat(600),
            last_backup: None,
            last_proof: None,
        }
    }

    fn report(guests: Vec<GuestReport>, approvals: usize) -> Sections {
        let agent = json!({ "version": "1.0.0", "started_at": "2026-11-21T00:00:00Z", "problems": [] });
        Sections {
            agent: Some(serde_json::from_value(agent).unwrap()),
            guests: Some(guests),
            waiting: Some(vec![approval(); approvals]),
            ..Sections::default()
        }
    }

    #[test]
    fn a_report_that_fits_is_not_touched() {
        let report = report(vec![guest(1, "managed"), guest(2, "absent")], 3);
        assert_eq!(shorten(report.clone()), report);
    }

    #[test]
    fn a_long_report_fits_keeps_existing_guests_and_counts_what_is_missing() {
        let mut guests: Vec<_> = (0..1_500).map(|n| guest(n, "absent")).collect();
        guests.push(guest(9_999, "managed"));
        let short = shorten(report(guests, 1_500));
        assert!(bytes(&short) < REPORT_BYTES_MAX, "{} bytes", bytes(&short));
        let (kept, waiting) = (short.guests.unwrap(), short.waiting.unwrap());
        assert!(kept.len() > 500 && waiting.len() > 200, "{} and {}", kept.len(), waiting.len());
        assert_eq!(kept.first().map(|guest| guest.name.as_str()), Some("web-0"));
        assert_eq!(kept.last().map(|guest| guest.name.as_str()), Some("web-9999"), "it exists");
        let problem = short.agent.unwrap().problems.remove(0);
        assert_eq!(problem.code, ErrorCode::ReportShortened);
        let left = format!("{} of 1501 guests and {} of 1500", 1_501 - kept.len(), 1_500 - waiting.len());
        assert!(problem.message.contains(&left), "{problem}");
        assert!(!problem.message.contains(" 0 of"), "{problem}");
    }

    #[test]
    fn approvals_alone_can_be_too_long() {
        let short = shorten(report(vec![guest(1, "managed")], 3_000));
        assert!(bytes(&short) < REPORT_BYTES_MAX);
        assert_eq!(short.guests.map(|guests| guests.len()), Some(1));
    }
}
