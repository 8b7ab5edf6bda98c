//! What all pages have in common.

use holdfast_protocol::id::OperatorName;
use holdfast_protocol::operator::Role;
use jiff::Timestamp;

use crate::assets;
use crate::look::Look;

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

impl Section {
    /// Address and name of its entry.
    const fn entry(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Start => Some(("/", "Start")),
            Self::Hosts => Some(("/hosts", "Hosts")),
            Self::Guests => Some(("/guests", "Guests")),
            Self::Events => Some(("/events", "Events")),
            Self::Other => None,
        }
    }
}

/// One link of the navigation.
pub(crate) struct Link {
    pub href: &'static str,
    pub text: &'static str,
    pub is_current: bool,
}

/// Who looks at the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Person {
    pub name: OperatorName,
    pub role: Role,
    /// What each form of the page sends back.
    pub csrf: String,
    /// The entries of the navigation that they may open.
    pub sections: Vec<Section>,
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
    pub hub_version: &'static str,
    /// The time by which ages are shown.
    pub now: Timestamp,
    pub look: Look,
}

impl Frame {
    pub(crate) fn links(&self) -> Vec<Link> {
        let sections = self.person.iter().flat_map(|person| &person.sections);
        let link = |(section, (href, text))| Link { href, text, is_current: self.section == section };
        sections.filter_map(|section| Some((*section, section.entry()?))).map(link).collect()
    }

    /// Whether the person may open the list of hosts, and so a host.
    pub(crate) fn has_hosts(&self) -> bool {
        self.person.as_ref().is_some_and(|person| person.sections.contains(&Section::Hosts))
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

    pub(crate) fn icon(&self) -> String {
        assets::ICON.path()
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
