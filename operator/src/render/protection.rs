//! Tables of protection: what is in force, and what is held.

use holdfast_protocol::id::HostName;
use holdfast_protocol::protection::tested::span;
use holdfast_protocol::protection::{Posture, ProtectionReport, TierTested};
use holdfast_protocol::report::GuestReport;
use jiff::Timestamp;

use super::table::{Field, NOTHING, Tone, plain, table};
use super::time::when;
use crate::screen::Style;

const HEADER: [&str; 4] = ["NAME", "HOST", "STATE", "PROMISE"];

/// The order of those that need a person most: in no policy, then by how well they are protected.
pub fn rank(guest: &GuestReport) -> (u8, Option<Posture>) {
    let report = guest.protection.as_deref();
    let promised = report.is_some_and(|report| report.in_force.is_some());
    (u8::from(promised), report.and_then(|report| report.posture.as_ref()).map(|posture| posture.is))
}

/// The word for a guest's protection in a table.
pub fn posture(guest: &GuestReport) -> Field {
    let Some(posture) = guest.protection.as_deref().and_then(|report| report.posture.as_ref()) else {
        return plain(NOTHING);
    };
    let tone = match posture.is {
        Posture::Unprotected => Tone::Bad,
        Posture::Unknown | Posture::Attention => Tone::Look,
        Posture::Protected => Tone::Good,
    };
    (posture.is.as_str().to_owned(), tone)
}

/// Managed guests, those without any promise first.
pub fn protection(guests: &[(&HostName, &GuestReport)], style: Style) -> String {
    let mut ours: Vec<_> = guests.iter().filter(|(_, guest)| guest.uid.is_some()).collect();
    if ours.is_empty() {
        return "No guest of ours is reported.\n".to_owned();
    }
    ours.sort_by_key(|(host, guest)| (rank(guest), *host, &guest.name, guest.vmid));
    let rows = ours.iter().flat_map(|(host, guest)| {
        let rows = guest.protection.as_deref().map_or_else(nothing, lines);
        rows.into_iter().map(move |(state, tone, promise)| {
            vec![plain(&guest.name), plain(host), (state.to_owned(), tone), plain(promise)]
        })
    });
    table(&HEADER, rows, style)
}

type Line = (&'static str, Tone, String);

/// How well it is protected, a line for each reason.
fn postures(report: &ProtectionReport) -> impl Iterator<Item = Line> {
    report.posture.iter().flat_map(|posture| {
        let tone = match posture.is {
            Posture::Unprotected => Tone::Bad,
            Posture::Unknown | Posture::Attention => Tone::Look,
            Posture::Protected => Tone::Good,
        };
        posture.why.iter().map(move |why| (posture.is.as_str(), tone, why.clone()))
    })
}

fn nothing() -> Vec<Line> {
    vec![("none", Tone::Bad, NOTHING.to_owned())]
}

fn lines(report: &ProtectionReport) -> Vec<Line> {
    let in_force = report.in_force.iter().flat_map(|promise| promise.lines());
    let mut lines: Vec<Line> = in_force.map(|line| ("in force", Tone::Good, line)).collect();
    if lines.is_empty() {
        lines = nothing();
    }
    lines.extend(postures(report));
    lines.extend(report.held.iter().map(|held| ("held", Tone::Look, held.clone())));
    lines
}

/// What restore tests of a tier showed: the last one, what it saw, how long it took, and how long others did.
fn tested(tested: &TierTested, now: Timestamp) -> Vec<String> {
    let last = &tested.last;
    let mut lines = vec![
        format!("{}: {}, {}", tested.tier, last.verdict.as_str(), when(last.at, now)),
        format!("  {}", last.why),
    ];
    let restore = last.took.restore_s.map(|seconds| format!("restored in {}", span(seconds)));
    let up = last.took.up_s.map(|seconds| format!("up after {}", span(seconds)));
    let took: Vec<String> = restore.into_iter().chain(up).collect();
    if !took.is_empty() {
        lines.push(format!("  {}", took.join(", ")));
    }
    lines.push(format!("  {}", tested.trend));
    lines
}

/// The same for one guest, as pairs of a list.
pub fn pairs(report: Option<&ProtectionReport>, now: Timestamp) -> Vec<(&'static str, String)> {
    let Some(report) = report else {
        return vec![("Protected", "nothing is promised about its backups".to_owned())];
    };
    let part = |name: &'static str, lines: Vec<String>| {
        lines.into_iter().enumerate().map(move |(n, line)| (if n == 0 { name } else { "" }, line))
    };
    let posture = report.posture.iter().flat_map(|posture| {
        let (word, why) = (posture.is.as_str(), posture.why.iter());
        why.enumerate().map(move |(n, why)| if n == 0 { format!("{word}: {why}") } else { why.clone() })
    });
    let posture: Vec<String> = posture.collect();
    let in_force = report.in_force.as_ref().map(holdfast_protocol::protection::Protection::lines);
    let desired = report.desired.as_ref().map(holdfast_protocol::protection::Protection::lines);
    let mut pairs: Vec<_> = part("Protected", posture).collect();
    pairs.extend(part("Tested", report.tested.iter().flat_map(|tier| tested(tier, now)).collect()));
    pairs.extend(part("In force", in_force.unwrap_or_else(|| vec!["nothing yet".to_owned()])));
    pairs.extend(part("Desired", desired.unwrap_or_default()));
    pairs.extend(part("Held", report.held.clone()));
    pairs
}
