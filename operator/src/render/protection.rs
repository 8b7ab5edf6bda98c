//! How guests are protected: what is in force, line by line, and what of the document's wish is held.

use holdfast_protocol::id::HostName;
use holdfast_protocol::protection::ProtectionReport;
use holdfast_protocol::report::GuestReport;

use super::table::{NOTHING, Tone, plain, table};
use crate::screen::Style;

const HEADER: [&str; 4] = ["NAME", "HOST", "STATE", "PROMISE"];

/// Guests of ours, those that nothing is promised first.
pub fn protection(guests: &[(&HostName, &GuestReport)], style: Style) -> String {
    let mut ours: Vec<_> = guests.iter().filter(|(_, guest)| guest.uid.is_some()).collect();
    if ours.is_empty() {
        return "No guest of ours is reported.\n".to_owned();
    }
    ours.sort_by_key(|(host, guest)| (guest.protection.is_some(), *host, &guest.name, guest.vmid));
    let rows = ours.iter().flat_map(|(host, guest)| {
        let rows = guest.protection.as_deref().map_or_else(nothing, lines);
        rows.into_iter().map(move |(state, tone, promise)| {
            vec![plain(&guest.name), plain(host), (state.to_owned(), tone), plain(promise)]
        })
    });
    table(&HEADER, rows, style)
}

type Line = (&'static str, Tone, String);

fn nothing() -> Vec<Line> {
    vec![("none", Tone::Bad, NOTHING.to_owned())]
}

fn lines(report: &ProtectionReport) -> Vec<Line> {
    let in_force = report.in_force.iter().flat_map(|promise| promise.lines());
    let mut lines: Vec<Line> = in_force.map(|line| ("in force", Tone::Good, line)).collect();
    if lines.is_empty() {
        lines = nothing();
    }
    lines.extend(report.held.iter().map(|held| ("held", Tone::Look, held.clone())));
    lines
}

/// The same for one guest, as pairs of a list.
pub fn pairs(report: Option<&ProtectionReport>) -> Vec<(&'static str, String)> {
    let Some(report) = report else {
        return vec![("Protected", "nothing is promised about its backups".to_owned())];
    };
    let part = |name: &'static str, lines: Vec<String>| {
        lines.into_iter().enumerate().map(move |(n, line)| (if n == 0 { name } else { "" }, line))
    };
    let in_force = report.in_force.as_ref().map(holdfast_protocol::protection::Protection::lines);
    let wished = report.wished.as_ref().map(holdfast_protocol::protection::Protection::lines);
    let mut pairs: Vec<_> =
        part("In force", in_force.unwrap_or_else(|| vec!["nothing yet".to_owned()])).collect();
    pairs.extend(part("Wished", wished.unwrap_or_default()));
    pairs.extend(part("Held", report.held.clone()));
    pairs
}
