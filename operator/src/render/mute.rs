//! Text of silences and of maintenance.

use holdfast_protocol::alert::{MaintenanceView, MatcherText, SilenceView};
use jiff::Timestamp;

use super::table::{plain, table};
use super::time::when;
use crate::screen::Style;

/// Silences, those that end first at the top.
pub fn silences(silences: &[SilenceView], now: Timestamp, style: Style) -> String {
    if silences.is_empty() {
        return "No silence is in force.\n".to_owned();
    }
    let mut sorted: Vec<&SilenceView> = silences.iter().collect();
    sorted.sort_by_key(|silence| silence.until);
    let rows = sorted.into_iter().map(|silence| {
        vec![
            plain(silence.id),
            plain(when(silence.until, now)),
            plain(&silence.by),
            plain(matchers(silence)),
            plain(silence.comment.as_str()),
        ]
    });
    table(&["#", "UNTIL", "BY", "MUTES", "COMMENT"], rows, style)
}

fn matchers(silence: &SilenceView) -> String {
    let texts: Vec<&str> = silence.matchers.iter().map(MatcherText::as_str).collect();
    texts.join(", ")
}

/// A silence that was ended.
pub fn ended(silence: &SilenceView) -> String {
    super::clean(&format!("Silence {} ({}) is not in force any more.", silence.id, matchers(silence))) + "\n"
}

/// Until when a host is in maintenance.
pub fn maintenance(view: &MaintenanceView, now: Timestamp) -> String {
    let host = &view.host;
    match view.windows.iter().map(|window| window.until).max() {
        None => format!("{host} is not in maintenance: its alerts are sent.\n"),
        Some(until) => format!(
            "{host} is in maintenance until {}: no alert of it is sent, and its agent begins nothing new. `holdfast host maintenance {host} --end` ends it.\n",
            when(until, now)
        ),
    }
}
