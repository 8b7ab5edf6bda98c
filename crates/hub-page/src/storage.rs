//! Storage targets of all hosts, as reported.

use holdfast_protocol::operator::HostDetail;
use holdfast_protocol::storage::report::{TargetReport, TargetStatus};

use crate::RenderError;
use crate::frame::Frame;
use crate::sheet::{Part, Sheet};
use crate::table::{Cell, Table};
use crate::words::{Tone, Word};

/// # Errors
/// [`RenderError`].
pub fn render(frame: &Frame, hosts: &[HostDetail], next: Option<&str>) -> Result<String, RenderError> {
    let targets =
        hosts.iter().flat_map(|host| host.sections.storage.iter().flatten().map(move |one| (host, one)));
    let mut targets: Vec<(&HostDetail, &TargetReport)> = targets.collect();
    targets.sort_by_key(|(_, target)| !target.status.is_gone());
    let rows = targets.into_iter().map(|(host, target)| {
        let name = &host.host.name;
        [
            Cell::link(format!("/hosts/{name}/storage-targets/{}", target.name), &target.name),
            Cell::link(format!("/hosts/{name}/storage-targets"), name),
            Cell::state(status(target.status))
                .with_small((!target.reason.is_empty()).then(|| target.reason.clone())),
            Cell::text(target.role),
            Cell::text(target.class),
            Cell::text(&target.backend),
            Cell::or_dash(target.label.as_ref()),
            Cell::when(frame.when(target.since)),
        ]
    });
    let heads = ["Target", "Host", "State", "For", "Speed", "What it is", "Label", "Since"];
    let table = Table::new("Storage targets", heads, rows);
    let mut sheet = Sheet::new("Storage").with_next(next, &[]);
    sheet.parts.push(Part::of_table("targets", "", table, "No host reports a storage target."));
    sheet.render(frame)
}

pub(crate) fn status(status: TargetStatus) -> Word {
    let tone = match status {
        TargetStatus::Mounted | TargetStatus::ByProxmox => Tone::Good,
        TargetStatus::Unmarked | TargetStatus::Held => Tone::Warning,
        TargetStatus::Absent | TargetStatus::Dropped | TargetStatus::Wrong | TargetStatus::Refused => {
            Tone::Bad
        }
        TargetStatus::Detached => Tone::Plain,
    };
    Word::new(status.as_str().replace('-', " "), tone)
}
