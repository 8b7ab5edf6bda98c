//! Tables of a page: columns, rows and their cells.
//!
//! In: texts, states, times, links and buttons. Out: what `templates/table.html` shows. Every row has a cell for each
//! column, which the types hold.

use crate::frame::{Frame, When};
use crate::words::Word;

/// A button that sends one small form.
#[derive(Clone, Debug)]
pub(crate) struct Button {
    pub action: String,
    pub text: &'static str,
    /// What it is done to, for who hears the page.
    pub about: String,
    pub csrf: String,
}

impl Button {
    pub(crate) fn new(frame: &Frame, action: String, text: &'static str, about: impl ToString) -> Self {
        Self { action, text, about: about.to_string(), csrf: frame.csrf() }
    }
}

/// One cell. It shows what is there of its parts, in their order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cell {
    pub text: String,
    pub href: Option<String>,
    pub class: &'static str,
    pub is_code: bool,
    pub state: Option<Word>,
    pub at: Option<When>,
    /// A second line in small type.
    pub small: Option<String>,
    pub buttons: Vec<Button>,
}

impl Cell {
    pub(crate) fn text(text: impl ToString) -> Self {
        Self { text: text.to_string(), ..Self::default() }
    }

    /// A sentence, which gets the room that it needs.
    pub(crate) fn note(text: impl ToString) -> Self {
        Self { class: "note", ..Self::text(text) }
    }

    pub(crate) fn number(number: impl ToString) -> Self {
        Self { class: "number", ..Self::text(number) }
    }

    pub(crate) fn code(text: impl ToString) -> Self {
        Self { is_code: true, ..Self::text(text) }
    }

    pub(crate) fn link(href: impl Into<String>, text: impl ToString) -> Self {
        Self { href: Some(href.into()), ..Self::text(text) }
    }

    /// A link where the person may follow it, else the text alone.
    pub(crate) fn link_where(may: Option<String>, text: impl ToString) -> Self {
        Self { href: may, ..Self::text(text) }
    }

    pub(crate) fn state(word: Word) -> Self {
        Self { state: Some(word), ..Self::default() }
    }

    pub(crate) fn when(at: When) -> Self {
        Self { at: Some(at), ..Self::default() }
    }

    /// A time, or the words for its absence.
    pub(crate) fn when_or(at: Option<When>, otherwise: &str) -> Self {
        match at {
            Some(at) => Self::when(at),
            None => Self { class: "none", ..Self::text(otherwise) },
        }
    }

    pub(crate) fn or_dash(text: Option<impl ToString>) -> Self {
        Self::text(text.map_or_else(|| "—".to_owned(), |text| text.to_string()))
    }

    pub(crate) fn buttons(buttons: Vec<Button>) -> Self {
        Self { buttons, class: "buttons", ..Self::default() }
    }

    pub(crate) fn with_small(self, small: Option<String>) -> Self {
        Self { small, ..self }
    }
}

/// A table, whose first column names the row.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub label: &'static str,
    pub heads: Vec<&'static str>,
    pub rows: Vec<Vec<(&'static str, Cell)>>,
}

impl Table {
    pub(crate) fn new<const N: usize>(
        label: &'static str,
        heads: [&'static str; N],
        rows: impl IntoIterator<Item = [Cell; N]>,
    ) -> Self {
        let rows = rows.into_iter().map(|row| heads.into_iter().zip(row).collect()).collect();
        Self { label, heads: heads.to_vec(), rows }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}
