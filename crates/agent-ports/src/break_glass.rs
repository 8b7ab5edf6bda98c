//! The order for root's break-glass program, and its status file.
//!
//! In: the text of a signed job. Out: a file in a folder of the agent's own, which a path unit of root's watches; and what
//! root's program wrote. Deliberately absent: a way to open anything.

use std::path::{Path, PathBuf};

use held_files::atomic_file::{self, FileError, Readers};
use holdfast_protocol::break_glass::{BreakGlassStatus, STATUS_BYTES_MAX};
use holdfast_protocol::json::JsonError;

/// Where `holdfast-break-glass` writes.
const STATUS: &str = "/var/lib/holdfast-break-glass/status.json";

/// The two files.
#[derive(Clone, Debug)]
pub struct BreakGlassFiles {
    folder: PathBuf,
    status: PathBuf,
}

/// Why a file was not read or written.
#[derive(Debug, thiserror::Error)]
pub enum BreakGlassError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("the status of `holdfast-break-glass` is not used")]
    Form(#[from] JsonError),
}

impl BreakGlassFiles {
    /// Those of this host; the order is in the state folder.
    #[must_use]
    pub fn of(state: &Path) -> Self {
        Self { folder: state.join("break-glass"), status: STATUS.into() }
    }

    /// With the status beneath a folder too.
    #[must_use]
    pub fn at(root: &Path) -> Self {
        Self { folder: root.join("break-glass"), status: root.join("status.json") }
    }

    fn order(&self) -> PathBuf {
        self.folder.join("order.json")
    }

    /// What root's program wrote; none where it wrote nothing yet.
    ///
    /// # Errors
    /// [`BreakGlassError`].
    pub fn status(&self) -> Result<Option<BreakGlassStatus>, BreakGlassError> {
        let Some(bytes) = atomic_file::read(&self.status, STATUS_BYTES_MAX as u64)? else { return Ok(None) };
        Ok(Some(BreakGlassStatus::parse(&bytes)?))
    }

    /// Puts an order down, also one that is there: root's unit starts at each write.
    ///
    /// # Errors
    /// [`BreakGlassError`].
    pub fn put_order(&self, text: &str) -> Result<(), BreakGlassError> {
        atomic_file::private_folder(&self.folder)?;
        Ok(atomic_file::write(&self.order(), text.as_bytes(), Readers::Owner)?)
    }

    /// Takes an order away that has its answer.
    ///
    /// # Errors
    /// [`BreakGlassError`].
    pub fn remove_order(&self) -> Result<(), BreakGlassError> {
        if atomic_file::is_there(&self.order())? {
            atomic_file::remove(&self.order())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_put_down_and_taken_away_and_a_status_has_one_form() {
        let root = tempfile::tempdir().unwrap();
        let files = BreakGlassFiles::at(root.path());
        assert!(files.status().unwrap().is_none());
        files.remove_order().unwrap();
        files.put_order("{}").unwrap();
        assert_eq!(std::fs::read_to_string(root.path().join("break-glass/order.json")).unwrap(), "{}");
        files.remove_order().unwrap();
        assert!(!root.path().join("break-glass/order.json").exists());
        std::fs::write(root.path().join("status.json"), "{}").unwrap();
        assert!(matches!(files.status(), Err(BreakGlassError::Form(_))));
    }
}
