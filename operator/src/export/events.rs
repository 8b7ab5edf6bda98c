//! Events of the period, oldest last as the hub gives them.

use holdfast_protocol::id::{CorrelationId, HostId};
use holdfast_protocol::operator::{EventView, Page};
use jiff::Timestamp;
use serde::Serialize;

use super::ExportRun;
use super::selection::Selection;
use crate::state_errors::ExportError;

/// Kinds whose events are about the host as a whole, and nobody's guests: all that another customer's export may have.
const OF_HOSTS: &[&str] =
    &["agent_farewell", "heartbeat_missed", "host_frozen", "host_online", "host_restored"];

/// Pages that are read at most: as many events as a hub keeps.
const PAGES_MAX: usize = 500;

#[derive(Debug, Serialize)]
struct EventRow {
    number: u64,
    at: Timestamp,
    kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    host_id: Option<HostId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    actor: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    correlation_id: Option<CorrelationId>,
}

/// The row of an event; none, where it may be about guests that are not selected.
fn row(event: EventView, selection: &Selection) -> Option<EventRow> {
    let EventView { number, at, kind, host, actor, message, correlation_id } = event;
    let name = host.and_then(|host| selection.host_name(host)).map(ToString::to_string);
    if selection.is_everything() {
        let actor = actor.map(|actor| actor.to_string());
        let (message, host_id) = (Some(message), host);
        return Some(EventRow { number, at, kind, host_id, host: name, actor, message, correlation_id });
    }
    let is_shared = OF_HOSTS.contains(&kind.as_str()) && name.is_some();
    is_shared.then_some(EventRow {
        number,
        at,
        kind,
        host_id: host,
        host: name,
        actor: None,
        message: None,
        correlation_id: None,
    })
}

/// Writes them.
pub async fn write(run: &mut ExportRun<'_>, selection: &Selection) -> Result<(), ExportError> {
    run.screen.note("events …");
    let mut file = run.folder.file("events.jsonl")?;
    let (mut cursor, path) = (None::<String>, ["v1", "events"]);
    for _ in 0..PAGES_MAX {
        let page: Page<EventView> = run.hub.page(&path, &[("limit", "500")], cursor.as_deref()).await?;
        let is_before = page.items.last().is_some_and(|last| last.at < run.period.from);
        for event in page.items.into_iter().filter(|event| run.period.has(event.at)) {
            match row(event, selection) {
                Some(row) => file.push(&row)?,
                None => file.leave_out(1),
            }
        }
        match page.next {
            Some(next) if !is_before => cursor = Some(next),
            _ => break,
        }
    }
    if !selection.is_everything() {
        file.remark(
            "events do not name their customer: only those of selected hosts as a whole are in it, without their sentence",
        );
    }
    run.folder.add(file)
}
