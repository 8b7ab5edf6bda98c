//! `holdfast release verify`: who signed a release, and its files.

use std::path::Path;

use holdfast_trust::{Operators, ReleaseKeys};

use crate::args::VerifyArgs;
use crate::error::CliError;
use crate::release_errors::{ReleaseFileError, ReleaseVerifyError};
use crate::release_file;
use crate::release_proof::{ReleaseProof, require_files};
use crate::screen::Screen;
use crate::{clock, render};

pub fn run(args: VerifyArgs, screen: &Screen) -> Result<(), CliError> {
    let keys = keys(&args.keys, args.signatures)?;
    let signed = release_file::envelope(&args.file)?;
    let at = args.at.unwrap_or_else(clock::now);
    let accepted = keys
        .accept(&signed, at)
        .map_err(|source| ReleaseVerifyError::Refused { path: args.file.clone(), source })?;
    let proof = ReleaseProof::of(&accepted, at, args.signatures, args.files.as_deref());
    screen.show(&proof, render::release::proof)?;
    match args.files {
        Some(folder) => Ok(require_files(&proof.files, &folder)?),
        None => Ok(()),
    }
}

fn keys(path: &Path, needed: u8) -> Result<ReleaseKeys, CliError> {
    let text = std::fs::read_to_string(path).map_err(|source| ReleaseFileError::Io {
        verb: "read",
        path: path.to_owned(),
        source,
    })?;
    let holders = Operators::parse(&text)
        .map_err(|source| ReleaseVerifyError::Keys { path: path.to_owned(), source })?;
    let keys = ReleaseKeys::new(holders, needed);
    Ok(keys.map_err(|source| ReleaseVerifyError::Threshold { path: path.to_owned(), source })?)
}
