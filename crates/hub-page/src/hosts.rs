//! The list of hosts.

use askama::Template;
use holdfast_protocol::operator::HostView;

use crate::RenderError;
use crate::frame::{Frame, When};
use crate::words::{self, Word};

/// What the page is made of.
pub struct Hosts<'a> {
    /// One page of the list, by name.
    pub hosts: &'a [HostView],
    /// The filter as it was typed.
    pub filter: &'a str,
    /// Why the filter was not understood; then `hosts` is empty.
    pub problem: Option<&'a str>,
    /// The cursor of the next page.
    pub next: Option<&'a str>,
}

struct Row {
    name: String,
    state: Word,
    reason: Option<String>,
    seen: Option<When>,
    guests: String,
    attention: u32,
    version: String,
    labels: Vec<String>,
    maintenance: Option<When>,
    document: String,
    is_behind: bool,
}

#[derive(Template)]
#[template(path = "hosts.html")]
struct HostsPage<'a> {
    frame: &'a Frame,
    rows: Vec<Row>,
    filter: &'a str,
    problem: Option<&'a str>,
    next: Option<&'a str>,
}

/// # Errors
/// [`RenderError`].
pub fn render(frame: &Frame, hosts: &Hosts<'_>) -> Result<String, RenderError> {
    let rows = hosts.hosts.iter().map(|host| row(frame, host)).collect();
    HostsPage { frame, rows, filter: hosts.filter, problem: hosts.problem, next: hosts.next }.render()
}

fn row(frame: &Frame, host: &HostView) -> Row {
    Row {
        name: host.name.to_string(),
        state: words::host(host.state),
        reason: host.degraded.as_ref().map(|why| why.reason.clone()),
        seen: host.seen_at.map(|at| frame.when(at)),
        guests: format!("{}/{}", host.guests_running, host.guests),
        attention: host.attention,
        version: host.agent_version.clone().unwrap_or_else(|| "—".to_owned()),
        labels: host
            .labels
            .iter()
            .map(|(key, value)| format!("{}={}", key.as_str(), value.as_str()))
            .collect(),
        maintenance: host.maintenance_until.map(|until| frame.when(until)),
        document: format!("{}/{}", host.held, host.wanted),
        is_behind: host.held != host.wanted,
    }
}
