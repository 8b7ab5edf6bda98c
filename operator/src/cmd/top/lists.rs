//! The lists of a picture, as rows of words.

use jiff::Timestamp;

use super::picture::{Pane, Picture, WorkLine};
use crate::progress::{current_step, steps_done};
use crate::render::{self, Field, age, plain};

/// A list with its heading.
pub struct List {
    pub title: String,
    pub header: &'static [&'static str],
    pub rows: Vec<Vec<Field>>,
    /// What is said where there is no row.
    pub empty: &'static str,
}

const WORK: [&str; 5] = ["HOST", "GUEST", "OPERATION", "FOR", "STEP"];

/// The list of a pane.
pub fn list(picture: &Picture, pane: Pane, now: Timestamp) -> List {
    let extent = picture.extent();
    match pane {
        Pane::Alerts => List {
            title: "Needs a person".to_owned(),
            header: &render::alert::HEADER,
            rows: picture.alerts.iter().map(|alert| render::alert::row(alert, now)).collect(),
            empty: "No alert fires.",
        },
        Pane::Hosts => List {
            title: "Hosts".to_owned(),
            header: &render::host::HEADER,
            rows: picture.hosts.iter().map(|host| render::host::row(host, now)).collect(),
            empty: "No host is enrolled.",
        },
        Pane::Guests => List {
            title: format!("Guests{extent}"),
            header: &render::guest::HEADER,
            rows: picture.guests.iter().map(|line| render::guest::row(&line.host, &line.guest)).collect(),
            empty: "No guest is reported.",
        },
        Pane::Work => List {
            title: format!("Work{extent}"),
            header: &WORK,
            rows: picture.work.iter().map(|line| work(line, now)).collect(),
            empty: "No operation is under way.",
        },
    }
}

fn work(line: &WorkLine, now: Timestamp) -> Vec<Field> {
    let operation = &line.operation;
    let (done, all) = steps_done(operation);
    vec![
        plain(&line.host),
        plain(&operation.name),
        plain(operation.kind.as_str()),
        plain(age(operation.opened_at, now)),
        plain(format!("{done} of {all}: {}", current_step(operation))),
    ]
}
