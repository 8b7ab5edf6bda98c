//! Conditions of tunnels.
//!
//! In: the reports of tunnels. Out: what is down, what works in part, and what lacks its token. A tunnel that could not be
//! looked at keeps the condition that it had.

use holdfast_protocol::condition::{ConditionCode, Severity, Subject};
use holdfast_protocol::report::{RestartOutcome, RestartReport, TokenReport, TunnelReport, TunnelState};

use super::{Finding, HostKnowledge};
use crate::model::tunnel::TunnelsView;

pub(super) fn all(known: &HostKnowledge<'_>) -> Vec<Finding> {
    let reports = known.tunnels.reports.iter().flatten();
    reports.flat_map(|report| state(report).into_iter().chain(token(report))).collect()
}

fn finding(code: ConditionCode, report: &TunnelReport, message: String) -> Finding {
    Finding::new(code, Subject::Tunnel { tunnel: report.name.clone() }, message)
}

fn state(report: &TunnelReport) -> Option<Finding> {
    let facts = || format!("{}: {}{}", report.name, report.why.as_str(), restarts(report.restarts.as_ref()));
    let of = |code| finding(code, report, facts()).since(report.since);
    match report.state {
        TunnelState::Down => Some(of(ConditionCode::TunnelDown)),
        // A person did that and knows it.
        TunnelState::Stopped => {
            Some(Finding { severity: Some(Severity::Warning), ..of(ConditionCode::TunnelDown) })
        }
        TunnelState::Degraded => Some(of(ConditionCode::TunnelDegraded)),
        TunnelState::Up | TunnelState::Unproved | TunnelState::Unknown => None,
    }
}

fn restarts(restarts: Option<&RestartReport>) -> String {
    match restarts {
        None => String::new(),
        Some(RestartReport { asked_today, outcome: RestartOutcome::Pending, .. }) => {
            format!("; {asked_today} restarts asked for within a day")
        }
        Some(RestartReport { asked_today, outcome, .. }) => {
            format!("; {asked_today} restarts asked for within a day, the last one: {}", outcome.as_str())
        }
    }
}

fn token(report: &TunnelReport) -> Option<Finding> {
    match report.token? {
        TokenReport::Missing {} => Some(finding(
            ConditionCode::TunnelTokenMissing,
            report,
            format!("{}: {} waits for its token", report.name, report.unit),
        )),
        TokenReport::Present { .. } => None,
    }
}

/// Whether a condition of a tunnel that is not found does not hold. One of a tunnel that no settings name is over.
pub(super) fn covers(view: &TunnelsView, code: ConditionCode, subject: &Subject) -> bool {
    let Some(reports) = &view.reports else { return false };
    let Subject::Tunnel { tunnel } = subject else { return true };
    let of_state = matches!(code, ConditionCode::TunnelDown | ConditionCode::TunnelDegraded);
    let report = reports.iter().find(|report| report.name == *tunnel);
    !of_state || report.is_none_or(|report| report.state != TunnelState::Unknown)
}
