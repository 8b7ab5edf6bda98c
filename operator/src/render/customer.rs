//! Pages of customers.

use holdfast_protocol::customer::{CustomerOrigin, CustomerView};
use jiff::Timestamp;

use super::table::{NOTHING, Tone, list, plain, table};
use super::time::when;
use crate::screen::Style;

pub fn customers(all: &[CustomerView], style: Style) -> String {
    if all.is_empty() {
        return "No customers: nobody added one, and no document names one.\n".to_owned();
    }
    let rows = all.iter().map(|one| {
        let known = match one.origin {
            CustomerOrigin::Registered => plain("added"),
            CustomerOrigin::Named => ("only named by documents".to_owned(), Tone::Look),
        };
        let fields = &one.fields;
        vec![
            plain(&one.name),
            plain(fields.display_name.as_ref().map_or(NOTHING, |name| name.as_str())),
            plain(one.guests),
            known,
            plain(fields.contact.as_ref().map_or_else(|| NOTHING.to_owned(), ToString::to_string)),
            plain(fields.labels.to_string()),
        ]
    });
    table(&["CUSTOMER", "NAME", "GUESTS", "KNOWN", "CONTACT", "LABELS"], rows, style)
}

pub fn customer(one: &CustomerView, now: Timestamp) -> String {
    let fields = &one.fields;
    let mut pairs = vec![("Customer", one.name.to_string())];
    pairs.extend(fields.display_name.iter().map(|name| ("Name", name.as_str().to_owned())));
    pairs.push(("Guests", one.guests.to_string()));
    pairs.extend(fields.contact.iter().map(|contact| ("Contact", contact.to_string())));
    if !fields.labels.is_empty() {
        pairs.push(("Labels", fields.labels.to_string()));
    }
    pairs.extend(fields.notes.iter().map(|notes| ("Notes", notes.as_str().to_owned())));
    match one.origin {
        CustomerOrigin::Registered => {
            pairs.extend(one.created_at.map(|at| ("Added", when(at, now))));
            let changed = one.changed_at.filter(|at| Some(*at) != one.created_at);
            pairs.extend(changed.map(|at| ("Changed", when(at, now))));
        }
        CustomerOrigin::Named => {
            let says =
                format!("nobody: documents name it alone; `holdfast customer add {}` adds it", one.name);
            pairs.push(("Added", says));
        }
    }
    list(&pairs)
}
