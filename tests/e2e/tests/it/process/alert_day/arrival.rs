//! What receivers were sent, incident by incident.
//!
//! A notice names all incidents of its group, also those that its receiver knows. So an incident counts when a receiver
//! hears of its phase for the first time. A notice without any news, and an end that comes again, count as sent twice. A
//! delivery that is repeated has the key of the first, and does not count.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::super::notices::Notices;
use super::fault::{Line, Phase, RECEIVERS};

/// A line, and when it came.
#[derive(Clone, Debug)]
pub struct Arrival {
    pub at: Duration,
    pub line: Line,
}

/// All receivers of a day.
pub struct Receivers(Vec<(&'static str, Notices)>);

impl Receivers {
    pub fn new() -> Self {
        Self(RECEIVERS.iter().map(|name| (*name, Notices::new())).collect())
    }

    pub fn all(&self) -> impl Iterator<Item = (&'static str, &Notices)> {
        self.0.iter().map(|(name, notices)| (*name, notices))
    }

    pub fn named(&self, wanted: &str) -> &Notices {
        self.all().find(|(name, _)| *name == wanted).map(|(_, notices)| notices).unwrap()
    }

    /// Everything that they took, in the order of its arrival.
    pub fn heard(&self, begun: Instant) -> Vec<Arrival> {
        let mut heard: Vec<Arrival> =
            self.all().flat_map(|(name, notices)| of_one(name, &notices.with_times(), begun)).collect();
        heard.sort_by_key(|heard| heard.at);
        heard
    }
}

fn of_one(name: &str, requests: &[(String, Instant)], begun: Instant) -> Vec<Arrival> {
    let (mut keys, mut known, mut heard) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
    for (request, at) in requests {
        let (head, body) = request.split_once("\r\n\r\n").unwrap();
        let key = head.lines().find_map(|line| line.strip_prefix("idempotency-key: ")).unwrap();
        if !keys.insert(key.to_owned()) {
            continue;
        }
        let body: Value = serde_json::from_str(body).unwrap();
        let alerts = body["alerts"].as_array().unwrap();
        let parsed = alerts.iter().map(|alert| {
            let (incident, text) = (alert["incident"].as_str().unwrap(), alert["text"].as_str().unwrap());
            (incident.to_owned(), line(name, text))
        });
        let all: Vec<(String, Line)> = parsed.collect();
        let is_new = |(incident, line): &(String, Line)| !known.contains(&(incident.clone(), line.phase));
        let has_news = all.iter().any(is_new);
        for (incident, line) in all {
            let is_new = known.insert((incident, line.phase));
            if is_new || !has_news || line.phase == Phase::Over {
                heard.push(Arrival { at: at.duration_since(begun), line });
            }
        }
    }
    heard
}

/// `CODE on PLACE, SUBJECT: what is wrong [since …] (host/3)`.
fn line(to: &str, text: &str) -> Line {
    let (name, _) = text.split_once(": ").unwrap();
    let (code, of) = name.split_once(" on ").unwrap();
    let phase = if text.contains(" [over since ") { Phase::Over } else { Phase::Firing };
    Line { to: to.to_owned(), code: code.to_owned(), of: of.to_owned(), phase }
}

#[test]
fn a_line_is_read_out_of_a_notice() {
    for (text, code, of, phase) in [
        (
            "GUEST_CRASHED on box1, web of acme: it stopped [since x] (box1/3)",
            "GUEST_CRASHED",
            "box1, web of acme",
            Phase::Firing,
        ),
        ("HUB_DISK_FULL on the hub: 3 MiB [over since x] (hub/1)", "HUB_DISK_FULL", "the hub", Phase::Over),
        (
            "TOKEN_EXPIRING on the hub, token:eve: it ends [since x] (hub/2)",
            "TOKEN_EXPIRING",
            "the hub, token:eve",
            Phase::Firing,
        ),
    ] {
        let expected = Line { to: "ops".to_owned(), code: code.to_owned(), of: of.to_owned(), phase };
        assert_eq!(line("ops", text), expected);
    }
}

#[test]
fn a_notice_without_news_counts_as_sent_twice_and_a_repeated_delivery_does_not() {
    let now = Instant::now();
    let notice = |key: &str, texts: &[(&str, &str)]| {
        let alerts: Vec<Value> = texts
            .iter()
            .map(|(incident, text)| serde_json::json!({ "incident": incident, "text": text }))
            .collect();
        let body = serde_json::json!({ "alerts": alerts });
        (format!("POST / HTTP/1.1\r\nidempotency-key: {key}\r\n\r\n{body}"), now)
    };
    let (one, two) = (("1", "A on box1: x [since y] (box1/1)"), ("2", "B on box1: x [since y] (box1/2)"));
    let over = ("1", "A on box1: x [over since y] (box1/1)");
    for (notices, count) in [
        (vec![notice("k1", &[one])], 1),
        (vec![notice("k1", &[one]), notice("k1", &[one])], 1),
        (vec![notice("k1", &[one]), notice("k2", &[one])], 2),
        (vec![notice("k1", &[one]), notice("k2", &[one, two])], 2),
        (vec![notice("k1", &[one]), notice("k2", &[over]), notice("k3", &[over])], 3),
    ] {
        assert_eq!(of_one("ops", &notices, now).len(), count, "{notices:?}");
    }
}
