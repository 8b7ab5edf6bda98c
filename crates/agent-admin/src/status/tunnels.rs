//! Tunnels in a table.

use comfy_table::Table;
use holdfast_protocol::report::{TokenReport, TunnelReport};
use jiff::Timestamp;

use super::super::ago::ago;

/// A row each: how it is, since when, and why.
pub(super) fn table(reports: &[TunnelReport], at: Timestamp) -> Table {
    let mut rows = super::table(&["TUNNEL", "UNIT", "STATE", "SINCE", "WHY", "RESTARTS", "TOKEN"]);
    for report in reports {
        let restarts = report.restarts.as_ref().map_or_else(
            || "-".to_owned(),
            |restarts| {
                let (count, when) = (restarts.asked_today, ago(restarts.asked_at, at));
                format!("{count} a day, the last asked for {when}: {}", restarts.outcome.as_str())
            },
        );
        let token = match report.token {
            None => "-".to_owned(),
            Some(TokenReport::Missing {}) => "missing".to_owned(),
            Some(TokenReport::Present { written_at }) => format!("written {}", ago(written_at, at)),
        };
        rows.add_row([
            report.name.to_string(),
            report.unit.to_string(),
            report.state.as_str().to_owned(),
            ago(report.since, at),
            report.why.as_str().to_owned(),
            restarts,
            token,
        ]);
    }
    rows
}
