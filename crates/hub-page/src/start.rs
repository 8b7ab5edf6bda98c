//! The first page: what needs a person, then the fleet.

use askama::Template;
use holdfast_protocol::alert::IncidentView;
use holdfast_protocol::operator::{EnrollmentRequestView, HostState, HostView};

use crate::RenderError;
use crate::first_start::FirstStart;
use crate::frame::{Frame, When};
use crate::words::{self, Word};

/// What the page is made of.
pub struct Start<'a> {
    /// Incidents that fire, in any order.
    pub incidents: &'a [IncidentView],
    /// Hosts that request enrollment and are undecided; none where the person may not see them.
    pub requests: Option<&'a [EnrollmentRequestView]>,
    /// The hosts; none where the person may not see them.
    pub fleet: Option<Fleet<'a>>,
    /// The first steps, while they are not done; for who may take them.
    pub first: Option<&'a FirstStart>,
}

/// The hosts of the map.
#[derive(Clone, Copy)]
pub struct Fleet<'a> {
    /// All that were not let go, by name; at most [`HOSTS_SHOWN`].
    pub hosts: &'a [HostView],
    /// Whether there are more hosts than that.
    pub has_more: bool,
}

/// Hosts on the map at most.
pub const HOSTS_SHOWN: u32 = 500;

/// Incidents on the page at most; the rest are counted.
const INCIDENTS_SHOWN: usize = 50;

struct Item {
    severity: Word,
    since: When,
    host: Option<String>,
    about: String,
    message: String,
    remedy: String,
    code: &'static str,
    acknowledged: Option<String>,
}

struct Tile {
    name: String,
    state: Word,
    guests: String,
    attention: u32,
    seen: Option<When>,
}

struct Count {
    number: usize,
    word: Word,
    filter: &'static str,
}

#[derive(Template)]
#[template(path = "start.html")]
struct StartPage<'a> {
    frame: &'a Frame,
    items: Vec<Item>,
    left_out: usize,
    requests: Option<Vec<(String, When, String)>>,
    has_fleet: bool,
    first: Option<&'a FirstStart>,
    counts: Vec<Count>,
    guests: u32,
    guests_running: u32,
    tiles: Vec<Tile>,
    has_more_hosts: bool,
}

/// # Errors
/// [`RenderError`].
pub fn render(frame: &Frame, start: &Start<'_>) -> Result<String, RenderError> {
    let mut incidents: Vec<&IncidentView> = start.incidents.iter().collect();
    incidents.sort_by_key(|one| (one.acknowledged.is_some(), std::cmp::Reverse(one.severity), one.since));
    let left_out = incidents.len().saturating_sub(INCIDENTS_SHOWN);
    let items = incidents.into_iter().take(INCIDENTS_SHOWN).map(|one| item(frame, one)).collect();
    let request = |one: &EnrollmentRequestView| {
        (one.claimed_name.to_string(), frame.when(one.first_at), one.id.to_string())
    };
    let Fleet { hosts, has_more } = start.fleet.unwrap_or(Fleet { hosts: &[], has_more: false });
    let page = StartPage {
        frame,
        items,
        left_out,
        requests: start.requests.map(|requests| requests.iter().map(request).collect()),
        has_fleet: start.fleet.is_some(),
        first: start.first,
        counts: counts(hosts),
        guests: hosts.iter().map(|host| host.guests).sum(),
        guests_running: hosts.iter().map(|host| host.guests_running).sum(),
        tiles: hosts.iter().map(|host| tile(frame, host)).collect(),
        has_more_hosts: has_more,
    };
    page.render()
}

fn item(frame: &Frame, incident: &IncidentView) -> Item {
    let about = match &incident.guest {
        Some(guest) => guest.to_string(),
        None => incident.subject.clone(),
    };
    Item {
        severity: words::severity(incident.severity),
        since: frame.when(incident.since),
        host: incident.host.as_ref().map(ToString::to_string),
        about,
        message: incident.message.as_str().to_owned(),
        remedy: incident.remedy.as_str().to_owned(),
        code: incident.code.as_str(),
        acknowledged: incident.acknowledged.as_ref().map(|by| by.by.to_string()),
    }
}

fn tile(frame: &Frame, host: &HostView) -> Tile {
    Tile {
        name: host.name.to_string(),
        state: words::host(host.state),
        guests: format!("{}/{}", host.guests_running, host.guests),
        attention: host.attention,
        seen: host.seen_at.map(|at| frame.when(at)),
    }
}

/// How many hosts are in each state that occurs, the worst first.
fn counts(hosts: &[HostView]) -> Vec<Count> {
    const ORDER: [(HostState, &str); 7] = [
        (HostState::Offline, "offline"),
        (HostState::NeverSeen, "never_seen"),
        (HostState::Frozen, "frozen"),
        (HostState::Degraded, "degraded"),
        (HostState::Late, "late"),
        (HostState::New, "new"),
        (HostState::Online, "online"),
    ];
    let count = |(state, filter): (HostState, &'static str)| {
        let number = hosts.iter().filter(|host| host.state == state).count();
        (number > 0).then(|| Count { number, word: words::host(state), filter })
    };
    ORDER.into_iter().filter_map(count).collect()
}

impl StartPage<'_> {
    /// What to say where nothing is wrong; an empty list alone would also be the sign of a page that failed.
    fn is_calm(&self) -> bool {
        self.items.is_empty() && self.requests.as_ref().is_none_or(Vec::is_empty)
    }
}
