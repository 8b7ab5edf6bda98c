//! Audits: their ends by host, and records about a guest.

use holdfast_protocol::guest_audit::GuestAuditView;
use holdfast_protocol::local::audit::AuditRecord;
use holdfast_protocol::operator::{AuditEvidence, HostView};
use jiff::Timestamp;

use crate::RenderError;
use crate::frame::{Frame, When};
use crate::sheet::{Command, Link, Part, Sheet};
use crate::table::{Cell, Table};
use crate::words::{Tone, Word};

/// A host, and what the hub keeps of its audit.
pub struct HostAudit {
    pub host: HostView,
    pub evidence: AuditEvidence,
}

/// The ends of the audits of all hosts.
///
/// # Errors
/// [`RenderError`].
pub fn render(frame: &Frame, hosts: &[HostAudit], next: Option<&str>) -> Result<String, RenderError> {
    let rows = hosts.iter().map(|one| {
        let newest = one.evidence.heads.first();
        [
            Cell::link(format!("/hosts/{}/audit-heads", one.host.name), &one.host.name),
            Cell::state(verdict(&one.evidence)),
            Cell::number(newest.map_or(0, |head| head.number)),
            Cell::code(newest.map(|head| short(&head.chain)).unwrap_or_default()),
            Cell::when_or(newest.map(|head| frame.when(head.at)), "never"),
        ]
    });
    let table = Table::new("Audits", ["Host", "Chain", "Lines", "Newest head", "Reported"], rows);
    let mut sheet = Sheet::new("Audit").with_next(next, &[]);
    sheet.lead = Some(
        "Each host chains what it does, line by line. The hub keeps the ends that it was shown: one that does not \
         continue an earlier one is evidence that the audit was changed."
            .to_owned(),
    );
    sheet.parts.push(Part::of_table("hosts", "", table, "No host yet."));
    sheet.render(frame)
}

fn verdict(evidence: &AuditEvidence) -> Word {
    if !evidence.breaks.is_empty() {
        return Word::new("another history was shown", Tone::Bad);
    }
    if evidence.heads.is_empty() {
        return Word::new("not reported yet", Tone::Plain);
    }
    Word::new("each head continues the last", Tone::Good)
}

/// As much of a hash as is compared by eye in a list.
fn short(chain: &str) -> String {
    chain.chars().take(16).collect()
}

/// What the hub keeps of the audit of one host.
///
/// # Errors
/// [`RenderError`].
pub fn heads(frame: &Frame, host: &str, evidence: &AuditEvidence) -> Result<String, RenderError> {
    let mut sheet = Sheet::new(format!("Audit of {host}"));
    sheet.up = Some(Link::new("/audit", "Audit"));
    sheet.state = Some(verdict(evidence));
    let rows = evidence.breaks.iter().map(|one| {
        [
            Cell::when(frame.when(one.at)),
            Cell::code(format!("{} {}", one.kept.number, one.kept.chain)),
            Cell::code(format!("{} {}", one.found.number, one.found.chain)),
        ]
    });
    if !evidence.breaks.is_empty() {
        let table = Table::new("Other histories", ["Reported", "Seen before", "Found then"], rows);
        sheet.parts.push(Part::of_table("breaks", "Another history", table, ""));
    }
    let mut part = Part::new("verify", "Check the whole chain");
    part.note = Some("On the host, then on your own machine:".to_owned());
    part.commands.push(Command::plain("sudo agentd audit export > audit.jsonl".to_owned()));
    part.commands.push(Command::plain(format!("holdfast audit verify audit.jsonl --host {host}")));
    sheet.parts.push(part);
    let rows = evidence
        .heads
        .iter()
        .map(|head| [Cell::number(head.number), Cell::code(&head.chain), Cell::when(frame.when(head.at))]);
    let table = Table::new("Heads", ["Lines", "Head", "Reported"], rows);
    sheet.parts.push(Part::of_table("heads", "Heads", table, "The host has not reported one."));
    sheet.render(frame)
}

/// What the hub keeps of the audit about one guest.
///
/// # Errors
/// [`RenderError`].
pub fn of_guest(
    frame: &Frame,
    host: &str,
    guest: &str,
    audit: &GuestAuditView,
) -> Result<String, RenderError> {
    let mut sheet = Sheet::new("Audit of a guest");
    sheet.up = Some(Link::new(format!("/hosts/{host}/guests/{guest}"), "The guest"));
    let broken = audit.records.iter().chain(&audit.earlier).filter(|record| !record.holds()).count();
    sheet.state = Some(match broken {
        0 => Word::new("each record is what its hash says", Tone::Good),
        _ => Word::new(format!("{broken} records are not what their hashes say"), Tone::Bad),
    });
    sheet.lead = Some(
        "Only records about this guest are shown. Each has the hash of the line before it, so that it fits in one place of \
         the host's chain alone."
            .to_owned(),
    );
    let present = table(frame, audit.records.iter().rev());
    sheet.parts.push(Part::of_table("records", "Records", present, "The host sent none."));
    if !audit.earlier.is_empty() {
        let earlier = table(frame, audit.earlier.iter().rev());
        sheet.parts.push(Part::of_table("earlier", "Of earlier lives of the host", earlier, ""));
    }
    sheet.render(frame)
}

fn table<'a>(frame: &Frame, records: impl Iterator<Item = &'a AuditRecord>) -> Table {
    let rows = records.map(|record| {
        let line = &record.line;
        [
            Cell::number(line.number),
            Cell::when_or(at(frame, line.at_us), "at no time"),
            Cell::text(line.action.replace('_', " ")),
            Cell::note(&line.detail),
            Cell::code(&line.chain),
            Cell::state(if record.holds() {
                Word::new("holds", Tone::Good)
            } else {
                Word::new("does not hold", Tone::Bad)
            }),
        ]
    });
    Table::new("Records", ["Number", "When", "What", "More", "Hash", "Check"], rows)
}

fn at(frame: &Frame, micros: i64) -> Option<When> {
    Timestamp::from_microsecond(micros).ok().map(|at| frame.when(at))
}
