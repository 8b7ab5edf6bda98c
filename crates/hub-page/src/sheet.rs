//! A page of facts, tables, lines to type and forms.
//!
//! In: a title and parts. Out: the document, by the one template `sheet.html`. Lists and pages of one thing are sheets,
//! so that all of them read, print and fold alike. Deliberately absent: what is shown, which each view decides.

use askama::Template;

use crate::RenderError;
use crate::account::QrCode;
use crate::frame::Frame;
use crate::table::{Cell, Table};
use crate::words::Word;

/// A link, and whether it leads to the page itself.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    pub href: String,
    pub text: String,
    pub is_current: bool,
}

impl Link {
    pub(crate) fn new(href: impl Into<String>, text: impl ToString) -> Self {
        Self { href: href.into(), text: text.to_string(), is_current: false }
    }
}

/// What became of the last change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Notice<'a> {
    /// There was none.
    #[default]
    Nothing,
    /// It was carried out.
    Done(&'a str),
    /// It was refused, or the page cannot be shown as it was asked for.
    Refused(&'a str),
}

/// A secret that is shown this once.
pub(crate) struct ShownOnce {
    pub heading: String,
    pub secret: String,
    pub says: String,
}

/// A line to type, with a picture for a device that cannot paste it.
pub(crate) struct Command {
    pub line: String,
    pub picture: QrCode,
}

impl Command {
    pub(crate) fn new(line: String) -> Self {
        let picture = QrCode::of(&line);
        Self { line, picture }
    }

    /// A line without a picture: it is short, or for the machine that shows it.
    pub(crate) fn plain(line: String) -> Self {
        Self { line, picture: QrCode { side: 0, path: String::new() } }
    }
}

/// One of the answers that a field offers.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    pub value: String,
    pub text: String,
    pub is_chosen: bool,
}

/// A field of a form.
#[derive(Clone, Debug, Default)]
pub(crate) struct Field {
    pub id: String,
    pub name: &'static str,
    pub label: &'static str,
    pub hint: &'static str,
    pub value: String,
    pub kind: &'static str,
    pub choices: Vec<Choice>,
    pub is_required: bool,
}

impl Field {
    pub(crate) fn text(name: &'static str, label: &'static str, value: impl Into<String>) -> Self {
        Self { name, label, value: value.into(), kind: "text", ..Self::default() }
    }

    pub(crate) fn number(name: &'static str, label: &'static str, value: impl Into<String>) -> Self {
        Self { kind: "number", ..Self::text(name, label, value) }
    }

    pub(crate) fn choice(
        name: &'static str,
        label: &'static str,
        choices: &[(&'static str, &'static str)],
        chosen: &str,
    ) -> Self {
        let choice = |(value, text): &(&'static str, &'static str)| Choice {
            value: (*value).to_owned(),
            text: (*text).to_owned(),
            is_chosen: *value == chosen,
        };
        Self { choices: choices.iter().map(choice).collect(), ..Self::text(name, label, "") }
    }

    pub(crate) fn required(self) -> Self {
        Self { is_required: true, ..self }
    }

    pub(crate) fn with_hint(self, hint: &'static str) -> Self {
        Self { hint, ..self }
    }
}

/// A form that changes something.
pub(crate) struct Form {
    pub action: String,
    pub fields: Vec<Field>,
    pub hidden: Vec<(&'static str, String)>,
    pub button: &'static str,
}

impl Form {
    /// `id` is the one of its part: fields have theirs by it.
    pub(crate) fn new(id: &str, action: impl Into<String>, button: &'static str, fields: Vec<Field>) -> Self {
        Self { action: action.into(), fields: named(id, fields), hidden: Vec::new(), button }
    }

    pub(crate) fn with_hidden(self, name: &'static str, value: impl Into<String>) -> Self {
        let mut hidden = self.hidden;
        hidden.push((name, value.into()));
        Self { hidden, ..self }
    }
}

fn named(id: &str, fields: Vec<Field>) -> Vec<Field> {
    let with_id = |field: Field| Field { id: format!("{id}-{}", field.name), ..field };
    fields.into_iter().map(with_id).collect()
}

/// Something that needs a person.
pub(crate) struct Item {
    pub state: Word,
    pub head: Vec<Cell>,
    pub lines: Vec<String>,
    pub remedy: Option<String>,
    pub command: Option<Command>,
    /// A text that is folded away, and what it is.
    pub folded: Option<(&'static str, String)>,
    pub form: Option<Form>,
}

impl Item {
    pub(crate) fn new(state: Word, head: Vec<Cell>) -> Self {
        Self { state, head, lines: Vec::new(), remedy: None, command: None, folded: None, form: None }
    }
}

/// A part of a page under a heading.
#[derive(Default)]
pub(crate) struct Part {
    pub id: &'static str,
    pub heading: String,
    pub note: Option<String>,
    pub facts: Vec<(&'static str, Cell)>,
    pub items: Vec<Item>,
    pub commands: Vec<Command>,
    pub table: Option<Table>,
    /// What is said where the table has no row.
    pub empty: &'static str,
    pub text: Option<String>,
    pub forms: Vec<Form>,
}

impl Part {
    pub(crate) fn new(id: &'static str, heading: impl Into<String>) -> Self {
        Self { id, heading: heading.into(), ..Self::default() }
    }

    /// A table, or the sentence that says that there is nothing.
    pub(crate) fn of_table(
        id: &'static str,
        heading: impl Into<String>,
        table: Table,
        empty: &'static str,
    ) -> Self {
        Self { table: Some(table), empty, ..Self::new(id, heading) }
    }

    pub(crate) fn with_note(self, note: impl Into<String>) -> Self {
        Self { note: Some(note.into()), ..self }
    }
}

/// A whole page.
#[derive(Default)]
pub(crate) struct Sheet {
    pub title: String,
    pub state: Option<Word>,
    /// The way back.
    pub up: Option<Link>,
    pub tabs: Vec<Link>,
    pub done: Option<String>,
    pub problem: Option<String>,
    pub shown_once: Option<ShownOnce>,
    pub lead: Option<String>,
    /// The fields of the filter; it is kept in the address.
    pub filter: Vec<Field>,
    pub facts: Vec<(&'static str, Cell)>,
    pub parts: Vec<Part>,
    pub next: Option<Link>,
}

impl Sheet {
    pub(crate) fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), ..Self::default() }
    }

    pub(crate) fn with_notice(self, notice: Notice<'_>) -> Self {
        match notice {
            Notice::Nothing => self,
            Notice::Done(text) => Self { done: Some(text.to_owned()), ..self },
            Notice::Refused(text) => Self { problem: Some(text.to_owned()), ..self },
        }
    }

    pub(crate) fn with_filter(self, fields: Vec<Field>) -> Self {
        // The shortcut "/" goes to the field with this id.
        let mut filter = named("filter", fields);
        if let Some(first) = filter.first_mut() {
            "filter".clone_into(&mut first.id);
        }
        Self { filter, ..self }
    }

    /// The tabs of a section, without those that lead nowhere for this person.
    pub(crate) fn with_tabs(self, tabs: Vec<(&'static str, &'static str)>, current: &str) -> Self {
        let link = |(href, text): (&'static str, &'static str)| Link {
            is_current: href == current,
            ..Link::new(href, text)
        };
        Self { tabs: tabs.into_iter().map(link).collect(), ..self }
    }

    /// The next page, with what the list was asked for.
    pub(crate) fn with_next(self, next: Option<&str>, asked: &[(&str, &str)]) -> Self {
        let Some(cursor) = next else { return self };
        let mut query = String::new();
        let asked = asked.iter().filter(|(_, value)| !value.is_empty());
        for (name, value) in asked.chain(&[("cursor", cursor)]) {
            query.push(if query.is_empty() { '?' } else { '&' });
            query.push_str(name);
            query.push('=');
            escape(&mut query, value);
        }
        Self { next: Some(Link::new(query, "Next page")), ..self }
    }

    pub(crate) fn render(self, frame: &Frame) -> Result<String, RenderError> {
        SheetPage { frame, sheet: self }.render()
    }
}

/// Percent-encodes all that is not unreserved in addresses.
fn escape(query: &mut String, value: &str) {
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            query.push(char::from(byte));
        } else {
            query.push_str(&format!("%{byte:02X}"));
        }
    }
}

#[derive(Template)]
#[template(path = "sheet.html")]
struct SheetPage<'a> {
    frame: &'a Frame,
    sheet: Sheet,
}
