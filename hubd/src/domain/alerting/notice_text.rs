//! Notices as messages for channels.

use alerts::label::{Label, Labelled};
use alerts::notice::{IncidentNews, Notice, NoticeIncident, Origin, Reason};
use holdfast_protocol::condition::{Severity, Subject};
use holdfast_protocol::id::HostName;
use jiff::Timestamp;
use notify::message::{ALERT_CHARS_MAX, ALERTS_MAX, Alert, Draft, Link, Message, MessageState, Series};

/// What a hub is known by.
#[derive(Clone, Debug)]
pub struct HubName {
    /// The pin of its CA, so that two hubs can share a mailbox.
    pub pin: String,
    /// How operators reach it.
    pub url: String,
}

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
        alerts: notice.incidents.iter().filter_map(|incident| alert(incident, hub)).collect(),
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
    notify::GroupId::digest_of(&format!("{}/{place}", hub.pin))
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
        (1, _) => format!("{place}: {still}1 problem ({severity})"),
        (firing, _) => format!("{place}: {still}{firing} problems ({severity})"),
    }
}

fn place(incident: &NoticeIncident) -> String {
    match &incident.host {
        Some(host) => host.to_string(),
        None => "the hub".to_owned(),
    }
}

/// What still fires, for a receiver that forgets what it is not sent again.
#[must_use]
pub fn repeated(firing: &[NoticeIncident], hub: &HubName, now: Timestamp) -> Vec<Message> {
    let message = |incidents: &[NoticeIncident]| {
        Message::from(Draft {
            group: notify::GroupId::digest_of(&format!("{}/repeated", hub.pin)),
            state: MessageState::Firing,
            severity: incidents.iter().map(|one| one.severity).max().unwrap_or(Severity::Info),
            title: format!("{} alerts fire", incidents.len()),
            alerts: incidents.iter().filter_map(|incident| alert(incident, hub)).collect(),
            omitted: 0,
            remedy: None,
            link: None,
            at: now,
        })
    };
    firing.chunks(ALERTS_MAX).map(message).collect()
}

fn alert(incident: &NoticeIncident, hub: &HubName) -> Option<Alert> {
    let id = notify::IncidentId::try_from(incident.id.to_string()).ok()?;
    let series = Some(Box::new(series(incident, hub)));
    Some(Alert { incident: id, text: sentence(incident), series })
}

/// The labels that matchers see, under the names that an Alertmanager has for them.
fn series(incident: &NoticeIncident, hub: &HubName) -> Series {
    let NoticeIncident { code, subject, labels, severity, host, .. } = incident;
    let labelled = Labelled { code: *code, severity: *severity, subject, labels, host: host.as_ref() };
    let named = Label::NAMES.iter().map(|(name, label)| {
        let name = if *label == Label::Code { "alertname" } else { name };
        (name.to_owned(), labelled.value(*label).into_owned())
    });
    let ends_at = match incident.news {
        IncidentNews::Resolved { at } => Some(at),
        IncidentNews::New {} | IncidentNews::Changed {} | IncidentNews::Ongoing {} => None,
    };
    Series {
        labels: named.filter(|(_, value)| !value.is_empty()).collect(),
        remedy: incident.remedy.as_str().to_owned(),
        starts_at: incident.since,
        ends_at,
        source: Link::try_from(format!("{}/v1/alerts/{}", hub.url, incident.id)).ok(),
    }
}

/// Subject, what is wrong, since when, and what makes it less certain. A long message is cut, and nothing that comes after it.
fn sentence(incident: &NoticeIncident) -> String {
    let head = format!("{} {}: ", incident.code, subject(incident));
    let tail = marks(incident);
    let room = ALERT_CHARS_MAX.saturating_sub(head.chars().count() + tail.chars().count());
    format!("{head}{}{tail}", cut(incident.message.as_str(), room))
}

/// The text, or its beginning and `…`, in at most so many characters.
fn cut(text: &str, chars_max: usize) -> String {
    if text.chars().count() <= chars_max {
        return text.to_owned();
    }
    text.chars().take(chars_max.saturating_sub(1)).chain(['…']).collect()
}

/// What a reader acts by: whether it is over, and its name for `holdfast alert show` and `ack`.
fn marks(incident: &NoticeIncident) -> String {
    let mut text = match incident.news {
        IncidentNews::Resolved { at } => match &incident.ending {
            Some(why) => format!(" [over since {at:.0}: {why}]"),
            None => format!(" [over since {at:.0}]"),
        },
        IncidentNews::New {} | IncidentNews::Changed {} | IncidentNews::Ongoing {} => {
            format!(" [since {:.0}]", incident.since)
        }
    };
    if let Some(since) = incident.stale_since {
        text.push_str(&format!(" [nothing newer is known since {since:.0}]"));
    }
    if let Some(since) = incident.flapping_since {
        text.push_str(&format!(" [it comes and goes since {since:.0}]"));
    }
    if let Some(by) = &incident.acknowledged_by {
        text.push_str(&format!(" [acknowledged by {by}]"));
    }
    let host = incident.host.as_ref().map_or("hub", HostName::as_str);
    text.push_str(&format!(" ({host}/{})", incident.id.number));
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

#[cfg(test)]
mod tests {
    use super::*;
    use alerts::Ending;
    use alerts::incident::{IncidentId, Scope};
    use alerts::label::Labels;
    use alerts::notice::DedupeKey;
    use holdfast_protocol::condition::{ConditionCode, ConditionText, ReportedCondition};
    use holdfast_protocol::id::{GuestUid, HostId};
    use uuid::Uuid;

    fn hub(pin: &str) -> HubName {
        HubName { pin: pin.to_owned(), url: "https://hub.example:8440".to_owned() }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    fn incident(number: u64, news: IncidentNews) -> NoticeIncident {
        let uid = GuestUid::new(Uuid::from_u128(7));
        let condition =
            ReportedCondition::new(ConditionCode::GuestCrashed, Subject::Guest { uid }, at(0), "it stopped");
        NoticeIncident {
            id: IncidentId { scope: Scope::Host(HostId::new(Uuid::from_u128(1))), number },
            news,
            code: condition.code,
            subject: condition.subject,
            host: "box1".parse().ok(),
            labels: Labels { customer: "acme".parse().ok(), guest: "web".parse().ok(), policy: None },
            severity: condition.severity,
            since: condition.since,
            message: condition.message,
            remedy: condition.remedy,
            stale_since: None,
            flapping_since: None,
            acknowledged_by: None,
            ending: None,
        }
    }

    fn notice(reason: Reason, incidents: Vec<NoticeIncident>) -> Notice {
        let receiver = "ops".parse().unwrap();
        Notice {
            key: DedupeKey::of(Scope::Hub, &receiver, reason, 1),
            receiver,
            reason,
            origin: Origin::Combined { parts: 1 },
            incidents,
            made_at: at(0),
            not_before: at(0),
        }
    }

    fn said(notice: &Notice) -> (String, MessageState) {
        let message = message(notice, &hub("a hub"));
        (message.title.clone(), message.state)
    }

    #[test]
    fn a_title_says_where_what_and_how_bad() {
        let new = || incident(3, IncidentNews::New {});
        let over = || incident(4, IncidentNews::Resolved { at: at(60) });
        let elsewhere = NoticeIncident { host: "box2".parse().ok(), ..new() };
        let of_hub = NoticeIncident { host: None, ..over() };
        for (reason, incidents, title, state) in [
            (Reason::First, vec![new()], "box1: GUEST_CRASHED (warning)", MessageState::Firing),
            (Reason::Repeat, vec![new()], "box1: still GUEST_CRASHED (warning)", MessageState::Firing),
            (Reason::NewInGroup, vec![new(), new()], "box1: 2 problems (warning)", MessageState::Firing),
            (Reason::SomeResolved, vec![new(), over()], "box1: 1 problem (warning)", MessageState::Firing),
            (Reason::AllResolved, vec![over()], "box1: GUEST_CRASHED is over", MessageState::Resolved),
            (Reason::AllResolved, vec![over(), over()], "box1: 2 problems are over", MessageState::Resolved),
            (Reason::Digest, vec![new(), elsewhere], "2 hosts: 2 problems (warning)", MessageState::Digest),
            (Reason::AllResolved, vec![of_hub], "the hub: GUEST_CRASHED is over", MessageState::Resolved),
        ] {
            assert_eq!(said(&notice(reason, incidents)), (title.to_owned(), state));
        }
    }

    #[test]
    fn a_long_message_hides_neither_the_end_nor_the_name_of_an_alert() {
        let long = ConditionText::clipped(&"é".repeat(400));
        let over = NoticeIncident { message: long, ..incident(4, IncidentNews::Resolved { at: at(60) }) };
        let sent = message(&notice(Reason::AllResolved, vec![over]), &hub("a hub"));
        let text = &sent.alerts[0].text;
        assert!(text.ends_with("é… [over since 2027-01-15T08:01:00Z] (box1/4)"), "{text}");
        assert_eq!(text.chars().count(), ALERT_CHARS_MAX);
    }

    #[test]
    fn a_sentence_names_the_guest_its_customer_and_the_alert() {
        let known = NoticeIncident {
            stale_since: Some(at(10)),
            acknowledged_by: "eve".parse().ok(),
            ..incident(3, IncidentNews::Ongoing {})
        };
        assert_eq!(
            sentence(&known),
            "GUEST_CRASHED on box1, web of acme: it stopped [since 2027-01-15T08:00:00Z] \
             [nothing newer is known since 2027-01-15T08:00:10Z] [acknowledged by eve] (box1/3)"
        );
        let over = NoticeIncident {
            labels: Labels::default(),
            ..incident(4, IncidentNews::Resolved { at: at(60) })
        };
        assert!(
            sentence(&over).contains("guest:00000000-0000-0000-0000-000000000007: it stopped [over since")
        );
        let by = "eve".parse().unwrap();
        let closed = NoticeIncident { ending: Some(Ending::HostRevoked { by }), ..over.clone() };
        assert!(sentence(&closed).contains("[over since 2027-01-15T08:01:00Z: the host was revoked by eve]"));
        // The group does not depend on the time, so channels can thread its messages.
        let a_hub = hub("a hub");
        let one = notice(Reason::First, vec![over.clone()]);
        let later = Notice { made_at: at(999), ..one.clone() };
        assert_eq!(message(&one, &a_hub).group, message(&later, &a_hub).group);
        assert_ne!(message(&one, &a_hub).group, message(&one, &hub("another")).group);
    }

    #[test]
    fn a_series_has_the_labels_of_matchers_and_where_it_is_shown() {
        let one = series(&incident(3, IncidentNews::New {}), &hub("a hub"));
        let labels: Vec<(&str, &str)> = one.labels.iter().map(|(name, value)| (&**name, &**value)).collect();
        let subject = "guest:00000000-0000-0000-0000-000000000007";
        assert_eq!(
            labels,
            [
                ("alertname", "GUEST_CRASHED"),
                ("cause", "guest"),
                ("customer", "acme"),
                ("guest", "web"),
                ("host", "box1"),
                ("kind", "guest"),
                ("severity", "warning"),
                ("subject", subject),
            ]
        );
        assert_eq!((one.starts_at, one.ends_at), (at(0), None));
        let shown = "https://hub.example:8440/v1/alerts/00000000-0000-0000-0000-000000000001-3";
        assert_eq!(one.source.unwrap().as_str(), shown);
        let over = series(&incident(3, IncidentNews::Resolved { at: at(9) }), &hub("a hub"));
        assert_eq!((over.ends_at, over.labels), (Some(at(9)), one.labels));
    }

    #[test]
    fn what_fires_is_repeated_whole_in_several_messages() {
        let firing: Vec<NoticeIncident> = (0..450).map(|n| incident(n, IncidentNews::Ongoing {})).collect();
        let messages = repeated(&firing, &hub("a hub"), at(60));
        let sizes: Vec<usize> = messages.iter().map(|one| one.alerts.len()).collect();
        assert_eq!(sizes, [200, 200, 50]);
        assert_eq!(repeated(&[], &hub("a hub"), at(60)), []);
    }
}
