//! The page of one guest.

use askama::Template;
use holdfast_protocol::operator::GuestOnHost;
use holdfast_protocol::protection::Protection;
use holdfast_protocol::report::{FieldState, InForce};
use holdfast_protocol::time_text::{bytes, span};

use crate::RenderError;
use crate::frame::{Frame, When};
use crate::words::{self, Word};

struct FieldRow {
    path: String,
    desired: String,
    current: String,
    applied: String,
    applied_at: Option<When>,
    next_start: &'static str,
}

struct BackupRow {
    tier: String,
    taken: When,
    size: String,
    took: String,
}

struct TestRow {
    tier: String,
    verdict: &'static str,
    at: When,
    why: String,
}

struct Fact {
    name: &'static str,
    value: String,
}

#[derive(Template)]
#[template(path = "guest.html")]
struct GuestPage<'a> {
    frame: &'a Frame,
    name: &'a str,
    host: String,
    status: Word,
    run: Word,
    protection: Word,
    controller: Word,
    as_of: Option<When>,
    facts: Vec<Fact>,
    notes: Vec<String>,
    reasons: Vec<String>,
    promises: Vec<String>,
    held: Vec<String>,
    backups: Vec<BackupRow>,
    tests: Vec<TestRow>,
    fields: Vec<FieldRow>,
}

/// # Errors
/// [`RenderError`].
pub fn render(frame: &Frame, one: &GuestOnHost) -> Result<String, RenderError> {
    let guest = &one.guest;
    let list = crate::guests::row(frame, one);
    let report = guest.protection.as_deref();
    let posture = report.and_then(|report| report.posture.as_ref());
    let page = GuestPage {
        frame,
        name: &guest.name,
        host: one.host.to_string(),
        status: words::guest_status(guest),
        run: words::run(guest),
        protection: words::protection(guest),
        controller: words::controller(guest.controller.as_ref()),
        as_of: list.as_of,
        facts: facts(one),
        notes: guest.conditions.iter().map(|note| note.message.clone()).collect(),
        reasons: posture.map(|posture| posture.why.clone()).unwrap_or_default(),
        promises: report.and_then(|r| r.in_force.as_ref()).map(Protection::lines).unwrap_or_default(),
        held: report.map(|report| report.held.clone()).unwrap_or_default(),
        backups: report.iter().flat_map(|report| &report.newest).map(|one| backup(frame, one)).collect(),
        tests: report.iter().flat_map(|report| &report.tested).map(|one| test(frame, one)).collect(),
        fields: guest.fields.iter().map(|field| field_row(frame, field)).collect(),
    };
    page.render()
}

fn facts(one: &GuestOnHost) -> Vec<Fact> {
    let guest = &one.guest;
    let fact = |name, value: Option<String>| value.map(|value| Fact { name, value });
    let size = guest
        .size
        .map(|size| format!("{}, {} memory, {} root disk", size.cores, size.memory_mib, size.rootfs_gib));
    let all = [
        fact("Customer", guest.customer.as_ref().map(ToString::to_string)),
        fact("VMID", guest.vmid.map(|vmid| vmid.to_string())),
        fact("Uid", guest.uid.map(|uid| uid.to_string())),
        fact("Address", guest.address.map(|address| address.to_string())),
        fact("Size", size),
        fact("Image", guest.golden.as_ref().map(ToString::to_string)),
        fact("Lock", guest.lock.as_ref().map(|lock| lock.kind.to_string())),
        fact("Guest agent", guest.controller.as_ref().map(|seen| seen.version.clone())),
        fact("Volumes", (!guest.volumes.is_empty()).then(|| guest.volumes.join(", "))),
    ];
    all.into_iter().flatten().collect()
}

fn backup(frame: &Frame, one: &holdfast_protocol::protection::NewestBackup) -> BackupRow {
    BackupRow {
        tier: one.tier.to_string(),
        taken: frame.when(one.taken_at),
        size: bytes(one.bytes),
        took: one.took_ms.map_or_else(|| "not measured".to_owned(), |took| span(took / 1000)),
    }
}

fn test(frame: &Frame, one: &holdfast_protocol::protection::TierTested) -> TestRow {
    TestRow {
        tier: one.tier.to_string(),
        verdict: one.last.verdict.as_str(),
        at: frame.when(one.last.at),
        why: one.last.why.to_string(),
    }
}

fn field_row(frame: &Frame, field: &FieldState) -> FieldRow {
    let or_dash = |text: Option<&String>| text.cloned().unwrap_or_else(|| "—".to_owned());
    FieldRow {
        path: field.field.path().to_string(),
        desired: or_dash(field.desired.as_ref()),
        current: or_dash(field.observed.as_ref()),
        applied: or_dash(field.applied.as_ref().map(|applied| &applied.value)),
        applied_at: field.applied.as_ref().map(|applied| frame.when(applied.at)),
        next_start: match field.in_force {
            InForce::Now => "",
            InForce::NextStart => "from its next start",
        },
    }
}
