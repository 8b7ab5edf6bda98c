//! Releases at the hub.

use holdfast_protocol::release::rollout::RolloutView;
use holdfast_protocol::release::stored::{ArtifactState, ReleaseView};
use holdfast_protocol::time_text::bytes;

use crate::RenderError;
use crate::frame::Frame;
use crate::rollouts;
use crate::sheet::{Part, Sheet};
use crate::table::{Cell, Table};
use crate::words::{Tone, Word};

/// Releases, and the rollouts that bring them to hosts.
///
/// # Errors
/// [`RenderError`].
pub fn render(
    frame: &Frame,
    releases: &[ReleaseView],
    rollouts: &[RolloutView],
) -> Result<String, RenderError> {
    let rows = releases.iter().map(|release| {
        let uses = rollouts.iter().filter(|rollout| rollout.version == release.version).count();
        [
            Cell::text(release.version),
            Cell::state(completeness(release)),
            Cell::number(release.signatures),
            Cell::text(&release.by),
            Cell::when(frame.when(release.put_at)),
            Cell::when(frame.when(release.expires_at.at())),
            Cell::number(uses),
            Cell::note(files(release)),
        ]
    });
    let heads = ["Release", "Files here", "Signatures", "Put by", "Put", "Ends", "Rollouts", "Files"];
    let table = Table::new("Releases", heads, rows);
    let mut sheet = Sheet::new("Releases").with_tabs(rollouts::TABS.to_vec(), "/releases");
    sheet.lead = Some("The hub checks the form of a release. Hosts check its signatures.".to_owned());
    sheet.parts.push(Part::of_table(
        "releases",
        "",
        table,
        "No release was put here: holdfast release upload FILE.",
    ));
    let table = rollouts::table(frame, rollouts);
    sheet.parts.push(Part::of_table("rollouts", "Rollouts", table, "No rollout was planned."));
    sheet.render(frame)
}

fn completeness(release: &ReleaseView) -> Word {
    let missing = release.files.iter().filter(|file| file.artifact.state != ArtifactState::Complete).count();
    match missing {
        0 => Word::new("all", Tone::Good),
        _ => Word::new(format!("{missing} of {} missing", release.files.len()), Tone::Warning),
    }
}

fn files(release: &ReleaseView) -> String {
    let file = |file: &holdfast_protocol::release::stored::ReleaseFileView| {
        format!("{} ({}, {})", file.name.as_str(), file.kind, bytes(file.artifact.size_bytes))
    };
    release.files.iter().map(file).collect::<Vec<_>>().join(", ")
}
