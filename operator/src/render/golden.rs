//! Tables of golden images.

use std::collections::BTreeSet;

use holdfast_protocol::golden_builds::{Agreement, BuiltArchive, ComparedBuilds};
use holdfast_protocol::id::HostName;
use holdfast_protocol::report::{ImageOrigin, ImageStatus};

use super::table::{Field, NOTHING, Tone, plain, table};
use crate::cmd::golden::ImageOnHost;
use crate::screen::Style;

const HEADER: [&str; 8] = ["HOST", "VERSION", "STATUS", "BUILT", "INPUTS", "SHA-256", "GUESTS", "NOTES"];
const COMPARED: [&str; 6] = ["INPUTS", "RESULT", "VERSION", "SHA-256", "BUILT BY", "RECEIVED BY"];
/// Enough to compare with what is signed for, which is shown whole.
const DIGITS: usize = 16;

/// All of them, host by host, the newest first.
pub fn goldens(goldens: &[ImageOnHost], style: Style) -> String {
    if goldens.is_empty() {
        return "No golden image is reported. `agentd golden build` makes one on its box.\n".to_owned();
    }
    table(&HEADER, goldens.iter().map(row), style)
}

/// By inputs: each archive that came of them.
pub fn compared(builds: &[ComparedBuilds], style: Style) -> String {
    if builds.is_empty() {
        return "No host reports how its golden images were built.\n".to_owned();
    }
    let rows =
        builds.iter().flat_map(|builds| builds.archives.iter().map(|archive| compared_row(builds, archive)));
    table(&COMPARED, rows, style)
}

fn compared_row(builds: &ComparedBuilds, archive: &BuiltArchive) -> Vec<Field> {
    let names = |hosts: &BTreeSet<HostName>| match hosts.is_empty() {
        true => NOTHING.to_owned(),
        false => hosts.iter().map(HostName::as_str).collect::<Vec<_>>().join(", "),
    };
    let versions: Vec<&str> = archive.versions.iter().map(|version| version.as_str()).collect();
    vec![
        plain(start(builds.inputs_sha256.as_str())),
        agreement(builds.agreement()),
        plain(versions.join(", ")),
        plain(start(&archive.sha256)),
        plain(names(&archive.built_by)),
        plain(names(&archive.received_by)),
    ]
}

fn agreement(agreement: Agreement) -> Field {
    let (word, tone) = match agreement {
        Agreement::Agree => ("agree", Tone::Good),
        Agreement::Single => ("one builder", Tone::Look),
        Agreement::Differ => ("DIFFER", Tone::Bad),
    };
    (word.to_owned(), tone)
}

fn start(digest: &str) -> &str {
    digest.get(..DIGITS).unwrap_or(digest)
}

fn row(golden: &ImageOnHost) -> Vec<Field> {
    let guests = if golden.guests.is_empty() { NOTHING.to_owned() } else { golden.guests.join(", ") };
    let build = golden.build.as_ref();
    let built = build.map(|build| {
        let day = build.built_at.map_or_else(|| "?".to_owned(), |at| at.strftime("%Y-%m-%d").to_string());
        match build.origin {
            ImageOrigin::Built => day,
            ImageOrigin::Received => format!("{day}, received"),
        }
    });
    vec![
        plain(&golden.host),
        plain(&golden.version),
        status(golden.status),
        plain(built.as_deref().unwrap_or(NOTHING)),
        plain(build.map_or(NOTHING, |build| start(build.inputs_sha256.as_str()))),
        plain(golden.sha256.as_deref().map_or(NOTHING, start)),
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

/// An old one matters where guests run from it, or could only be made again from it. A difference matters most.
fn notes(golden: &ImageOnHost) -> Field {
    match (golden.agreement, &golden.newer, golden.guests.is_empty()) {
        (Some(Agreement::Differ), _, _) => ("BUILDS DIFFER".to_owned(), Tone::Bad),
        (_, Some(newer), false) => (format!("old: {newer} is there"), Tone::Look),
        (_, Some(_), true) => plain("no guest is of it any more"),
        (Some(Agreement::Agree), None, _) => ("builders agree".to_owned(), Tone::Good),
        (Some(Agreement::Single) | None, None, _) => plain(NOTHING),
    }
}
