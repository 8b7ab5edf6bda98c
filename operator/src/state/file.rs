//! A new file that is there when it is whole.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use crate::state_errors::StateCommandError;

/// A file under another name until it is whole. It is removed when it is dropped before.
pub struct NewFile {
    path: PathBuf,
    partial: PathBuf,
    writer: Option<BufWriter<File>>,
}

impl NewFile {
    /// Begins a file of the user's own; one that exists is not written over.
    pub fn create(path: &Path) -> Result<Self, StateCommandError> {
        let failed = |source| StateCommandError::Write { path: path.to_owned(), source };
        if path.exists() {
            return Err(failed(std::io::ErrorKind::AlreadyExists.into()));
        }
        let mut partial = path.as_os_str().to_owned();
        partial.push(".partial");
        let partial = PathBuf::from(partial);
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&partial);
        let writer = Some(BufWriter::new(file.map_err(failed)?));
        Ok(Self { path: path.to_owned(), partial, writer })
    }

    pub fn push(&mut self, bytes: &[u8]) -> Result<(), StateCommandError> {
        let failed = |source| StateCommandError::Write { path: self.path.clone(), source };
        match &mut self.writer {
            Some(writer) => writer.write_all(bytes).map_err(failed),
            None => Ok(()),
        }
    }

    /// Gives it its name.
    pub fn end(mut self) -> Result<(), StateCommandError> {
        let failed = |source| StateCommandError::Write { path: self.path.clone(), source };
        let Some(writer) = self.writer.take() else { return Ok(()) };
        let file = writer.into_inner().map_err(|error| failed(error.into_error()))?;
        file.sync_all().map_err(failed)?;
        std::fs::rename(&self.partial, &self.path).map_err(failed)
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if self.writer.is_some() {
            // What cannot be removed is named as partial.
            drop(std::fs::remove_file(&self.partial));
        }
    }
}
