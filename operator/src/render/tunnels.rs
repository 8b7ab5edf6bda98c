//! Tunnels of a host, in lines.

use holdfast_protocol::report::{ProbeResult, TokenReport, TunnelReport, TunnelState};
use jiff::Timestamp;

use super::table::{Field, NOTHING, Tone, clean, plain, table};
use super::time::{age, ago};
use crate::screen::Style;

/// What each tunnel does, and why.
pub fn tunnels(reports: &[TunnelReport], now: Timestamp, style: Style) -> String {
    let head = ["TUNNEL", "STATE", "FOR", "SERVICE", "CONNECTIONS", "PROBE", "TOKEN"];
    let mut text = table(&head, reports.iter().map(|report| row(report, now)), style);
    for report in reports {
        let line =
            format!("{}: {} (looked at {})", report.name, report.why.as_str(), ago(report.checked_at, now));
        text.push_str(&format!("  {}{}\n", clean(&line), restarts(report, now)));
    }
    text
}

fn row(report: &TunnelReport, now: Timestamp) -> Vec<Field> {
    let tone = match report.state {
        TunnelState::Up => Tone::Good,
        TunnelState::Degraded | TunnelState::Unproved | TunnelState::Unknown => Tone::Look,
        TunnelState::Down | TunnelState::Stopped => Tone::Bad,
    };
    let service = report.service.map_or_else(
        || NOTHING.to_owned(),
        |service| {
            let since = service.since.map(|since| format!(" for {}", age(since, now))).unwrap_or_default();
            format!("{} {}{since}", report.unit, service.activity.as_str())
        },
    );
    let connections = report.connections.map_or_else(
        || NOTHING.to_owned(),
        |is| format!("{} of {} for {}", is.ready, is.wanted, age(is.since, now)),
    );
    let probe = report.probe.as_ref().map_or_else(
        || NOTHING.to_owned(),
        |probe| {
            let word = match probe.result {
                ProbeResult::Answered => "answers",
                ProbeResult::Failed => "fails",
            };
            format!("{word} for {}", age(probe.since, now))
        },
    );
    let token = match report.token {
        None => (NOTHING.to_owned(), Tone::Plain),
        Some(TokenReport::Missing {}) => ("missing".to_owned(), Tone::Bad),
        Some(TokenReport::Present { written_at }) => (ago(written_at, now), Tone::Plain),
    };
    let state = (report.state.as_str().to_owned(), tone);
    let for_so_long = plain(age(report.since, now));
    vec![
        plain(&report.name),
        state,
        for_so_long,
        plain(clean(&service)),
        plain(connections),
        plain(probe),
        token,
    ]
}

fn restarts(report: &TunnelReport, now: Timestamp) -> String {
    report.restarts.as_ref().map_or_else(String::new, |restarts| {
        format!(
            "; {} restarts asked for within a day, the last one {}: {}",
            restarts.asked_today,
            ago(restarts.asked_at, now),
            restarts.outcome.as_str()
        )
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::screen::Colour;

    const PLAIN: Style = Style { columns: None, colour: Colour::Off };

    #[test]
    fn what_each_tunnel_does_and_why() {
        let now: Timestamp = "2026-11-22T12:00:00Z".parse().unwrap();
        let reports = json!([
            { "name": "cf", "unit": "cloudflared.service", "state": "up", "since": "2026-11-21T12:00:00Z",
                "why": "4 connections are ready", "checked_at": "2026-11-22T11:55:00Z",
                "service": { "activity": "active", "since": "2026-11-20T12:00:00Z", "restarted": 1 },
                "connections": { "ready": 4, "wanted": 4, "since": "2026-11-21T12:00:00Z" },
                "probe": { "result": "answered", "since": "2026-11-21T12:00:00Z", "said": "status 200" },
                "token": { "is": "present", "written_at": "2026-11-01T12:00:00Z" } },
            { "name": "wg", "unit": "wg-quick@wg0.service", "state": "down", "since": "2026-11-22T11:48:00Z",
                "why": "wg-quick@wg0.service failed", "checked_at": "2026-11-22T12:00:00Z",
                "service": { "activity": "failed", "restarted": 0 },
                "restarts": { "asked_at": "2026-11-22T11:57:00Z", "asked_today": 2, "outcome": "failed" },
                "token": { "is": "missing" } }
        ]);
        let reports: Vec<TunnelReport> = serde_json::from_value(reports).unwrap();
        insta::assert_snapshot!(tunnels(&reports, now, PLAIN));
    }
}
