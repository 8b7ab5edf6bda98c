//! Pages of work orders.

use holdfast_protocol::operation::StepStatus;
use holdfast_protocol::work_order::{
    OrderAct, OrderPhase, OrderResult, RestartTiming, WorkOrderDetail, WorkOrderState, WorkOrderView,
};
use jiff::Timestamp;

use super::table::{Field, NOTHING, Tone, clean, list, plain, table};
use super::time::{ago, bytes, stamp, when};
use crate::screen::Style;

const HEADER: [&str; 7] = ["ORDER", "STATE", "WHAT", "GUEST", "BY", "MADE", "NOTES"];

/// The list.
pub fn orders(orders: &[&WorkOrderView], now: Timestamp, style: Style) -> String {
    if orders.is_empty() {
        return "No work order. `holdfast order --help` shows what can be ordered.\n".to_owned();
    }
    let rows = orders.iter().map(|order| {
        vec![
            plain(order.id),
            state(order),
            plain(order.act.as_str()),
            plain(order.act.guest().map_or_else(|| NOTHING.to_owned(), |guest| guest.to_string())),
            plain(&order.by),
            plain(ago(order.created_at, now)),
            plain(notes(order)),
        ]
    });
    table(&HEADER, rows, style)
}

fn state(order: &WorkOrderView) -> Field {
    let tone = match order.state {
        WorkOrderState::Pending | WorkOrderState::Claimed | WorkOrderState::Running => Tone::Look,
        WorkOrderState::Succeeded => Tone::Good,
        WorkOrderState::Failed | WorkOrderState::Expired => Tone::Bad,
        WorkOrderState::Cancelled => Tone::Plain,
    };
    let asked = order.cancel_requested_at.filter(|_| !order.state.is_end());
    let word = order.state.as_str();
    (asked.map_or_else(|| word.to_owned(), |_| format!("{word}, to be cancelled")), tone)
}

fn notes(order: &WorkOrderView) -> String {
    let Some(report) = &order.report else { return NOTHING.to_owned() };
    if let Some(problem) = &report.problem {
        return problem.to_string();
    }
    if let Some(result) = &report.result {
        return text(result);
    }
    let under_way = report.phases.iter().find(|phase| phase.status == StepStatus::Intended);
    under_way.map_or_else(|| NOTHING.to_owned(), |phase| phase.name.clone())
}

fn text(result: &OrderResult) -> String {
    match result {
        OrderResult::Backup { archive, bytes: size, .. } => format!("{archive}, {}", bytes(*size)),
        OrderResult::Snapshot { name, expires_at } => match expires_at {
            Some(at) => format!("snapshot {name}, kept until {}", stamp(*at)),
            None => format!("snapshot {name}"),
        },
        OrderResult::RestoreTest { verdict, taken_at } => {
            format!("{} (backup of {})", verdict.as_str(), stamp(*taken_at))
        }
        OrderResult::Restart {} => "it runs again".to_owned(),
        OrderResult::Refresh { observed_at } => format!("read at {}", stamp(*observed_at)),
        OrderResult::Diagnostics { name, bytes: size } => format!("{}, {}", name.as_str(), bytes(*size)),
    }
}

/// One line for those who follow it.
pub fn line(order: &WorkOrderView) -> String {
    let (word, notes) = (state(order).0, notes(order));
    if notes == NOTHING { word } else { format!("{word}: {notes}") }
}

/// One order with phases, log, result and text.
pub fn detail(found: &WorkOrderDetail, now: Timestamp) -> String {
    let order = &found.order;
    let mut pairs = vec![("Order", order.id.to_string()), ("What", what(&order.act))];
    pairs.extend(order.act.guest().map(|guest| ("Guest", guest.to_string())));
    pairs.push(("State", line(order)));
    pairs.push(("Made", format!("{} by {}", when(order.created_at, now), order.by)));
    pairs.push(("Begins before", stamp(order.expires_at)));
    pairs.extend(order.cancel_requested_at.map(|at| ("Cancelled", when(at, now))));
    pairs.extend(order.correlation_id.map(|id| ("Correlation", id.to_string())));
    if let Some(report) = &order.report {
        pairs.push(("Claimed", when(report.claimed_at, now)));
        pairs.extend(report.operation.map(|operation| ("Operation", operation.to_string())));
        pairs.extend(report.ended_at.map(|at| ("Ended", when(at, now))));
        pairs.extend(report.phases.iter().map(|phase| ("Phase", self::phase(phase))));
        pairs.extend(report.log.iter().map(|line| ("Log", line.clone())));
    }
    let mut page = list(&pairs);
    if let Some(text) = &found.text {
        page.push('\n');
        page.extend(text.text.lines().map(|line| format!("{}\n", clean(line))));
    }
    page
}

fn what(act: &OrderAct) -> String {
    let name = act.as_str();
    match act {
        OrderAct::BackupNow { tier: Some(tier), .. } => format!("{name}, {tier}"),
        OrderAct::RestoreTestNow { tier: Some(tier), .. } => format!("{name}, {tier}"),
        OrderAct::Snapshot { name: snapshot, .. } => format!("{name} {snapshot}"),
        OrderAct::RestartGuest { timing: RestartTiming::AtOnce, .. } => format!("{name}, at once"),
        OrderAct::CollectDiagnostics { name: reading, .. } => format!("{name} {}", reading.as_str()),
        OrderAct::BackupNow { .. }
        | OrderAct::RestoreTestNow { .. }
        | OrderAct::RestartGuest { .. }
        | OrderAct::Refresh {} => name.to_owned(),
    }
}

fn phase(phase: &OrderPhase) -> String {
    let status = match phase.status {
        StepStatus::Pending => "pending",
        StepStatus::Intended => "under way",
        StepStatus::Done => "done",
        StepStatus::Failed => "failed",
        StepStatus::Undoing => "being taken back",
        StepStatus::Undone => "taken back",
    };
    let tries = if phase.attempts > 1 { format!(", {} tries", phase.attempts) } else { String::new() };
    let took =
        phase.took_ms.map_or_else(String::new, |ms| format!(", {}.{} s", ms / 1_000, ms % 1_000 / 100));
    format!("{} {status}{took}{tries}", phase.name)
}
