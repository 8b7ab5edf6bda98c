//! Customers: their list, one with its guests.

use holdfast_protocol::customer::{CustomerOrigin, CustomerView};
use holdfast_protocol::operator::GuestOnHost;

use crate::RenderError;
use crate::frame::Frame;
use crate::guests;
use crate::sheet::{Field, Form, Link, Notice, Part, Sheet};
use crate::table::{Cell, Table};

/// A new customer as it was typed.
#[derive(Clone, Debug, Default)]
pub struct TypedCustomer {
    pub name: String,
    pub display_name: String,
    pub mail: String,
}

/// # Errors
/// [`RenderError`].
pub fn render(
    frame: &Frame,
    customers: &[CustomerView],
    next: Option<&str>,
    typed: &TypedCustomer,
    notice: Notice<'_>,
) -> Result<String, RenderError> {
    let rows = customers.iter().map(|one| {
        [
            Cell::link(format!("/customers/{}", one.name), &one.name),
            Cell::or_dash(one.fields.display_name.as_ref().map(|name| name.as_str())),
            Cell::number(one.guests),
            Cell::or_dash(one.fields.contact.as_ref()),
            Cell::text(origin(one.origin)),
            Cell::text(&one.fields.labels),
        ]
    });
    let heads = ["Customer", "Is called", "Guests", "Contact", "Known from", "Labels"];
    let table = Table::new("Customers", heads, rows);
    let mut sheet = Sheet::new("Customers").with_next(next, &[]).with_notice(notice);
    sheet.parts.push(Part::of_table("list", "", table, "No customer yet."));
    if frame.may_change() {
        let mut part = Part::new("new", "A new customer");
        let fields = vec![
            Field::text("name", "Name", &typed.name).required().with_hint("as guests are marked with it"),
            Field::text("display_name", "Is called", &typed.display_name),
            Field { kind: "email", ..Field::text("mail", "Mail", &typed.mail) },
        ];
        part.forms.push(Form::new("new", "/customers", "Add", fields));
        sheet.parts.push(part);
    }
    sheet.render(frame)
}

const fn origin(origin: CustomerOrigin) -> &'static str {
    match origin {
        CustomerOrigin::Registered => "an operator",
        CustomerOrigin::Named => "documents and reports",
    }
}

/// One customer. `has_more` says that there are more guests than these.
///
/// # Errors
/// [`RenderError`].
pub fn one(
    frame: &Frame,
    customer: &CustomerView,
    guests: &[GuestOnHost],
    has_more: bool,
) -> Result<String, RenderError> {
    let mut sheet = Sheet::new(customer.name.to_string());
    if !frame.is_customers() {
        sheet.up = Some(Link::new("/customers", "Customers"));
    }
    let fields = &customer.fields;
    sheet.facts = vec![
        ("Is called", Cell::or_dash(fields.display_name.as_ref().map(|name| name.as_str()))),
        ("Contact", Cell::or_dash(fields.contact.as_ref())),
        ("Guests", Cell::number(customer.guests)),
        ("Known from", Cell::text(origin(customer.origin))),
        ("Added", Cell::when_or(customer.created_at.map(|at| frame.when(at)), "never")),
        ("Changed", Cell::when_or(customer.changed_at.map(|at| frame.when(at)), "never")),
    ];
    if !fields.labels.is_empty() {
        sheet.facts.push(("Labels", Cell::text(&fields.labels)));
    }
    if let Some(notes) = &fields.notes {
        let mut part = Part::new("notes", "Notes, which the customer does not see");
        part.text = Some(notes.as_str().to_owned());
        sheet.parts.push(part);
    }
    let mut part = Part::of_table("guests", "Guests", guest_table(frame, guests), "No guest is reported.");
    if has_more {
        part = part.with_note(format!("The first {} are shown.", guests.len()));
    }
    sheet.parts.push(part);
    sheet.render(frame)
}

/// Guests with what is proved of them.
pub(crate) fn guest_table(frame: &Frame, guests: &[GuestOnHost]) -> Table {
    let rows = guests.iter().map(|one| {
        let row = guests::row(frame, one);
        let name = match row.link {
            Some(link) => Cell::link(link, row.name),
            None => Cell::text(row.name),
        };
        let host = Cell::link_where(frame.host_page(&row.host), &row.host);
        [
            name.with_small(row.as_of.map(|at| format!("as of {}", at.exact))),
            host,
            Cell::state(row.run),
            Cell::state(row.protection),
            Cell::when_or(row.backup, "none known"),
            Cell::when_or(row.proof, "none known"),
            Cell::note(row.note),
        ]
    });
    let heads = ["Guest", "Host", "Run", "Protected", "Backup", "Restore tested", "Note"];
    Table::new("Guests", heads, rows)
}
