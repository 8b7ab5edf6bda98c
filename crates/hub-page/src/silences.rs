//! Silences: those in force, and a new one.

use holdfast_protocol::alert::SilenceView;

use crate::RenderError;
use crate::alerts::{silence_form, tabs};
use crate::frame::Frame;
use crate::sheet::{Notice, Part, Sheet};
use crate::table::{Button, Cell, Table};

/// A silence as it was typed.
#[derive(Clone, Debug, Default)]
pub struct TypedSilence {
    pub matchers: String,
    pub hours: String,
    pub comment: String,
}

/// # Errors
/// [`RenderError`].
pub fn render(
    frame: &Frame,
    silences: &[SilenceView],
    typed: &TypedSilence,
    notice: Notice<'_>,
) -> Result<String, RenderError> {
    let may_change = frame.may_change();
    let rows = silences.iter().map(|one| {
        let matchers: Vec<&str> = one.matchers.iter().map(|matcher| matcher.as_str()).collect();
        let end =
            Button::new(frame, format!("/silences/{}/end", one.id), "End", format!("silence {}", one.id));
        [
            Cell::text(one.id),
            Cell::code(matchers.join(", ")),
            Cell::when(frame.when(one.from)),
            Cell::when(frame.when(one.until)),
            Cell::text(&one.by),
            Cell::note(one.comment.as_str()),
            Cell::buttons(if may_change { vec![end] } else { Vec::new() }),
        ]
    });
    let heads = ["Silence", "What matches", "Begun", "Ends", "By", "Why", "Action"];
    let table = Table::new("Silences", heads, rows);
    let mut sheet = Sheet::new("Silences").with_tabs(tabs(frame), "/silences").with_notice(notice);
    sheet.parts.push(Part::of_table("list", "", table, "Nothing is silenced."));
    if may_change {
        let mut part = Part::new("new", "A new silence");
        part.note = Some(
            "Labels: code, severity, cause, kind, subject, host, guest, customer, policy. A silence lasts 90 days at most."
                .to_owned(),
        );
        part.forms.push(silence_form("new", &typed.matchers, &typed.hours, &typed.comment));
        sheet.parts.push(part);
    }
    sheet.render(frame)
}
