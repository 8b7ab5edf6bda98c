//! Text of events.

use std::collections::BTreeMap;

use holdfast_protocol::id::{HostId, HostName};
use holdfast_protocol::operator::EventView;

use super::table::{NOTHING, Tone, plain, table};
use super::time::stamp;
use crate::screen::Style;

/// Events, oldest first, so that the newest is at the end of the output.
pub fn events(events: &[EventView], names: &BTreeMap<HostId, HostName>, style: Style) -> String {
    if events.is_empty() {
        return "Nothing happened yet.\n".to_owned();
    }
    let mut sorted: Vec<&EventView> = events.iter().collect();
    sorted.sort_by_key(|event| event.number);
    let rows = sorted.iter().map(|event| {
        let host = event.host.map(|id| names.get(&id).map_or_else(|| id.to_string(), ToString::to_string));
        vec![
            plain(event.number),
            plain(stamp(event.at)),
            (event.kind.clone(), tone(&event.kind)),
            plain(host.unwrap_or_else(|| NOTHING.to_owned())),
            plain(event.actor.as_ref().map_or(NOTHING, |actor| actor.as_str())),
            plain(&event.message),
        ]
    });
    table(&["#", "AT", "WHAT", "HOST", "BY", "MESSAGE"], rows, style)
}

/// The hub may add event kinds; the ending of a kind shows its severity.
fn tone(kind: &str) -> Tone {
    if ["_missed", "_failed", "_broken", "_offline", "_refused", "_frozen", "_dropped"]
        .iter()
        .any(|end| kind.ends_with(end))
    {
        Tone::Bad
    } else {
        Tone::Plain
    }
}
