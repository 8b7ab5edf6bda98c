//! Work orders of a host as rows, and one as a page.

use askama::Template;
use holdfast_protocol::operation::StepStatus;
use holdfast_protocol::work_order::{
    OrderAct, OrderResult, WorkOrderDetail, WorkOrderReport, WorkOrderState, WorkOrderView,
};

use crate::RenderError;
use crate::frame::{Frame, When};
use crate::words::{Tone, Word};

/// Orders on the page of a host or guest, at most.
pub const ORDERS_SHOWN: u32 = 20;

pub(crate) struct OrderRow {
    pub link: String,
    pub act: String,
    pub state: Word,
    pub step: String,
    pub at: When,
    pub by: String,
    pub problem: Option<String>,
}

pub(crate) fn rows(frame: &Frame, host: &str, orders: &[WorkOrderView]) -> Vec<OrderRow> {
    let row = |order: &WorkOrderView| OrderRow {
        link: format!("/hosts/{host}/work-orders/{}", order.id),
        act: act(&order.act),
        state: state(order.state),
        step: order.report.as_ref().map(step).unwrap_or_default(),
        at: frame.when(order.created_at),
        by: order.by.to_string(),
        problem: order.report.as_ref().and_then(|report| Some(report.problem.as_ref()?.message.clone())),
    };
    orders.iter().map(row).collect()
}

fn act(act: &OrderAct) -> String {
    match act {
        OrderAct::BackupNow { .. } => "backup now".to_owned(),
        OrderAct::Snapshot { name, .. } => format!("snapshot {name}"),
        OrderAct::RestartGuest { .. } => "restart".to_owned(),
        OrderAct::RestoreTestNow { .. } => "restore test now".to_owned(),
        OrderAct::Refresh {} => "read the host anew".to_owned(),
        OrderAct::CollectDiagnostics { name, .. } => format!("diagnostics: {}", name.as_str()),
    }
}

fn state(state: WorkOrderState) -> Word {
    let tone = match state {
        WorkOrderState::Pending | WorkOrderState::Claimed | WorkOrderState::Running => Tone::Plain,
        WorkOrderState::Succeeded => Tone::Good,
        WorkOrderState::Cancelled | WorkOrderState::Expired => Tone::Warning,
        WorkOrderState::Failed => Tone::Bad,
    };
    Word::new(state.as_str(), tone)
}

const fn status(status: StepStatus) -> &'static str {
    match status {
        StepStatus::Pending => "not begun",
        StepStatus::Intended => "under way",
        StepStatus::Done => "done",
        StepStatus::Failed => "failed",
        StepStatus::Undoing => "being taken back",
        StepStatus::Undone => "taken back",
    }
}

/// The phase that it is at.
fn step(report: &WorkOrderReport) -> String {
    let count = report.phases.len();
    let is_under_way = |status: StepStatus| {
        matches!(status, StepStatus::Intended | StepStatus::Failed | StepStatus::Undoing)
    };
    let at = report.phases.iter().position(|phase| is_under_way(phase.status));
    match at.and_then(|at| Some((at, report.phases.get(at)?))) {
        Some((at, phase)) => format!("{} of {count}, {}", at.saturating_add(1), phase.name),
        None if count == 0 => String::new(),
        None => format!("{count} steps"),
    }
}

struct PhaseRow {
    name: String,
    status: &'static str,
    took: String,
}

#[derive(Template)]
#[template(path = "order.html")]
struct OrderPage<'a> {
    frame: &'a Frame,
    host: &'a str,
    order: OrderRow,
    phases: Vec<PhaseRow>,
    log: Vec<String>,
    result: Option<String>,
    text: Option<(When, &'a str)>,
}

/// The page of one order.
///
/// # Errors
/// [`RenderError`].
pub fn render(frame: &Frame, host: &str, detail: &WorkOrderDetail) -> Result<String, RenderError> {
    let report = detail.order.report.as_ref();
    let order = rows(frame, host, std::slice::from_ref(&detail.order));
    let order = order.into_iter().next().ok_or(RenderError::Fmt)?;
    let phases = report.iter().flat_map(|report| &report.phases).map(|phase| PhaseRow {
        name: phase.name.clone(),
        status: status(phase.status),
        took: phase.took_ms.map_or_else(String::new, |took| format!("{}.{:03} s", took / 1000, took % 1000)),
    });
    let page = OrderPage {
        frame,
        host,
        order,
        phases: phases.collect(),
        log: report.map(|report| report.log.clone()).unwrap_or_default(),
        result: report.and_then(|report| report.result.as_ref()).map(|result| result_words(frame, result)),
        text: detail.text.as_ref().map(|text| (frame.when(text.read_at), text.text.as_str())),
    };
    page.render()
}

fn result_words(frame: &Frame, result: &OrderResult) -> String {
    use holdfast_protocol::time_text::bytes;
    match result {
        OrderResult::Backup { archive, storage, bytes: size, .. } => {
            format!("backup {archive} on {storage}, {}", bytes(*size))
        }
        OrderResult::Snapshot { name, expires_at } => match expires_at {
            Some(at) => format!("snapshot {name}, kept until {}", frame.when(*at).exact),
            None => format!("snapshot {name}"),
        },
        OrderResult::RestoreTest { verdict, taken_at } => {
            format!("{}: the backup of {}", verdict.as_str(), frame.when(*taken_at).exact)
        }
        OrderResult::Restart {} => "the guest runs again".to_owned(),
        OrderResult::Refresh { observed_at } => {
            format!("the host was read at {}", frame.when(*observed_at).exact)
        }
        OrderResult::Diagnostics { name, bytes: size } => format!("{}, {}", name.as_str(), bytes(*size)),
    }
}
