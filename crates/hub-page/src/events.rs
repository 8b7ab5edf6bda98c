//! The list of events.

use askama::Template;
use holdfast_protocol::operator::EventView;

use crate::RenderError;
use crate::frame::{Frame, When};

/// What the page is made of.
pub struct Events<'a> {
    /// One page of the list, the newest first.
    pub events: &'a [EventView],
    /// The cursor of the next page.
    pub next: Option<&'a str>,
}

struct Row {
    number: u64,
    at: When,
    kind: String,
    actor: String,
    message: String,
}

#[derive(Template)]
#[template(path = "events.html")]
struct EventsPage<'a> {
    frame: &'a Frame,
    rows: Vec<Row>,
    next: Option<&'a str>,
}

/// # Errors
/// [`RenderError`].
pub fn render(frame: &Frame, events: &Events<'_>) -> Result<String, RenderError> {
    let row = |event: &EventView| Row {
        number: event.number,
        at: frame.when(event.at),
        kind: event.kind.replace('_', " "),
        actor: event.actor.as_ref().map_or_else(|| "—".to_owned(), ToString::to_string),
        message: event.message.clone(),
    };
    EventsPage { frame, rows: events.events.iter().map(row).collect(), next: events.next }.render()
}
