//! The list of events.

use holdfast_protocol::operator::EventView;

use crate::RenderError;
use crate::frame::Frame;
use crate::sheet::{Field, Notice, Part, Sheet};
use crate::table::{Cell, Table};

/// What the page is made of.
pub struct Events<'a> {
    /// One page of the list, the newest first.
    pub events: &'a [EventView],
    /// The words that were searched for.
    pub text: &'a str,
    /// The host that was asked for.
    pub host: &'a str,
    /// The cursor of the next page.
    pub next: Option<&'a str>,
    pub notice: Notice<'a>,
}

/// # Errors
/// [`RenderError`].
pub fn render(frame: &Frame, events: &Events<'_>) -> Result<String, RenderError> {
    let mut filter = vec![Field::text("text", "Words", events.text)];
    if frame.has_hosts() {
        filter.push(Field::text("host", "Host", events.host));
    }
    let again = [("text", events.text), ("host", events.host)];
    let mut sheet = Sheet::new("Events").with_notice(events.notice).with_filter(filter);
    sheet = sheet.with_next(events.next, &again);
    let rows = events.events.iter().map(|event| {
        [
            Cell::number(event.number),
            Cell::when(frame.when(event.at)),
            Cell::text(event.kind.replace('_', " ")),
            Cell::or_dash(event.actor.as_ref()),
            Cell::note(&event.message),
        ]
    });
    let table = Table::new("Events", ["Number", "When", "What", "By", "In words"], rows);
    let is_narrowed = !events.text.is_empty() || !events.host.is_empty();
    let empty = if is_narrowed { "No event of this kind." } else { "Nothing happened yet." };
    sheet.parts.push(Part::of_table("list", "", table, empty));
    sheet.render(frame)
}
