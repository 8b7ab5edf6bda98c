//! The page of one host.

use askama::Template;
use holdfast_protocol::condition::{ConditionSet, ReportedCondition};
use holdfast_protocol::operation::{OperationStatus, OperationView};
use holdfast_protocol::operator::{GuestOnHost, HostDetail};
use holdfast_protocol::report::StorageReport;
use holdfast_protocol::time_text::bytes;
use holdfast_protocol::usage::UsageSeries;
use holdfast_protocol::work_order::{DiagnosticName, WorkOrderView};

use crate::RenderError;
use crate::chart::{self, ChartSpan, Charts};
use crate::frame::{Frame, When};
use crate::guests::{self, Row};
use crate::orders::{self, OrderRow};
use crate::qr;
use crate::words::{self, Word};

/// Operations on the page at most: the open ones, then the newest that ended.
const OPERATIONS_SHOWN: usize = 20;

/// What the page is made of.
#[derive(Clone, Copy)]
pub struct Host<'a> {
    pub detail: &'a HostDetail,
    /// What the host used, and how far back it is shown.
    pub usage: Option<(ChartSpan, &'a UsageSeries)>,
    /// By the hour, for the forecast of its root disk.
    pub hourly: Option<&'a UsageSeries>,
    /// Its newest work orders.
    pub orders: &'a [WorkOrderView],
    /// What makes each order of this page one, however often its form is sent.
    pub once: &'a str,
}

struct Fact {
    name: &'static str,
    value: String,
}

struct ConditionRow {
    severity: Word,
    since: When,
    code: &'static str,
    about: String,
    message: String,
    remedy: String,
}

struct StorageRow {
    name: String,
    state: Word,
    used: String,
    /// Of a hundred; none where it is not known.
    percent: Option<u64>,
}

struct OperationRow {
    kind: &'static str,
    guest: String,
    status: Word,
    step: String,
    opened: When,
    ended: Option<When>,
    problem: Option<String>,
}

struct WaitingRow {
    effect: String,
    reason: String,
    payload: String,
    /// The line that signs it.
    line: String,
    picture: Option<String>,
}

#[derive(Template)]
#[template(path = "host.html")]
struct HostPage<'a> {
    frame: &'a Frame,
    name: String,
    state: Word,
    reason: Option<String>,
    seen: Option<When>,
    facts: Vec<Fact>,
    conditions: Vec<ConditionRow>,
    conditions_left_out: u32,
    waiting: Vec<WaitingRow>,
    storages: Vec<StorageRow>,
    guests: Vec<Row>,
    operations: Vec<OperationRow>,
    usage: Option<Charts>,
    orders: Vec<OrderRow>,
    diagnostics: [DiagnosticName; 6],
    once: &'a str,
}

/// # Errors
/// [`RenderError`].
pub fn render(frame: &Frame, shown: &Host<'_>) -> Result<String, RenderError> {
    let detail = shown.detail;
    let (host, sections) = (&detail.host, &detail.sections);
    let none = ConditionSet::default();
    let conditions = sections.conditions.as_ref().unwrap_or(&none);
    let mut sorted: Vec<&ReportedCondition> = conditions.conditions().iter().collect();
    sorted.sort_by_key(|one| (std::cmp::Reverse(one.severity), one.since));
    let on_host = |guest: &holdfast_protocol::report::GuestReport| GuestOnHost {
        host_id: host.id,
        host: host.name.clone(),
        host_state: host.state,
        seen_at: host.seen_at,
        guest: guest.clone(),
    };
    let names = |about: &ReportedCondition| name_of(about, detail);
    let page = HostPage {
        frame,
        name: host.name.to_string(),
        state: words::host(host.state),
        reason: host.degraded.as_ref().map(|why| why.reason.clone()),
        seen: host.seen_at.map(|at| frame.when(at)),
        facts: facts(detail, shown.hourly),
        conditions: sorted
            .into_iter()
            .map(|one| ConditionRow {
                severity: words::severity(one.severity),
                since: frame.when(one.since),
                code: one.code.as_str(),
                about: names(one),
                message: one.message.as_str().to_owned(),
                remedy: one.remedy.as_str().to_owned(),
            })
            .collect(),
        conditions_left_out: conditions.left_out(),
        waiting: sections
            .waiting
            .iter()
            .flatten()
            .zip(1..)
            .map(|(one, number)| waiting(host.name.as_str(), number, one))
            .collect(),
        storages: sections.host.iter().flat_map(|section| &section.storages).map(storage).collect(),
        guests: sections.guests.iter().flatten().map(|guest| guests::row(frame, &on_host(guest))).collect(),
        operations: operations(frame, sections.operations.as_deref().unwrap_or_default()),
        usage: shown.usage.map(|(span, series)| Charts::new(frame, span, series)),
        orders: orders::rows(frame, host.name.as_str(), shown.orders),
        diagnostics: DiagnosticName::ALL,
        once: shown.once,
    };
    page.render()
}

/// A guest by its name, where the host reports it.
fn name_of(condition: &ReportedCondition, detail: &HostDetail) -> String {
    let guests = detail.sections.guests.as_deref().unwrap_or_default();
    let guest = condition.subject.guest().and_then(|uid| guests.iter().find(|guest| guest.uid == Some(uid)));
    guest.map_or_else(|| condition.subject.to_string(), |guest| guest.name.clone())
}

fn facts(detail: &HostDetail, hourly: Option<&UsageSeries>) -> Vec<Fact> {
    let (host, sections) = (&detail.host, &detail.sections);
    let fact = |name, value| Fact { name, value };
    let mut facts = vec![
        fact("Guests", format!("{} of {} run", host.guests_running, host.guests)),
        fact("Document", format!("holds {}, newest {}", host.held, host.wanted)),
        fact("Agent", host.agent_version.clone().unwrap_or_else(|| "not reported".to_owned())),
    ];
    if let Some(section) = &sections.host {
        facts.push(fact("Proxmox", section.proxmox_version.clone()));
        facts.push(fact("CPU threads", section.cpus.to_string()));
        let memory =
            format!("{} of {} in use", bytes(section.memory_used_bytes), bytes(section.memory_bytes));
        facts.push(fact("Memory", memory));
    }
    if let Some(days) = hourly.and_then(chart::full_in_days) {
        facts.push(fact("Root disk", format!("full in about {days} days at the pace of the last two weeks")));
    }
    if !host.labels.is_empty() {
        facts.push(fact("Labels", host.labels.to_string()));
    }
    facts
}

/// The command names an entry by its number in the host's list.
fn waiting(host: &str, number: u32, one: &holdfast_protocol::report::WaitingForSignature) -> WaitingRow {
    let line = format!("holdfast sign {host} {number}");
    let picture = if one.payload.is_empty() { None } else { qr::svg(&line) };
    WaitingRow {
        effect: one.effect.clone(),
        reason: one.reason.clone(),
        payload: one.payload.clone(),
        line,
        picture,
    }
}

fn storage(one: &StorageReport) -> StorageRow {
    let (used, percent) = match (one.used_bytes, one.total_bytes) {
        (Some(used), Some(total)) if total > 0 => {
            (format!("{} of {}", bytes(used), bytes(total)), Some(used.saturating_mul(100) / total))
        }
        _ => ("not known".to_owned(), None),
    };
    StorageRow { name: one.name.clone(), state: words::storage(one.state), used, percent }
}

fn operations(frame: &Frame, all: &[OperationView]) -> Vec<OperationRow> {
    let mut sorted: Vec<&OperationView> = all.iter().collect();
    sorted.sort_by_key(|one| {
        let is_open = !one.status.is_end() || one.status == OperationStatus::Parked;
        (std::cmp::Reverse(is_open), std::cmp::Reverse(one.ended_at.unwrap_or(one.opened_at)))
    });
    let row = |one: &OperationView| OperationRow {
        kind: one.kind.as_str(),
        guest: one.name.to_string(),
        status: words::operation(one.status),
        step: step(one),
        opened: frame.when(one.opened_at),
        ended: one.ended_at.map(|at| frame.when(at)),
        problem: one.problem.as_ref().map(|problem| problem.message.clone()),
    };
    sorted.into_iter().take(OPERATIONS_SHOWN).map(row).collect()
}

/// The step that it is at, and how many there are.
fn step(operation: &OperationView) -> String {
    use holdfast_protocol::operation::StepStatus;
    let count = operation.steps.len();
    let at = operation.steps.iter().position(|step| {
        matches!(step.status, StepStatus::Intended | StepStatus::Failed | StepStatus::Undoing)
    });
    match at.and_then(|at| Some((at, operation.steps.get(at)?))) {
        Some((at, step)) => {
            let note = step.note.as_ref().map_or_else(String::new, |note| format!(": {note}"));
            format!("{} of {count}, {}{note}", at.saturating_add(1), step.name)
        }
        None => format!("{count} steps"),
    }
}
