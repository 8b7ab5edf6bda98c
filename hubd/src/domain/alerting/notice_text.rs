//! Notices as messages for channels.

use alerts::notice::{IncidentNews, Notice, NoticeIncident, Origin, Reason};
use holdfast_protocol::condition::{Severity, Subject};
use notify::message::{Alert, Draft, Message, MessageState};

/// What a hub is known by, so that two hubs can share a mailbox: the pin of its CA.
#[derive(Clone, Debug)]
pub struct HubName(pub String);

/// The message of a notice.
#[must_use]
pub fn message(notice: &Notice, hub: &HubName) -> Message {
    let severity = notice.severity();
    let remedy = match notice.incidents.as_slice() {
        [only] if only.is_firing() => Some(only.remedy.as_str().to_owned()),
        _ => None,
    };
    Message::from(Draft {
        group: group(notice, hub),
        state: state(notice),
        severity,
        title: title(notice, severity),
        alerts: notice.incidents.iter().filter_map(alert).collect(),
        omitted: 0,
        remedy,
        link: None,
        at: notice.made_at,
    })
}

/// All messages of one group have the same id, so that channels can thread them.
fn group(notice: &Notice, hub: &HubName) -> notify::GroupId {
    let place = match &notice.origin {
        Origin::Group { scope, key } => format!("{scope}/{key}"),
        Origin::Combined { .. } | Origin::Test {} => notice.key.to_string(),
    };
    notify::GroupId::digest_of(&format!("{}/{place}", hub.0))
}

fn state(notice: &Notice) -> MessageState {
    match notice.reason {
        Reason::Test => MessageState::Test,
        Reason::Digest => MessageState::Digest,
        Reason::Flapping => MessageState::Flapping,
        Reason::AllResolved => MessageState::Resolved,
        Reason::First | Reason::NewInGroup | Reason::SomeResolved | Reason::Repeat | Reason::Escalation => {
            MessageState::Firing
        }
    }
}

/// One line that says where, what and how bad, as a phone shows it.
#[must_use]
pub fn title(notice: &Notice, severity: Severity) -> String {
    let hosts: std::collections::BTreeSet<String> = notice.incidents.iter().map(place).collect();
    let place = match hosts.len() {
        1 => hosts.into_iter().next().unwrap_or_default(),
        many => format!("{many} hosts"),
    };
    let firing = notice.incidents.iter().filter(|incident| incident.is_firing()).count();
    let still = if notice.reason == Reason::Repeat { "still " } else { "" };
    match (firing, notice.incidents.as_slice()) {
        (0, [only]) => format!("{place}: {} is over", only.code),
        (0, all) => format!("{place}: {} problems are over", all.len()),
        (_, [only]) => format!("{place}: {still}{} ({severity})", only.code),
        (firing, _) => format!("{place}: {still}{firing} problems ({severity})"),
    }
}

fn place(incident: &NoticeIncident) -> String {
    match &incident.host {
        Some(host) => host.to_string(),
        None => "the hub".to_owned(),
    }
}

fn alert(incident: &NoticeIncident) -> Option<Alert> {
    let id = notify::IncidentId::try_from(incident.id.to_string()).ok()?;
    Some(Alert { incident: id, text: sentence(incident) })
}

/// Subject, what is wrong, since when, and what makes it less certain.
fn sentence(incident: &NoticeIncident) -> String {
    let mut text = format!("{} {}: {}", incident.code, subject(incident), incident.message.as_str());
    match incident.news {
        IncidentNews::Resolved { at } => text.push_str(&format!(" [over since {at:.0}]")),
        IncidentNews::New {} | IncidentNews::Changed {} | IncidentNews::Ongoing {} => {
            text.push_str(&format!(" [since {:.0}]", incident.since));
        }
    }
    if let Some(since) = incident.stale_since {
        text.push_str(&format!(" [nothing newer is known since {since:.0}]"));
    }
    if let Some(since) = incident.flapping_since {
        text.push_str(&format!(" [it comes and goes since {since:.0}]"));
    }
    if let Some(by) = &incident.acknowledged_by {
        text.push_str(&format!(" [acknowledged by {by}]"));
    }
    text
}

/// The guest's name where it is known, with its customer; else the subject as it is written.
fn subject(incident: &NoticeIncident) -> String {
    let place = place(incident);
    let what = match (&incident.labels.guest, &incident.subject) {
        (Some(name), Subject::Tier { tier, .. }) => format!("{name} ({tier})"),
        (Some(name), _) => name.to_string(),
        (None, Subject::Host {} | Subject::Hub {}) => return format!("on {place}"),
        (None, subject) => subject.to_string(),
    };
    match &incident.labels.customer {
        Some(customer) => format!("on {place}, {what} of {customer}"),
        None => format!("on {place}, {what}"),
    }
}
