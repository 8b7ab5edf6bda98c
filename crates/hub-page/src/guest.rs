//! The page of one guest.

use askama::Template;
use holdfast_protocol::guest_audit::GuestAuditView;
use holdfast_protocol::operator::GuestOnHost;
use holdfast_protocol::protection::Protection;
use holdfast_protocol::report::{FieldState, InForce};
use holdfast_protocol::time_text::{bytes, span};
use holdfast_protocol::usage::UsageSeries;
use holdfast_protocol::work_order::WorkOrderView;
use jiff::Timestamp;

use crate::RenderError;
use crate::chart::{ChartSpan, Charts};
use crate::frame::{Frame, When};
use crate::orders::{self, OrderRow};
use crate::words::{self, Word};

/// What the page is made of.
#[derive(Clone, Copy)]
pub struct Guest<'a> {
    pub one: &'a GuestOnHost,
    /// What it used, and how far back it is shown.
    pub usage: Option<(ChartSpan, &'a UsageSeries)>,
    /// What its host wrote down about it.
    pub audit: Option<&'a GuestAuditView>,
    /// Its newest work orders.
    pub orders: &'a [WorkOrderView],
    /// What makes each order of this page one, however often its form is sent.
    pub once: &'a str,
    pub certificate: Certificate,
}

/// Whether the hub has a restore certificate of the guest that the person may read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certificate {
    None,
    Kept,
}

/// Records of the timeline, at most.
const TIMELINE_SHOWN: usize = 40;

struct Moment {
    at: When,
    what: String,
    detail: String,
}

struct FieldRow {
    path: String,
    desired: String,
    current: String,
    applied: String,
    applied_at: Option<When>,
    next_start: &'static str,
    /// Marks of the values that are not as the document says.
    current_mark: &'static str,
    applied_mark: &'static str,
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
    /// The way to it, which those of its own pages begin with.
    page: Option<String>,
    host: String,
    /// Where its part of the document is changed.
    change: Option<String>,
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
    uid: Option<String>,
    usage: Option<Charts>,
    timeline: Vec<Moment>,
    orders: Vec<OrderRow>,
    once: &'a str,
    has_certificate: bool,
}

/// # Errors
/// [`RenderError`].
pub fn render(frame: &Frame, shown: &Guest<'_>) -> Result<String, RenderError> {
    let one = shown.one;
    let guest = &one.guest;
    let list = crate::guests::row(frame, one);
    let report = guest.protection.as_deref();
    let posture = report.and_then(|report| report.posture.as_ref());
    let page = GuestPage {
        frame,
        name: &guest.name,
        change: list.link.as_ref().filter(|_| frame.may_change()).map(|link| format!("{link}/edit")),
        page: list.link,
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
        uid: guest.uid.map(|uid| uid.to_string()),
        usage: shown.usage.map(|(span, series)| Charts::new(frame, span, series)),
        timeline: shown.audit.map(|audit| timeline(frame, audit)).unwrap_or_default(),
        orders: orders::rows(frame, one.host.as_str(), shown.orders),
        once: shown.once,
        has_certificate: shown.certificate == Certificate::Kept,
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

/// The newest records first. Single steps are left to the audit itself.
fn timeline(frame: &Frame, audit: &GuestAuditView) -> Vec<Moment> {
    let lines = audit.records.iter().rev().map(|record| &record.line);
    let whole = lines.filter(|line| !line.action.starts_with("step_") && !line.action.starts_with("undo_"));
    let moment = |line: &holdfast_protocol::audit::AuditLine| Moment {
        at: frame.when(Timestamp::from_microsecond(line.at_us).unwrap_or(frame.now)),
        what: line.action.replace('_', " "),
        detail: line.detail.clone(),
    };
    whole.take(TIMELINE_SHOWN).map(moment).collect()
}

fn field_row(frame: &Frame, field: &FieldState) -> FieldRow {
    let or_dash = |text: Option<&String>| text.cloned().unwrap_or_else(|| "—".to_owned());
    let mark = |value: Option<&String>| if value == field.desired.as_ref() { "" } else { "≠" };
    FieldRow {
        current_mark: mark(field.observed.as_ref()),
        applied_mark: mark(field.applied.as_ref().map(|applied| &applied.value)),
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
