//! Operations and work orders of the period, with how long they took.

use holdfast_protocol::id::{GuestUid, HostName};
use holdfast_protocol::operation::OperationView;
use holdfast_protocol::operator::HostDetail;
use holdfast_protocol::work_order::WorkOrderView;
use jiff::Timestamp;
use serde::Serialize;

use super::ExportRun;
use super::selection::Selection;
use crate::hub::WHOLE;
use crate::state_errors::ExportError;

#[derive(Debug, Serialize)]
struct StepRow {
    name: String,
    status: holdfast_protocol::operation::StepStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

#[derive(Debug, Serialize)]
struct OperationRow<'a> {
    host: &'a HostName,
    id: String,
    kind: &'static str,
    guest: GuestUid,
    guest_name: String,
    status: &'static str,
    opened_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<Timestamp>,
    /// From its opening to its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_s: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem_code: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    steps: Vec<StepRow>,
    /// How many like it were reported as one.
    alike: u32,
}

#[derive(Debug, Serialize)]
struct OrderRow<'a> {
    host: &'a HostName,
    id: String,
    act: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    guest: Option<GuestUid>,
    state: &'static str,
    created_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_s: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem_code: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

fn seconds(from: Timestamp, to: Option<Timestamp>) -> Option<i64> {
    Some(to?.duration_since(from).as_secs())
}

fn operation(host: &HostName, view: OperationView) -> OperationRow<'_> {
    let steps = view.steps.into_iter();
    OperationRow {
        host,
        id: view.id.to_string(),
        kind: view.kind.as_str(),
        guest: view.guest,
        guest_name: view.name.to_string(),
        status: view.status.as_str(),
        opened_at: view.opened_at,
        ended_at: view.ended_at,
        duration_s: seconds(view.opened_at, view.ended_at),
        problem_code: view.problem.as_ref().map(|problem| problem.code.as_str()),
        problem: view.problem.map(|problem| problem.message),
        steps: steps.map(|step| StepRow { name: step.name, status: step.status, note: step.note }).collect(),
        alike: view.alike.map_or(1, |alike| alike.count),
    }
}

/// Without log and result, which name archives and inner states of a host.
fn order(host: &HostName, view: WorkOrderView) -> OrderRow<'_> {
    let report = view.report.as_ref();
    let problem = report.and_then(|report| report.problem.as_ref());
    let ended_at = report.and_then(|report| report.ended_at);
    OrderRow {
        host,
        id: view.id.to_string(),
        act: view.act.as_str(),
        guest: view.act.guest(),
        state: view.state.as_str(),
        created_at: view.created_at,
        ended_at,
        duration_s: seconds(view.created_at, ended_at),
        problem_code: problem.map(|problem| problem.code.as_str()),
        problem: problem.map(|problem| problem.message.clone()),
    }
}

/// Writes both files.
pub async fn write(run: &mut ExportRun<'_>, selection: &Selection) -> Result<(), ExportError> {
    run.screen.note("operations and work orders …");
    let mut operations = run.folder.file("operations.jsonl")?;
    let mut orders = run.folder.file("work-orders.jsonl")?;
    operations.remark(
        "a host reports the operations under way and the last ones that ended, so older ones may be missing",
    );
    let period = run.period;
    for (id, name) in &selection.hosts {
        let id = id.to_string();
        let Some(detail): Option<HostDetail> = run.hub.find(&["v1", "hosts", &id]).await? else {
            operations.remark(format!("{name} was let go: its operations are not known any more"));
            continue;
        };
        for view in detail.sections.operations.unwrap_or_default() {
            let is_in = period.has(view.opened_at) || view.ended_at.is_some_and(|ended| period.has(ended));
            if is_in && !selection.has(view.guest) {
                operations.leave_out(1);
            } else if is_in {
                operations.push(&operation(name, view))?;
            }
        }
        let path = ["v1", "hosts", &id, "work-orders"];
        let all: Vec<WorkOrderView> = run.hub.list(&path, &[("limit", "500")], WHOLE).await?;
        for view in all.into_iter().filter(|view| period.has(view.created_at)) {
            let is_selected =
                selection.is_everything() || view.act.guest().is_some_and(|guest| selection.has(guest));
            if is_selected { orders.push(&order(name, view))? } else { orders.leave_out(1) }
        }
    }
    if !selection.is_everything() {
        orders.remark("orders that are not about a selected guest are left out");
    }
    run.folder.add(operations)?;
    run.folder.add(orders)
}
