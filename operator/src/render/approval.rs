//! Pages of image approvals for all hosts.

use holdfast_protocol::image_approval::{ImageApprovalDetail, ImageApprovalHost, ImageApprovalView};
use holdfast_protocol::job::ImageApproval;
use jiff::Timestamp;

use super::job;
use super::table::{Field, NOTHING, Tone, list as pairs, plain, table};
use super::time::{ago, when};
use crate::screen::Style;

const HEADER: [&str; 8] =
    ["APPROVAL", "VERSION", "SHA-256", "STATE", "ADMITTED", "ON ITS WAY", "REFUSED", "LEFT"];
const HOSTS: [&str; 3] = ["HOST", "STATE", "NOTES"];
const DIGITS: usize = 16;

/// What a person must see before they sign. All of it is read from the bytes.
pub fn to_sign(approval: &ImageApproval, hosts: usize, now: Timestamp) -> String {
    pairs(&[
        ("Sign for", "approve_release".to_owned()),
        ("Code", format!("golden {}", approval.version)),
        ("SHA-256", approval.sha256.as_str().to_owned()),
        ("Hosts", format!("ALL that trust your key: {hosts} now, and those that are enrolled until its end")),
        ("Until", when(approval.expires_at.at(), now)),
        ("Reason", approval.reason.as_str().to_owned()),
        ("Job", approval.job_id.to_string()),
    ])
}

/// All of them, newest first.
pub fn list(views: &[ImageApprovalView], now: Timestamp, style: Style) -> String {
    if views.is_empty() {
        return "No approval for all hosts. `holdfast sign --all-hosts --golden VERSION` signs one.\n"
            .to_owned();
    }
    let rows = views.iter().map(|view| {
        vec![
            plain(view.id),
            plain(&view.version),
            plain(view.sha256.as_str().get(..DIGITS).unwrap_or_default()),
            state(view, now),
            plain(view.admitted),
            plain(view.on_its_way),
            (view.refused.to_string(), if view.refused == 0 { Tone::Plain } else { Tone::Bad }),
            plain(format!("{} by {}", ago(view.submitted_at, now), view.by)),
        ]
    });
    table(&HEADER, rows, style)
}

fn state(view: &ImageApprovalView, now: Timestamp) -> Field {
    let (word, tone) = match view.withdrawn_at {
        Some(_) => ("withdrawn", Tone::Plain),
        None if view.expires_at <= now => ("ended", Tone::Plain),
        None => ("open", Tone::Good),
    };
    (word.to_owned(), tone)
}

/// One, with each host.
pub fn hosts(detail: &ImageApprovalDetail, now: Timestamp, style: Style) -> String {
    let head = list(std::slice::from_ref(&detail.approval), now, style);
    let rows =
        detail.hosts.iter().map(|host| vec![plain(&host.host), host_state(host), plain(notes(host, now))]);
    format!("{head}\n{}", table(&HOSTS, rows, style))
}

fn host_state(host: &ImageApprovalHost) -> Field {
    match &host.report {
        None => ("on its way".to_owned(), Tone::Look),
        Some(report) => (job::words(report.state).to_owned(), job::tone(report.state)),
    }
}

fn notes(host: &ImageApprovalHost, now: Timestamp) -> String {
    host.report.as_ref().map_or_else(|| NOTHING.to_owned(), |report| job::notes(report, now))
}
