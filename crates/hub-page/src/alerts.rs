//! Alerts: their list, one with its history, the log.

use holdfast_protocol::alert::{IncidentDetail, IncidentPhase, IncidentView, LastSent, LogView};

use crate::RenderError;
use crate::frame::Frame;
use crate::sheet::{Field, Form, Link, Notice, Part, Sheet};
use crate::table::{Cell, Table};
use crate::words::{self, Tone, Word};

/// What the list was asked for, as it was typed.
#[derive(Clone, Debug, Default)]
pub struct AlertFilter {
    pub filter: String,
    pub severity: String,
    pub host: String,
    pub guest: String,
    pub code: String,
}

/// What the list is made of.
pub struct Alerts<'a> {
    pub incidents: &'a [IncidentView],
    pub asked: &'a AlertFilter,
    pub next: Option<&'a str>,
    pub notice: Notice<'a>,
}

/// The pages of the section.
pub(crate) fn tabs(frame: &Frame) -> Vec<(&'static str, &'static str)> {
    let mut tabs = vec![("/alerts", "Alerts")];
    if !frame.is_customers() {
        tabs.push(("/alerts/log", "History"));
        tabs.push(("/silences", "Silences"));
    }
    tabs
}

/// # Errors
/// [`RenderError`].
pub fn render(frame: &Frame, alerts: &Alerts<'_>) -> Result<String, RenderError> {
    let asked = alerts.asked;
    let which = [("firing", "that fire"), ("all", "all of the last hour")];
    let urgent = [("", "any"), ("critical", "critical"), ("warning", "warning"), ("info", "info")];
    let filter = vec![
        Field::choice("filter", "Which", &which, &asked.filter),
        Field::choice("severity", "Urgency", &urgent, &asked.severity),
        Field::text("host", "Host", &asked.host),
        Field::text("guest", "Guest", &asked.guest),
        Field::text("code", "Code", &asked.code),
    ];
    let again = [
        ("filter", asked.filter.as_str()),
        ("severity", &asked.severity),
        ("host", &asked.host),
        ("guest", &asked.guest),
        ("code", &asked.code),
    ];
    let rows = alerts.incidents.iter().map(|one| {
        let page = (!frame.is_customers()).then(|| format!("/alerts/{}", one.id.as_str()));
        [
            Cell { state: Some(words::severity(one.severity)), ..Cell::link_where(page, one.code.as_str()) },
            host(frame, one),
            Cell::text(about(one)),
            Cell::when(frame.when(one.since)).with_small(phase_note(one)),
            Cell::note(one.message.as_str()).with_small(Some(one.remedy.as_str().to_owned())),
            Cell::or_dash(one.acknowledged.as_ref().map(|by| &by.by)),
        ]
    });
    let heads = ["Alert", "Host", "About", "Since", "What is wrong, and what to do", "Known to"];
    let table = Table::new("Alerts", heads, rows);
    let mut sheet = Sheet::new("Alerts").with_notice(alerts.notice).with_tabs(tabs(frame), "/alerts");
    sheet = sheet.with_filter(filter).with_next(alerts.next, &again);
    sheet.parts.push(Part::of_table("list", "", table, "No alert of this kind."));
    sheet.render(frame)
}

fn host(frame: &Frame, one: &IncidentView) -> Cell {
    match &one.host {
        Some(host) => Cell::link_where(frame.host_page(host), host),
        None => Cell::text("the hub"),
    }
}

fn about(one: &IncidentView) -> String {
    one.guest.as_ref().map_or_else(|| one.subject.clone(), |guest| format!("guest {guest}"))
}

fn phase_note(one: &IncidentView) -> Option<String> {
    let phase = match one.phase {
        IncidentPhase::Firing => None,
        IncidentPhase::Pending => Some("in its grace"),
        IncidentPhase::Resolved => Some("over"),
    };
    let notes = [
        phase,
        one.stale_since.map(|_| "nothing newer is known"),
        one.flapping_since.map(|_| "comes and goes"),
    ];
    let notes: Vec<&str> = notes.into_iter().flatten().collect();
    (!notes.is_empty()).then(|| notes.join(", "))
}

/// One alert, who hears of it, and its history.
///
/// # Errors
/// [`RenderError`].
pub fn one(frame: &Frame, detail: &IncidentDetail, notice: Notice<'_>) -> Result<String, RenderError> {
    let incident = &detail.incident;
    let mut sheet = Sheet::new(incident.code.as_str()).with_notice(notice);
    sheet.up = Some(Link::new("/alerts", "Alerts"));
    sheet.state = Some(words::severity(incident.severity));
    sheet.lead = Some(incident.message.as_str().to_owned());
    sheet.facts = vec![
        ("Host", host(frame, incident)),
        ("About", Cell::text(about(incident))),
        ("State", Cell::state(phase(incident.phase)).with_small(phase_note(incident))),
        ("Since", Cell::when(frame.when(incident.since))),
        ("Customer", Cell::or_dash(incident.customer.as_ref())),
        ("Id", Cell::code(incident.id.as_str())),
    ];
    let mut part = Part::new("remedy", "What to do");
    part.note = Some(incident.remedy.as_str().to_owned());
    sheet.parts.push(part);
    if incident.phase != IncidentPhase::Resolved {
        sheet.parts.push(acknowledgement(frame, incident));
        if frame.may_change() {
            sheet.parts.push(silence(incident));
        }
    }
    let rows = detail.receivers.iter().map(|one| {
        [
            Cell::text(one.receiver.as_str()),
            Cell::text(match one.sent {
                LastSent::Nothing => "nothing",
                LastSent::WithNextRepeat => "nothing; with the next repeat",
                LastSent::Firing => "that it fires",
            }),
            Cell::note(one.muted.as_ref().map(|muted| muted.text.clone()).unwrap_or_default()),
        ]
    });
    let table = Table::new("Receivers", ["Receiver", "Was sent", "Hears no more, because"], rows);
    sheet.parts.push(Part::of_table("receivers", "Who hears of it", table, "No receiver."));
    sheet.parts.push(Part::of_table(
        "history",
        "History",
        log_table(frame, &detail.log.items),
        "Nothing yet.",
    ));
    sheet.render(frame)
}

fn acknowledgement(frame: &Frame, incident: &IncidentView) -> Part {
    let id = incident.id.as_str();
    let mut part = Part::new("known", "Known");
    match &incident.acknowledged {
        Some(by) => {
            let until = by.until.map_or_else(String::new, |at| format!(", until {}", frame.when(at).exact));
            let says = format!(
                "{} knows of it since {}{until}: it is not repeated.",
                by.by,
                frame.when(by.at).exact
            );
            part.note = Some(says);
            if frame.may_change() {
                let action = format!("/alerts/{id}/unacknowledge");
                part.forms.push(Form::new("known", action, "Take it back", Vec::new()));
            }
        }
        None => {
            part.note = Some(
                "Nobody has said that they know of it. Said so, it is not repeated and not escalated."
                    .to_owned(),
            );
            if frame.may_change() {
                let hours = Field::number("hours", "For how many hours", "")
                    .with_hint("none: until it is over or gets worse");
                let action = format!("/alerts/{id}/acknowledge");
                part.forms.push(Form::new("known", action, "I know of it", vec![hours]));
            }
        }
    }
    part
}

fn silence(incident: &IncidentView) -> Part {
    let mut matchers = vec![format!("code={}", incident.code.as_str())];
    matchers.extend(incident.host.as_ref().map(|host| format!("host={host}")));
    matchers.extend(incident.guest.as_ref().map(|guest| format!("guest={guest}")));
    let mut part = Part::new("silence", "Silence");
    part.note = Some("Nothing is sent of what matches, until the silence ends.".to_owned());
    part.forms.push(silence_form("silence", &matchers.join(", "), "24", ""));
    part
}

/// The form of a silence. It is on the page of silences, too.
pub(crate) fn silence_form(id: &str, matchers: &str, hours: &str, comment: &str) -> Form {
    let fields = vec![
        Field::text("matchers", "All of these match", matchers)
            .required()
            .with_hint("label=value, with commas"),
        Field::number("hours", "For how many hours", hours).required(),
        Field::text("comment", "Why", comment).required(),
    ];
    Form::new(id, "/silences", "Silence", fields)
}

fn phase(phase: IncidentPhase) -> Word {
    match phase {
        IncidentPhase::Pending => Word::new("in its grace", Tone::Plain),
        IncidentPhase::Firing => Word::new("fires", Tone::Bad),
        IncidentPhase::Resolved => Word::new("over", Tone::Good),
    }
}

fn log_table(frame: &Frame, log: &[LogView]) -> Table {
    let rows = log.iter().map(|one| {
        [
            Cell::number(one.number),
            Cell::when(frame.when(one.at)),
            match &one.host {
                Some(host) => Cell::link_where(frame.host_page(host), host),
                None => Cell::text("the hub"),
            },
            Cell::note(&one.text),
        ]
    });
    Table::new("History of alerts", ["Number", "When", "Host", "In words"], rows)
}

/// The log of all alerts.
///
/// # Errors
/// [`RenderError`].
pub fn log(frame: &Frame, log: &[LogView], next: Option<&str>) -> Result<String, RenderError> {
    let mut sheet =
        Sheet::new("History of alerts").with_tabs(tabs(frame), "/alerts/log").with_next(next, &[]);
    sheet.parts.push(Part::of_table("log", "", log_table(frame, log), "Nothing happened yet."));
    sheet.render(frame)
}
