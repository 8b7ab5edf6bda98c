//! Table of golden images.

use holdfast_protocol::report::ImageStatus;

use super::table::{Field, NOTHING, Tone, plain, table};
use crate::cmd::golden::ImageOnHost;
use crate::screen::Style;

const HEADER: [&str; 6] = ["HOST", "VERSION", "STATUS", "SHA-256", "GUESTS", "NOTES"];
/// Enough to compare with what is signed for, which is shown whole.
const DIGITS: usize = 16;

/// All of them, host by host, the newest first.
pub fn goldens(goldens: &[ImageOnHost], style: Style) -> String {
    if goldens.is_empty() {
        return "No golden image is reported. `agentd golden build` makes one on its box.\n".to_owned();
    }
    table(&HEADER, goldens.iter().map(row), style)
}

fn row(golden: &ImageOnHost) -> Vec<Field> {
    let digest = golden.sha256.as_deref().map(|digest| digest.get(..DIGITS).unwrap_or(digest));
    let guests = if golden.guests.is_empty() { NOTHING.to_owned() } else { golden.guests.join(", ") };
    vec![
        plain(&golden.host),
        plain(&golden.version),
        status(golden.status),
        plain(digest.unwrap_or(NOTHING)),
        plain(guests),
        notes(golden),
    ]
}

fn status(status: Option<ImageStatus>) -> Field {
    let (word, tone) = match status {
        Some(ImageStatus::Approved) => ("approved", Tone::Good),
        Some(ImageStatus::Waiting) => ("waits for a signature", Tone::Look),
        Some(ImageStatus::Unread) => ("not readable", Tone::Bad),
        None => ("not there", Tone::Look),
    };
    (word.to_owned(), tone)
}

/// An old one matters where guests run from it, or could only be made again from it.
fn notes(golden: &ImageOnHost) -> Field {
    match (&golden.newer, golden.guests.is_empty()) {
        (Some(newer), false) => (format!("old: {newer} is there"), Tone::Look),
        (Some(_), true) => plain("no guest is of it any more"),
        (None, _) => plain(NOTHING),
    }
}
