//! Atomic files: temporary file, sync, rename, folder sync.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use super::AuthorityError;

pub(super) fn read_text(path: &Path) -> Result<String, AuthorityError> {
    fs::read_to_string(path).map_err(|source| AuthorityError::File {
        path: path.to_owned(),
        action: "read",
        source,
    })
}

pub(super) fn write_secret(path: &Path, text: &str) -> Result<(), AuthorityError> {
    write(path, text, 0o600)
}

pub(super) fn write_public(path: &Path, text: &str) -> Result<(), AuthorityError> {
    write(path, text, 0o644)
}

fn write(path: &Path, text: &str, mode: u32) -> Result<(), AuthorityError> {
    durably(path, text, mode).map_err(|source| AuthorityError::File {
        path: path.to_owned(),
        action: "written",
        source,
    })
}

fn durably(path: &Path, text: &str, mode: u32) -> std::io::Result<()> {
    let beside = path.with_extension("new");
    // A leftover of a crash may have any mode; it is never written into.
    match fs::remove_file(&beside) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&beside)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&beside, path)?;
    match path.parent() {
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}
