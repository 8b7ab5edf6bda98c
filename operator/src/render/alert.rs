//! Text of alerts and their log.

use holdfast_protocol::alert::{
    IncidentDetail, IncidentPhase, IncidentReceiver, IncidentView, LastSent, LogKindView, LogView,
};
use jiff::Timestamp;

use super::condition::severity;
use super::table::{Field, NOTHING, Tone, clean, list, plain, table};
use super::time::{age, stamp, when};
use crate::screen::Style;

pub const HEADER: [&str; 8] = ["SEVERITY", "FOR", "HOST", "ABOUT", "CONDITION", "ALERT", "NOTE", "MESSAGE"];

/// Alerts, the worst first: what fires before the rest, what no operator knows of before what is acknowledged.
pub fn alerts(alerts: &[IncidentView], now: Timestamp, style: Style) -> String {
    let mut sorted: Vec<&IncidentView> = alerts.iter().collect();
    sorted.sort_by_key(|one| {
        let fires = one.phase == IncidentPhase::Firing;
        (!fires, one.acknowledged.is_some(), std::cmp::Reverse(one.severity), one.since)
    });
    let Some(first) = sorted.first() else { return "No alert fires.\n".to_owned() };
    let id = short_id(first);
    let mut text = table(&HEADER, sorted.iter().map(|one| row(one, now)), style);
    let open = sorted.iter().filter(|one| is_open(one)).count();
    if alerts.len() > 1 && open > 0 {
        text.push_str(&format!("\n{open} to look at. Begin with `holdfast alert show {id}`.\n"));
    }
    text
}

fn is_open(alert: &IncidentView) -> bool {
    alert.phase == IncidentPhase::Firing && alert.acknowledged.is_none()
}

/// One line of the list.
pub fn row(alert: &IncidentView, now: Timestamp) -> Vec<Field> {
    let severity =
        if is_open(alert) { severity(alert.severity) } else { (alert.severity.to_string(), Tone::Plain) };
    vec![
        severity,
        plain(age(alert.since, now)),
        plain(place(alert)),
        plain(about(alert)),
        plain(alert.code),
        plain(short_id(alert)),
        plain(notes(alert, now)),
        plain(alert.message.as_str()),
    ]
}

/// `HOST/NUMBER`, which the commands take. The number is the last part of the id.
fn short_id(alert: &IncidentView) -> String {
    let whole = alert.id.as_str();
    match (whole.rsplit_once('-'), &alert.host) {
        (Some((_, number)), Some(host)) => format!("{host}/{number}"),
        (Some(("hub", number)), None) => format!("hub/{number}"),
        (Some(_) | None, _) => whole.to_owned(),
    }
}

fn place(alert: &IncidentView) -> String {
    alert.host.as_ref().map_or_else(|| "the hub".to_owned(), ToString::to_string)
}

fn about(alert: &IncidentView) -> String {
    let what = match (&alert.guest, alert.subject.as_str()) {
        (Some(guest), subject) => {
            match subject.strip_prefix("tier:").and_then(|rest| rest.rsplit_once(':')) {
                Some((_, tier)) => format!("{guest} ({tier})"),
                None => guest.to_string(),
            }
        }
        (None, "host" | "hub") => NOTHING.to_owned(),
        (None, subject) => subject.to_owned(),
    };
    match &alert.customer {
        Some(customer) => format!("{what} of {customer}"),
        None => what,
    }
}

fn notes(alert: &IncidentView, now: Timestamp) -> String {
    let phase = match alert.phase {
        IncidentPhase::Firing => None,
        IncidentPhase::Pending => Some("in its grace".to_owned()),
        IncidentPhase::Resolved => Some(format!("over for {}", age(alert.phase_since, now))),
    };
    let known = alert.acknowledged.as_ref().map(|known| format!("acknowledged by {}", known.by));
    let stale = alert.stale_since.map(|since| format!("nothing newer for {}", age(since, now)));
    let flapping = alert.flapping_since.map(|_| "comes and goes".to_owned());
    let notes: Vec<String> = [phase, known, stale, flapping].into_iter().flatten().collect();
    if notes.is_empty() { NOTHING.to_owned() } else { notes.join(", ") }
}

/// One alert: what is wrong, what to do, who was notified, and its log.
pub fn alert(detail: &IncidentDetail, now: Timestamp, style: Style) -> String {
    let IncidentDetail { incident, receivers, log: entries } = detail;
    let mut text = list(&pairs(incident, now));
    text.push_str(&format!("\nWhat to do: {}\n", clean(incident.remedy.as_str())));
    text.push_str(&notified(incident, receivers));
    if !entries.items.is_empty() {
        let mut sorted: Vec<&LogView> = entries.items.iter().collect();
        sorted.sort_by_key(|entry| entry.number);
        let lines = sorted.iter().map(|entry| vec![plain(stamp(entry.at)), text_of(entry)]);
        text.push('\n');
        if entries.next.is_some() {
            let id = short_id(incident);
            text.push_str(&format!("Older entries: `holdfast alert log --alert {id} --limit 1000`.\n"));
        }
        text.push_str(&table(&["AT", "WHAT"], lines, style));
    }
    text
}

fn pairs(alert: &IncidentView, now: Timestamp) -> Vec<(&'static str, String)> {
    let mut pairs = vec![
        ("Alert", format!("{} ({})", short_id(alert), alert.id.as_str())),
        ("Condition", format!("{} ({}): {}", alert.code, alert.severity, alert.code.spec().meaning)),
        ("Message", alert.message.as_str().to_owned()),
        ("Host", place(alert)),
        ("About", subject(alert)),
        ("Since", when(alert.since, now)),
        ("State", phase(alert, now)),
    ];
    if let Some(known) = &alert.acknowledged {
        let end = known.until.map_or_else(
            || "until it is over or gets worse".to_owned(),
            |until| format!("until {}", when(until, now)),
        );
        pairs.push(("Acknowledged", format!("by {}, {}, {end}", known.by, when(known.at, now))));
    }
    if let Some(since) = alert.stale_since {
        pairs.push(("Unknown", format!("nothing newer is known of it since {}", when(since, now))));
    }
    if let Some(since) = alert.flapping_since {
        pairs.push(("Flapping", format!("it comes and goes since {}", when(since, now))));
    }
    pairs
}

/// With the text that matchers compare.
fn subject(alert: &IncidentView) -> String {
    match &alert.guest {
        Some(_) => format!("{} ({})", about(alert), alert.subject),
        None => alert.subject.clone(),
    }
}

fn phase(alert: &IncidentView, now: Timestamp) -> String {
    let since = when(alert.phase_since, now);
    match alert.phase {
        IncidentPhase::Pending => format!("in its grace since {since}: no receiver hears of it yet"),
        IncidentPhase::Firing => format!("fires since {since}"),
        IncidentPhase::Resolved => format!("over since {since}"),
    }
}

fn notified(alert: &IncidentView, receivers: &[IncidentReceiver]) -> String {
    if receivers.is_empty() {
        return match alert.phase {
            IncidentPhase::Pending => String::new(),
            IncidentPhase::Firing | IncidentPhase::Resolved => {
                let host = alert.host.as_ref().map(|host| format!(" --host {host}")).unwrap_or_default();
                format!(
                    "\nNo receiver has it: `holdfast alert explain {}{host}` shows the route.\n",
                    alert.code
                )
            }
        };
    }
    let line = |one: &IncidentReceiver| {
        let sent = match one.sent {
            LastSent::Nothing => "nothing sent yet",
            LastSent::WithNextRepeat => "nothing sent yet: it is new in the rules",
            LastSent::Firing => "was sent that it fires",
        };
        let muted = one.muted.as_ref().map(|mute| format!("; now mute: {}", mute.text)).unwrap_or_default();
        format!("  {}\n", clean(&format!("{}: {sent}{muted}", one.receiver)))
    };
    let lines: String = receivers.iter().map(line).collect();
    format!("\nReceivers:\n{lines}")
}

/// Entries of the log, oldest first, so that the newest is at the end of the output.
pub fn log(entries: &[LogView], style: Style) -> String {
    if entries.is_empty() {
        return "Nothing happened to alerts yet.\n".to_owned();
    }
    let mut sorted: Vec<&LogView> = entries.iter().collect();
    sorted.sort_by_key(|entry| entry.number);
    let rows = sorted
        .into_iter()
        .map(|entry| vec![plain(entry.number), plain(stamp(entry.at)), plain(of(entry)), text_of(entry)]);
    table(&["#", "AT", "ALERT", "WHAT"], rows, style)
}

/// The alert, or the host where it is about no alert.
fn of(entry: &LogView) -> String {
    let host = entry.host.as_ref().map_or_else(|| "hub".to_owned(), ToString::to_string);
    let number = entry.alert.as_ref().and_then(|alert| alert.as_str().rsplit_once('-'));
    number.map_or_else(|| host.clone(), |(_, number)| format!("{host}/{number}"))
}

fn text_of(entry: &LogView) -> Field {
    let tone = match entry.kind {
        LogKindView::Fired | LogKindView::Reopened | LogKindView::Overflow | LogKindView::Escalated => {
            Tone::Bad
        }
        LogKindView::Resolved => Tone::Good,
        LogKindView::Suppressed | LogKindView::Stale | LogKindView::FlappingBegan => Tone::Look,
        LogKindView::Opened
        | LogKindView::Withdrawn
        | LogKindView::FlappingEnded
        | LogKindView::Fresh
        | LogKindView::SeverityChanged
        | LogKindView::Acknowledged
        | LogKindView::Unacknowledged
        | LogKindView::AckExpired
        | LogKindView::AckOutgrown
        | LogKindView::UnknownIncident
        | LogKindView::Queued
        | LogKindView::Closed
        | LogKindView::HostChanged
        | LogKindView::SilenceAdded
        | LogKindView::SilenceEnded
        | LogKindView::MaintenanceChanged => Tone::Plain,
    };
    (entry.text.clone(), tone)
}
