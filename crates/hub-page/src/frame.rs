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
    Jobs,
    Alerts,
    Storage,
    Policies,
    Images,
    Releases,
    Events,
    Audit,
    Customers,
    Settings,
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
            Self::Jobs => Some(("/jobs", "Jobs")),
            Self::Alerts => Some(("/alerts", "Alerts")),
            Self::Storage => Some(("/storage", "Storage")),
            Self::Policies => Some(("/policies", "Policies")),
            Self::Images => Some(("/images", "Images")),
            Self::Releases => Some(("/releases", "Releases")),
            Self::Events => Some(("/events", "Events")),
            Self::Audit => Some(("/audit", "Audit")),
            Self::Customers => Some(("/customers", "Customers")),
            Self::Settings => Some(("/settings", "Settings")),
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
    /// The newest change that the page knows of; none for a page that is not read anew.
    pub live: Option<u64>,
    pub look: Look,
}

impl Frame {
    pub(crate) fn links(&self) -> Vec<Link> {
        let sections = self.person.iter().flat_map(|person| &person.sections);
        let link = |(section, (href, text))| Link { href, text, is_current: self.section == section };
        sections.filter_map(|section| Some((*section, section.entry()?))).map(link).collect()
    }

    /// What the folded navigation is called.
    pub(crate) fn section_name(&self) -> &'static str {
        self.section.entry().map_or("Pages", |(_, text)| text)
    }

    /// What each form sends back; nothing before the sign-in.
    pub(crate) fn csrf(&self) -> String {
        self.person.as_ref().map(|person| person.csrf.clone()).unwrap_or_default()
    }

    /// Whether the person looks at what is theirs alone.
    pub(crate) fn is_customers(&self) -> bool {
        self.person.as_ref().is_some_and(|person| person.role == Role::Customer)
    }

    /// Whether the person may change something at all.
    pub(crate) fn may_change(&self) -> bool {
        self.person.as_ref().is_some_and(|person| matches!(person.role, Role::Operator | Role::Admin))
    }

    /// The page of a host, where the person may open it.
    pub(crate) fn host_page(&self, host: impl std::fmt::Display) -> Option<String> {
        self.has_hosts().then(|| format!("/hosts/{host}"))
    }

    /// Whether the person may open the list of hosts, and so a host.
    pub(crate) fn has_hosts(&self) -> bool {
        self.person.as_ref().is_some_and(|person| person.sections.contains(&Section::Hosts))
    }

    /// From which change on a page of facts is told of later ones.
    pub(crate) fn live_after(&self) -> Option<u64> {
        self.live.filter(|_| self.section != Section::Other)
    }

    /// Whether the person may order work that needs no signature.
    pub(crate) fn may_order(&self) -> bool {
        self.may_change()
    }

    pub(crate) fn live_script(&self) -> String {
        assets::LIVE.path()
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
