//! The export of a period for analysis.
//!
//! In: a period, and perhaps a customer or a filter. Out: a folder of JSON Lines with a page that says what each file and field
//! is, a summary with the worst first, and a manifest with digests. What a file has no room for is left out and counted.
//! Deliberately absent: secrets. The rows are types without a place for them, and what looks like one in a text is
//! replaced. The hub's own log is absent too: no call gives it.
//!
//! | module | writes |
//! | --- | --- |
//! | `states` | the state at both ends, and which guests are in the export |
//! | `documents` | the history of desired documents, as differences |
//! | `events`, `alerts`, `work` | what happened |
//! | `certificates`, `usage` | what was proved and used |
//! | `pages` | README and summary |
//! | `folder`, `row_file`, `redact` | files, their bounds, and texts without secrets |

mod alerts;
mod certificates;
mod documents;
mod events;
mod folder;
mod pages;
mod redact;
mod row_file;
mod selection;
mod states;
mod usage;
mod work;

use std::path::{Path, PathBuf};

use holdfast_protocol::filter::GuestFilter;
use holdfast_protocol::id::CustomerId;
use jiff::Timestamp;

use self::folder::ExportFolder;
pub use self::folder::{Manifest, Period};
use crate::hub::Hub;
use crate::screen::Screen;
use crate::state_errors::ExportError;

/// What is to be exported.
#[derive(Clone, Debug)]
pub struct ExportRequest {
    pub from: Timestamp,
    pub to: Timestamp,
    pub now: Timestamp,
    pub customer: Option<CustomerId>,
    pub filter: Option<GuestFilter>,
    pub out: PathBuf,
    /// Bytes of each file, at most.
    pub file_bytes_max: u64,
}

/// What every part of the export needs.
struct ExportRun<'a> {
    hub: &'a Hub,
    screen: &'a Screen,
    period: Period,
    folder: ExportFolder,
}

/// Whether `out` asks for one packed file.
fn is_packed(out: &Path) -> bool {
    out.to_string_lossy().ends_with(".tar.zst")
}

/// Writes the export. Where it fails nothing is left.
pub async fn export(request: ExportRequest, hub: &Hub, screen: &Screen) -> Result<Manifest, ExportError> {
    let ExportRequest { from, to, now, customer, filter, out, file_bytes_max } = request;
    if from >= to {
        return Err(ExportError::Period);
    }
    let folder = ExportFolder::create(&out, file_bytes_max)?;
    let period = Period { from, to, now };
    let mut run = ExportRun { hub, screen, period, folder };
    let (selection, picture) = states::write(&mut run, customer, filter).await?;
    documents::write(&mut run, &selection).await?;
    events::write(&mut run, &selection).await?;
    alerts::write(&mut run, &selection).await?;
    work::write(&mut run, &selection).await?;
    certificates::write(&mut run, &selection).await?;
    usage::write(&mut run, &selection).await?;
    let ExportRun { folder, .. } = run;
    let manifest = folder.manifest(period, &selection);
    let summary = pages::summary(&manifest, &picture);
    folder.end(&manifest, &pages::readme(&manifest), &summary, is_packed(&out))?;
    Ok(manifest)
}
