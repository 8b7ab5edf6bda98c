//! Table of conditions that a host reports.

use holdfast_protocol::condition::{ConditionSet, ReportedCondition, Severity, Subject};
use holdfast_protocol::report::GuestReport;
use jiff::Timestamp;

use super::table::{Field, Tone, plain, table};
use super::time::age;
use crate::screen::Style;

const HEADER: [&str; 5] = ["SEVERITY", "FOR", "CONDITION", "ABOUT", "MESSAGE"];

/// Conditions, the worst first and the oldest of these first.
pub fn conditions(set: &ConditionSet, guests: &[GuestReport], now: Timestamp, style: Style) -> String {
    let mut sorted: Vec<&ReportedCondition> = set.conditions().iter().collect();
    sorted.sort_by_key(|one| (std::cmp::Reverse(one.severity), one.since));
    let rows = sorted.into_iter().map(|one| {
        vec![
            severity(one.severity),
            plain(age(one.since, now)),
            plain(one.code),
            plain(about(&one.subject, guests)),
            plain(one.message.as_str()),
        ]
    });
    let mut text = table(&HEADER, rows, style);
    if set.left_out() > 0 {
        text.push_str(&format!("{} more conditions are not shown.\n", set.left_out()));
    }
    text
}

/// A guest by its name, where the host reports it.
fn about(subject: &Subject, guests: &[GuestReport]) -> String {
    let guest = subject.guest().and_then(|uid| guests.iter().find(|guest| guest.uid == Some(uid)));
    match (guest, subject) {
        (Some(guest), Subject::Tier { tier, .. }) => format!("{} ({tier})", guest.name),
        (Some(guest), _) => guest.name.clone(),
        (None, subject) => subject.to_string(),
    }
}

/// The severity with its tone.
pub fn severity(severity: Severity) -> Field {
    let tone = match severity {
        Severity::Critical => Tone::Bad,
        Severity::Warning => Tone::Look,
        Severity::Info => Tone::Plain,
    };
    (severity.to_string(), tone)
}
