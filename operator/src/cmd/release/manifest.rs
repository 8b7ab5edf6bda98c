//! `holdfast release manifest`: the manifest of files.

use std::path::{Path, PathBuf};

use holdfast_protocol::job::UtcSecond;
use holdfast_protocol::release::{
    ReleaseFile, ReleaseFileKind, ReleaseFileName, ReleaseManifest, ReleaseSchema,
};
use jiff::{SignedDuration, Timestamp};

use crate::args::ManifestArgs;
use crate::error::CliError;
use crate::job_file::{self, Overwrite};
use crate::release_errors::{NameError, ReleaseFileError};
use crate::release_file::measure;
use crate::screen::Screen;
use crate::{clock, render};

pub fn run(args: ManifestArgs, screen: &Screen) -> Result<(), CliError> {
    let mut files = Vec::new();
    for path in args.paths {
        let (name, _) = name(&path)?;
        let kind = ReleaseFileKind::by_name(&name).ok_or(ReleaseFileError::Kind { path: path.clone() })?;
        files.push(file(kind, path)?);
    }
    for (kind, path) in args.files {
        files.push(file(kind, path)?);
    }
    files.sort_by(|one, other| one.name.cmp(&other.name));
    let (issued_at, expires_at) = times(clock::now(), args.expires_in_days)?;
    let manifest =
        ReleaseManifest { schema: ReleaseSchema::V1, version: args.version, issued_at, expires_at, files };
    let text = manifest.to_json().map_err(ReleaseFileError::Unwritable)?;
    // What no host would read is not worth a signature.
    ReleaseManifest::parse(text.as_bytes()).map_err(ReleaseFileError::Content)?;
    job_file::write(&args.out, &text, Overwrite::Never)?;
    screen.show(&manifest, |manifest, style| render::release::written(manifest, &args.out, style))
}

fn times(now: Timestamp, days: u16) -> Result<(UtcSecond, UtcSecond), ReleaseFileError> {
    let end = now.checked_add(SignedDuration::from_hours(i64::from(days) * 24));
    let end = end.map_err(|_| ReleaseFileError::Clock("its end is beyond what can be written"))?;
    let second = |at| UtcSecond::new(at).map_err(ReleaseFileError::Clock);
    Ok((second(now)?, second(end)?))
}

fn name(path: &Path) -> Result<(String, ReleaseFileName), ReleaseFileError> {
    let text = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let name = ReleaseFileName::try_from(text.clone())
        .map_err(|rule| ReleaseFileError::Name { path: path.to_owned(), source: NameError(rule) })?;
    Ok((text, name))
}

fn file(kind: ReleaseFileKind, path: PathBuf) -> Result<ReleaseFile, ReleaseFileError> {
    let (_, name) = name(&path)?;
    let measured = measure(&path).map_err(|source| ReleaseFileError::Io { verb: "read", path, source })?;
    Ok(ReleaseFile { kind, name, sha256: measured.sha256, size_bytes: measured.size_bytes })
}
