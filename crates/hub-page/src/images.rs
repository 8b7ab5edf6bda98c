//! Golden images on the hosts, and their approvals for all hosts.

use std::collections::BTreeMap;

use holdfast_protocol::id::GoldenVersion;
use holdfast_protocol::image_approval::{ImageApprovalDetail, ImageApprovalView};
use holdfast_protocol::operator::HostDetail;
use holdfast_protocol::report::ImageStatus;
use holdfast_protocol::time_text::bytes;

use crate::RenderError;
use crate::frame::Frame;
use crate::sheet::{Command, Form, Link, Notice, Part, Sheet};
use crate::table::{Cell, Table};
use crate::words::{Tone, Word};

/// Images of the hosts of one page; approvals where the person may see them.
///
/// # Errors
/// [`RenderError`].
pub fn render(
    frame: &Frame,
    hosts: &[HostDetail],
    approvals: Option<&[ImageApprovalView]>,
    next: Option<&str>,
) -> Result<String, RenderError> {
    let mut sheet = Sheet::new("Golden images").with_next(next, &[]);
    sheet.parts.push(Part::of_table("images", "", images(frame, hosts), "No host reports an image."));
    let waiting = hosts.iter().flat_map(reports).find(|one| one.status == ImageStatus::Waiting);
    if let Some(image) = waiting {
        let mut part = Part::new("approve", "Approve an image for all hosts");
        let line = format!("holdfast sign --all-hosts --golden {}", image.version);
        part.commands.push(Command::new(line));
        sheet.parts.push(part);
    }
    if let Some(approvals) = approvals {
        let table = approvals_table(frame, approvals);
        sheet.parts.push(Part::of_table("approvals", "Approvals for all hosts", table, "None was signed."));
    }
    sheet.render(frame)
}

fn reports(host: &HostDetail) -> impl Iterator<Item = &holdfast_protocol::report::GoldenReport> {
    host.sections.host.iter().flat_map(|section| &section.goldens)
}

/// How many guests of a host were made from each image.
fn uses(host: &HostDetail) -> BTreeMap<&GoldenVersion, u32> {
    let mut uses = BTreeMap::new();
    for version in host.sections.guests.iter().flatten().filter_map(|guest| guest.golden.as_ref()) {
        let count: &mut u32 = uses.entry(version).or_default();
        *count = count.saturating_add(1);
    }
    uses
}

fn images(frame: &Frame, hosts: &[HostDetail]) -> Table {
    let mut rows: Vec<(GoldenVersion, [Cell; 7])> = Vec::new();
    for host in hosts {
        let uses = uses(host);
        for image in reports(host) {
            let build = image.build.as_ref();
            let row = [
                Cell::text(&image.version),
                Cell::link(format!("/hosts/{}", host.host.name), &host.host.name),
                Cell::state(status(image.status)),
                Cell::number(uses.get(&image.version).copied().unwrap_or_default()),
                Cell::or_dash(build.map(|build| bytes(build.size_bytes))),
                Cell::when_or(build.and_then(|build| build.built_at).map(|at| frame.when(at)), "not known"),
                Cell::code(
                    image
                        .sha256
                        .as_ref()
                        .map(|hash| hash.chars().take(16).collect::<String>())
                        .unwrap_or_default(),
                ),
            ];
            rows.push((image.version.clone(), row));
        }
    }
    rows.sort_by_key(|(version, _)| std::cmp::Reverse(version.age_key()));
    let heads = ["Image", "Host", "State", "Guests", "Size", "Built", "Digest"];
    Table::new("Golden images", heads, rows.into_iter().map(|(_, row)| row))
}

fn status(status: ImageStatus) -> Word {
    match status {
        ImageStatus::Approved => Word::new("approved", Tone::Good),
        ImageStatus::Waiting => Word::new("waits for approval", Tone::Warning),
        ImageStatus::Unread => Word::new("not readable", Tone::Bad),
    }
}

fn approvals_table(frame: &Frame, approvals: &[ImageApprovalView]) -> Table {
    let rows = approvals.iter().map(|one| {
        [
            Cell::link(format!("/image-approvals/{}", one.id), &one.version),
            Cell::text(&one.by),
            Cell::when(frame.when(one.submitted_at)),
            Cell::when(frame.when(one.expires_at)),
            Cell::when_or(one.withdrawn_at.map(|at| frame.when(at)), "no"),
            Cell::number(one.admitted),
            Cell::number(one.on_its_way),
            Cell::number(one.refused),
        ]
    });
    let heads = ["Image", "Left by", "Left", "Ends", "Withdrawn", "Admitted", "On its way", "Refused"];
    Table::new("Approvals for all hosts", heads, rows)
}

/// The list of approvals alone.
///
/// # Errors
/// [`RenderError`].
pub fn approvals(frame: &Frame, approvals: &[ImageApprovalView]) -> Result<String, RenderError> {
    let mut sheet = Sheet::new("Approvals for all hosts");
    sheet.up = Some(Link::new("/images", "Golden images"));
    sheet.parts.push(Part::of_table("list", "", approvals_table(frame, approvals), "None was signed."));
    sheet.render(frame)
}

/// One approval, with each host.
///
/// # Errors
/// [`RenderError`].
pub fn approval(
    frame: &Frame,
    detail: &ImageApprovalDetail,
    notice: Notice<'_>,
) -> Result<String, RenderError> {
    let one = &detail.approval;
    let mut sheet = Sheet::new(format!("Approval of image {}", one.version)).with_notice(notice);
    sheet.up = Some(Link::new("/image-approvals", "Approvals for all hosts"));
    sheet.facts = vec![
        ("Digest", Cell::code(String::from(one.sha256.clone()))),
        ("Left by", Cell::text(&one.by)),
        ("Left", Cell::when(frame.when(one.submitted_at))),
        ("Ends", Cell::when(frame.when(one.expires_at))),
        ("Withdrawn", Cell::when_or(one.withdrawn_at.map(|at| frame.when(at)), "no")),
    ];
    let rows = detail.hosts.iter().map(|host| {
        let state = host.report.as_ref().map_or_else(
            || Word::new("not reported", Tone::Plain),
            |report| crate::jobs::state(report.state),
        );
        let problem = host.report.as_ref().and_then(|report| report.problem.as_ref());
        [
            Cell::link(format!("/hosts/{}", host.host), &host.host),
            Cell::state(state),
            Cell::note(problem.map(|problem| problem.message.clone()).unwrap_or_default()),
        ]
    });
    let table = Table::new("Hosts", ["Host", "State", "Why not"], rows);
    sheet.parts.push(Part::of_table("hosts", "Hosts", table, "It is for no host."));
    if one.withdrawn_at.is_none() && frame.may_change() {
        let mut part = Part::new("withdraw", "Withdraw");
        part.note = Some("Hosts that admitted it keep it; no other host gets it.".to_owned());
        let action = format!("/image-approvals/{}/withdraw", one.id);
        part.forms.push(Form::new("withdraw", action, "Withdraw the approval", Vec::new()));
        sheet.parts.push(part);
    }
    sheet.render(frame)
}
