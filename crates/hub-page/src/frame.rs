//! What all pages have in common.

use holdfast_protocol::id::OperatorName;
use holdfast_protocol::operator::Role;
use jiff::Timestamp;

use crate::assets;

/// The entries of the navigation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    Start,
    Hosts,
    Guests,
    Events,
    /// A page that no entry leads to.
    Other,
}

/// One link of the navigation.
pub(crate) struct Link {
    pub href: &'static str,
    pub text: &'static str,
    pub is_current: bool,
}

/// Light, dark, or what the browser says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Theme {
    #[default]
    System,
    Light,
    Dark,
}

impl Theme {
    /// As the cookie and the `data-theme` attribute have it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }

    /// That of a cookie; what it does not know is the browser's.
    #[must_use]
    pub fn of(text: &str) -> Self {
        match text {
            "light" => Self::Light,
            "dark" => Self::Dark,
            _ => Self::System,
        }
    }
}

/// Who looks at the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Person {
    pub name: OperatorName,
    pub role: Role,
    /// What each form of the page sends back.
    pub csrf: String,
}

impl Person {
    pub(crate) const fn role_word(&self) -> &'static str {
        match self.role {
            Role::Customer => "customer",
            Role::Viewer => "viewer",
            Role::Operator => "operator",
            Role::Admin => "admin",
        }
    }
}

/// What surrounds a page.
#[derive(Clone, Debug)]
pub struct Frame {
    pub section: Section,
    /// Nobody before the sign-in.
    pub person: Option<Person>,
    pub theme: Theme,
    pub hub_version: &'static str,
    /// The time by which ages are shown.
    pub now: Timestamp,
}

impl Frame {
    pub(crate) fn links(&self) -> [Link; 4] {
        let link = |section, href, text| Link { href, text, is_current: self.section == section };
        [
            link(Section::Start, "/", "Start"),
            link(Section::Hosts, "/hosts", "Hosts"),
            link(Section::Guests, "/guests", "Guests"),
            link(Section::Events, "/events", "Events"),
        ]
    }

    /// Whether the page shows facts that change by themselves.
    pub(crate) fn is_live(&self) -> bool {
        self.section != Section::Other
    }

    pub(crate) fn style(&self) -> String {
        assets::STYLE.path()
    }

    pub(crate) fn script(&self) -> String {
        assets::SCRIPT.path()
    }

    pub(crate) fn shown(&self) -> When {
        self.when(self.now)
    }

    pub(crate) fn when(&self, at: Timestamp) -> When {
        When::new(at, self.now)
    }
}

/// A time as a page shows it: its age, and on hover the time itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct When {
    pub machine: String,
    pub exact: String,
    /// How long ago: `2 h ago`.
    pub age: String,
    /// How long since: `2 h`.
    pub span: String,
}

impl When {
    fn new(at: Timestamp, now: Timestamp) -> Self {
        Self {
            machine: at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            exact: holdfast_protocol::time_text::stamp(at),
            age: holdfast_protocol::time_text::ago(at, now),
            span: holdfast_protocol::time_text::age(at, now),
        }
    }
}
