//! The content of a message, independent of channels.
//!
//! A [`Draft`] becomes a [`Message`] by [`Message::from`], which cannot fail: texts that are too long are cut with `…`,
//! and alerts beyond the bound are counted. An alert is therefore never lost because its text was long.

use std::collections::BTreeMap;

use holdfast_protocol::condition::Severity;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::id::{GroupId, IncidentId};
use crate::text::one_line;

/// The most characters of a title.
pub const TITLE_CHARS_MAX: usize = 120;
/// The most characters of the sentence about one alert.
pub const ALERT_CHARS_MAX: usize = 300;
/// The most alerts that a message names; the others are counted.
pub const ALERTS_MAX: usize = 200;
/// The most characters of a command.
pub const REMEDY_CHARS_MAX: usize = 300;
/// The most bytes of a link.
pub const LINK_BYTES_MAX: usize = 1000;

/// What the message says of its alerts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageState {
    /// They hold.
    Firing,
    /// They have ended.
    Resolved,
    /// What was held back during quiet hours.
    Digest,
    /// An operator tries the channel.
    Test,
    /// They come and go, and are reported once.
    Flapping,
}

impl MessageState {
    /// As it is written on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Firing => "firing",
            Self::Resolved => "resolved",
            Self::Digest => "digest",
            Self::Test => "test",
            Self::Flapping => "flapping",
        }
    }
}

/// One alert of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Alert {
    pub incident: IncidentId,
    /// One sentence that names the subject and what is wrong with it.
    pub text: String,
    /// What a program that keeps alerts by their labels needs; people read the sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<Box<Series>>,
}

/// An alert as labels and times.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Series {
    /// By which it is known again, its name among them.
    pub labels: BTreeMap<String, String>,
    /// What to do.
    pub remedy: String,
    pub starts_at: Timestamp,
    /// When it was over, where it is.
    pub ends_at: Option<Timestamp>,
    /// Where all of it is shown.
    pub source: Option<Link>,
}

/// Text that is no link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a link is an http or https URL of at most {LINK_BYTES_MAX} bytes without user and password")]
pub struct LinkError;

/// A page about the message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Link(Url);

impl Link {
    /// The URL as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl TryFrom<String> for Link {
    type Error = LinkError;
    fn try_from(text: String) -> Result<Self, LinkError> {
        let url = Url::parse(&text).map_err(|_| LinkError)?;
        let fits = matches!(url.scheme(), "http" | "https")
            && url.as_str().len() <= LINK_BYTES_MAX
            && url.username().is_empty()
            && url.password().is_none();
        if fits { Ok(Self(url)) } else { Err(LinkError) }
    }
}

impl From<Link> for String {
    fn from(link: Link) -> Self {
        link.0.into()
    }
}

/// The content of a message before its bounds are applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Draft {
    pub group: GroupId,
    pub state: MessageState,
    pub severity: Severity,
    pub title: String,
    /// The most important first.
    pub alerts: Vec<Alert>,
    /// How many more alerts there are than `alerts` names.
    #[serde(default)]
    pub omitted: u32,
    /// The command to run.
    #[serde(default)]
    pub remedy: Option<String>,
    #[serde(default)]
    pub link: Option<Link>,
    /// When the state came about.
    pub at: Timestamp,
}

/// The content of a message, within its bounds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Draft", into = "Draft")]
pub struct Message(Draft);

impl From<Draft> for Message {
    fn from(mut draft: Draft) -> Self {
        let beyond = u32::try_from(draft.alerts.len().saturating_sub(ALERTS_MAX)).unwrap_or(u32::MAX);
        draft.omitted = draft.omitted.saturating_add(beyond);
        draft.alerts.truncate(ALERTS_MAX);
        for alert in &mut draft.alerts {
            alert.text = one_line(&alert.text, ALERT_CHARS_MAX);
        }
        draft.title = one_line(&draft.title, TITLE_CHARS_MAX);
        draft.remedy = draft.remedy.map(|remedy| one_line(&remedy, REMEDY_CHARS_MAX));
        Self(draft)
    }
}

impl From<Message> for Draft {
    fn from(message: Message) -> Self {
        message.0
    }
}

impl std::ops::Deref for Message {
    type Target = Draft;
    fn deref(&self) -> &Draft {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft(alerts: usize) -> Draft {
        let alert = |n| Alert {
            incident: IncidentId::try_from(format!("i{n}")).unwrap(),
            text: "t".repeat(301),
            series: None,
        };
        Draft {
            group: GroupId::try_from("g".to_owned()).unwrap(),
            state: MessageState::Firing,
            severity: Severity::Critical,
            title: "ü".repeat(121),
            alerts: (0..alerts).map(alert).collect(),
            omitted: 5,
            remedy: Some("holdfast\nx".to_owned()),
            link: None,
            at: Timestamp::UNIX_EPOCH,
        }
    }

    #[test]
    fn what_is_beyond_a_bound_is_cut_with_a_sign_or_counted() {
        let message = Message::from(draft(203));
        assert_eq!((message.alerts.len(), message.omitted), (200, 8));
        assert_eq!(message.title, format!("{}…", "ü".repeat(119)));
        assert_eq!(message.alerts[0].text.chars().count(), 300);
        assert_eq!(message.remedy.as_deref(), Some("holdfast x"));
    }

    #[test]
    fn bounds_hold_for_a_message_from_the_outbox_too() {
        let stored = serde_json::to_string(&draft(203)).unwrap();
        let message: Message = serde_json::from_str(&stored).unwrap();
        assert_eq!(message, Message::from(draft(203)));
        let again: Message = serde_json::from_str(&serde_json::to_string(&message).unwrap()).unwrap();
        assert_eq!(again, message);
        serde_json::from_str::<Message>(&stored.replacen("\"title\"", "\"tilte\"", 1)).unwrap_err();
    }

    #[test]
    fn links_are_of_the_web_and_hold_no_password() {
        let link = |text: &str| Link::try_from(text.to_owned());
        assert_eq!(link("https://hub.example/a?b=c").unwrap().as_str(), "https://hub.example/a?b=c");
        let long = |bytes: usize| format!("https://hub.example/{}", "a".repeat(bytes - 20));
        assert!(link(&long(LINK_BYTES_MAX)).is_ok());
        let too_long = long(LINK_BYTES_MAX + 1);
        for bad in ["javascript:alert(1)", "file:///etc", "https://a:b@c.example/", "x", too_long.as_str()] {
            assert_eq!(link(bad), Err(LinkError), "{bad}");
        }
    }
}
