//! Releases at the hub: upload, list, delete.
//!
//! Files go in pieces, each to the place where the hub's copy ends. A run that was cut off is run again and goes on.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::release::VersionNumber;
use holdfast_protocol::release::stored::{ArtifactState, ArtifactView, ReleaseFileView, ReleaseView};

use crate::args::AssumeYes;
use crate::error::CliError;
use crate::hub::{Hub, HubError, WHOLE};
use crate::release_errors::{ReleaseFileError, ReleaseStoreError};
use crate::release_file;
use crate::release_proof::{checked, require_files};
use crate::screen::Screen;
use crate::{clock, prompt, render};

/// How much goes in one request. A slow line carries it within the time of one.
const PIECE_BYTES: u64 = 4 * 1024 * 1024;

pub async fn upload(signed: &Path, folder: &Path, hub: &Hub, screen: &Screen) -> Result<(), CliError> {
    let (release, manifest) = release_file::signed(signed)?;
    // A file that differs would be found at its last byte only.
    require_files(&checked(&manifest, Some(folder)), folder)?;
    let text = release.to_json().map_err(ReleaseFileError::Unwritable)?;
    let version = manifest.version.to_string();
    let mut view: ReleaseView = hub.put(&["v1", "releases", &version], text.into_bytes()).await?;
    for file in &mut view.files {
        if file.artifact.state != ArtifactState::Complete {
            file.artifact = send(file, folder, hub).await?;
            screen.note(&format!("uploaded {}", file.name.as_str()));
        }
    }
    screen
        .show(&view, |view, style| render::release::releases(std::slice::from_ref(view), clock::now(), style))
}

async fn send(file: &ReleaseFileView, folder: &Path, hub: &Hub) -> Result<ArtifactView, CliError> {
    let path = folder.join(file.name.as_str());
    let failed = |source| ReleaseFileError::Io { verb: "read", path: path.clone(), source };
    let mut opened = File::open(&path).map_err(failed)?;
    let mut at = file.artifact.clone();
    while at.state != ArtifactState::Complete {
        let offset = at.received_bytes;
        opened.seek(SeekFrom::Start(offset)).map_err(failed)?;
        let mut piece = Vec::new();
        (&opened).take(PIECE_BYTES).read_to_end(&mut piece).map_err(failed)?;
        let digest = at.sha256.as_str();
        let query = [("offset", offset.to_string())];
        at = hub.put_bytes(&["v1", "artifacts", digest], &query, piece).await?;
        if at.state != ArtifactState::Complete && at.received_bytes <= offset {
            let (received, size) = (at.received_bytes, at.size_bytes);
            let name = file.name.as_str().to_owned();
            return Err(ReleaseStoreError::Stalled { name, received, size }.into());
        }
    }
    Ok(at)
}

pub async fn list(hub: &Hub, screen: &Screen) -> Result<(), CliError> {
    let all: Vec<ReleaseView> = hub.list(&["v1", "releases"], &[], WHOLE).await?;
    screen.show(&all, |all, style| render::release::releases(all, clock::now(), style))
}

pub async fn delete(
    version: VersionNumber,
    assume_yes: AssumeYes,
    hub: &Hub,
    screen: &Screen,
) -> Result<(), CliError> {
    let question = format!(
        "Delete release {version} at the hub? Hosts that have not fetched it cannot install it then."
    );
    prompt::confirm(&question, assume_yes)?;
    let gone: ReleaseView = match hub.delete(&["v1", "releases", &version.to_string()]).await {
        Err(HubError::Refused { problem, .. }) if problem.code == ErrorCode::NotFound => {
            return Err(ReleaseStoreError::Unknown { version }.into());
        }
        other => other?,
    };
    screen.show(&gone, |gone, _| format!("Release {} was deleted at the hub.\n", gone.version))
}
