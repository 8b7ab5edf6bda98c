//! Storage targets and backup policies of hosts, with their users.

use holdfast_protocol::resource::PartKind;
use holdfast_protocol::resource::view::{PartReport, PartState, PartView};

use crate::RenderError;
use crate::frame::Frame;
use crate::sheet::{Link, Part, Sheet};
use crate::storage::status;
use crate::table::{Cell, Table};
use crate::words::{Tone, Word};

/// A part, and the host that it is of.
pub struct OnHost {
    pub host: String,
    pub view: PartView,
}

/// Title of a list, its way of addresses, and what is said where it is empty.
const fn words_of(kind: PartKind) -> (&'static str, &'static str, &'static str) {
    match kind {
        PartKind::StorageTarget => {
            ("Storage targets", "storage-targets", "The document names no storage target.")
        }
        PartKind::Policy => ("Backup policies", "policies", "No document names a backup policy."),
        PartKind::Guest => ("Guests", "guests", "The document names no guest."),
        PartKind::Volume => ("Volumes", "volumes", "The guest has no volume."),
    }
}

/// Parts of one kind, of one host or of all.
///
/// # Errors
/// [`RenderError`].
pub fn list(
    frame: &Frame,
    kind: PartKind,
    host: Option<&str>,
    parts: &[OnHost],
    next: Option<&str>,
) -> Result<String, RenderError> {
    let (title, path, empty) = words_of(kind);
    let rows = parts.iter().map(|OnHost { host, view }| {
        [
            Cell::link(format!("/hosts/{host}/{path}/{}", view.name), &view.name),
            Cell::link(format!("/hosts/{host}"), host),
            Cell::state(state(view.state)),
            Cell::note(summary(view)),
            Cell::text(users(view)),
        ]
    });
    let table = Table::new(title, ["Name", "Host", "State", "In short", "Used by"], rows);
    let mut sheet = match host {
        Some(host) => {
            let mut sheet = Sheet::new(format!("{title} of {host}"));
            sheet.up = Some(Link::new(format!("/hosts/{host}"), host));
            sheet
        }
        None => Sheet::new(title),
    };
    sheet = sheet.with_next(next, &[]);
    sheet.parts.push(Part::of_table("list", "", table, empty));
    sheet.render(frame)
}

fn users(view: &PartView) -> String {
    match view.used_by.as_slice() {
        [] => "nothing".to_owned(),
        [one] => one.of.clone(),
        [one, rest @ ..] => format!("{} and {} more", one.of, rest.len()),
    }
}

fn summary(view: &PartView) -> String {
    use holdfast_protocol::resource::PartContent;
    match view.desired.as_ref().map(|desired| &desired.value) {
        Some(PartContent::Policy(policy)) => {
            let tiers = &policy.tiers;
            let snapshot = tiers.snapshot.as_ref().map(|tier| format!("snapshot {}", tier.schedule));
            let local =
                tiers.local.as_ref().map(|tier| format!("local {} to {}", tier.schedule, tier.target));
            let off_site = tiers
                .off_site
                .as_ref()
                .map(|tier| format!("off-site {} to {}", tier.backup.schedule, tier.backup.target));
            let all: Vec<String> = snapshot.into_iter().chain(local).chain(off_site).collect();
            if all.is_empty() { "no tier".to_owned() } else { all.join("; ") }
        }
        Some(PartContent::StorageTarget(target)) => {
            format!("{}, {}, {}, {}", target.role, target.class, target.backend, target.state)
        }
        Some(PartContent::Guest(_) | PartContent::Volume(_)) | None => String::new(),
    }
}

fn state(state: PartState) -> Word {
    match state {
        PartState::Settled => Word::new("settled", Tone::Good),
        PartState::Differs => Word::new("differs", Tone::Warning),
        PartState::Unreported => Word::new("not reported", Tone::Plain),
        PartState::Unnamed => Word::new("not in the document", Tone::Warning),
    }
}

/// One part. `document` is its text in the document.
///
/// # Errors
/// [`RenderError`].
pub fn one(
    frame: &Frame,
    host: &str,
    view: &PartView,
    document: Option<&str>,
) -> Result<String, RenderError> {
    let (title, path, _) = words_of(view.kind);
    let mut sheet = Sheet::new(view.name.clone());
    sheet.up = Some(Link::new(format!("/hosts/{host}/{path}"), format!("{title} of {host}")));
    sheet.state = Some(state(view.state));
    sheet.facts = facts(frame, view);
    if !view.differences.is_empty() {
        let rows = view.differences.iter().map(|one| {
            [Cell::text(&one.path), Cell::or_dash(one.desired.as_ref()), Cell::or_dash(one.current.as_ref())]
        });
        let table = Table::new("Differences", ["Field", "Document", "Host"], rows);
        sheet.parts.push(Part::of_table("differences", "What differs", table, ""));
    }
    let rows = view.used_by.iter().map(|user| [Cell::text(&user.of), Cell::code(&user.field)]);
    let table = Table::new("Used by", ["What uses it", "In"], rows);
    sheet.parts.push(Part::of_table("users", "Used by", table, "Nothing in the document uses it."));
    sheet.parts.extend(reported(view));
    if let Some(document) = document {
        let mut part = Part::new("document", "In the document");
        part.text = Some(document.to_owned());
        sheet.parts.push(part);
    }
    sheet.render(frame)
}

fn facts(frame: &Frame, view: &PartView) -> Vec<(&'static str, Cell)> {
    let mut facts = Vec::new();
    if let Some(desired) = &view.desired {
        let at = Cell::when(frame.when(desired.put_at)).with_small(Some(format!("by {}", desired.author)));
        facts.push(("Document", Cell::number(format!("version {}", desired.generation))));
        facts.push(("Put", at));
    }
    if let Some(applied) = &view.last_applied {
        facts.push(("The host holds", Cell::number(format!("version {}", applied.generation))));
    }
    if let Some(current) = &view.current {
        facts.push(("Reported", Cell::when(frame.when(current.reported_at))));
        if let PartReport::StorageTarget(target) = &current.value {
            facts.push(("Is", Cell::state(status(target.status))));
            facts.push(("Since", Cell::when(frame.when(target.since))));
            facts.extend(target.device.as_ref().map(|device| ("Device", Cell::code(device))));
            facts
                .extend(target.iops.map(|iops| ("Durable writes", Cell::number(format!("{iops} a second")))));
        }
    }
    facts
}

fn reported(view: &PartView) -> Option<Part> {
    match &view.current.as_ref()?.value {
        PartReport::StorageTarget(target) => {
            let lines = std::iter::once(target.reason.clone()).chain(target.entry.iter().cloned());
            let off_site = target.off_site.iter().flat_map(|report| report.lines());
            let lines: Vec<String> = lines.chain(off_site).filter(|line| !line.is_empty()).collect();
            let mut part = Part::new("reported", "As the host reports it");
            part.text = Some(lines.join("\n"));
            (!lines.is_empty()).then_some(part)
        }
        PartReport::Policy(policy) => {
            let rows = policy.guests.iter().map(|one| {
                let differs = one.differs.join("; ");
                let word = if differs.is_empty() {
                    Word::new("in force", Tone::Good)
                } else {
                    Word::new("not as here", Tone::Warning)
                };
                [Cell::text(&one.guest.name), Cell::state(word), Cell::note(differs)]
            });
            let table = Table::new("Guests under it", ["Guest", "State", "What differs"], rows);
            Some(Part::of_table("guests", "Guests under it", table, "No guest is under it."))
        }
        PartReport::Guest(_) | PartReport::Volume(_) => None,
    }
}
