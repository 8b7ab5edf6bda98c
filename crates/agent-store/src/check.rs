//! The integrity check of the database file.
//!
//! Checking each page takes a second for some hundreds of mebibytes, and a start does not wait for it. Damage found
//! while the agent runs ends all writing, as a disk error does, and is noted in a file. So the next start checks first,
//! and sets the damaged file aside.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::refusal::{Fault, News};
use super::{Part, Store, StoreError};
use agent_core::model::limits;

/// The note file: if it exists, the next start must check the database first.
fn note(path: &Path) -> PathBuf {
    path.with_extension("suspect")
}

/// Fails as SQLite does for a damaged file, if it is one.
fn look(connection: &Connection) -> Result<(), rusqlite::Error> {
    let found: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if found == "ok" {
        return Ok(());
    }
    let broken = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT);
    Err(rusqlite::Error::SqliteFailure(broken, Some(found)))
}

/// Before the start: small files, and those that were found damaged while an agent ran.
pub(super) fn at_start(connection: &Connection, path: &Path) -> Result<(), rusqlite::Error> {
    let small = std::fs::metadata(path).is_ok_and(|file| file.len() <= limits::CHECKED_AT_START_BYTES);
    let note = note(path);
    if !small && !note.exists() {
        return Ok(());
    }
    look(connection)?;
    // It is sound, or was repaired by hand.
    if let Err(error) = std::fs::remove_file(&note)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        tracing::warn!(%error, file = %note.display(), "the note of a suspected damage stays");
    }
    Ok(())
}

/// The note is removed once the file was set aside.
pub(super) fn is_quarantined(path: &Path) {
    drop(std::fs::remove_file(note(path)));
}

/// Whether a file was checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckState {
    /// It was checked before the start.
    Before,
    /// It is sound.
    Sound,
    /// It is damaged, and nothing is written any more.
    Damaged,
}

impl Store {
    /// Checks a large file, page by page, on its own connection and thread: reading and writing go on meanwhile.
    ///
    /// # Errors
    /// [`StoreError`]: it could not be read.
    pub async fn check(&self) -> Result<CheckState, StoreError> {
        let path = self.folder.join("agent.db");
        let bytes = std::fs::metadata(&path).map_or(0, |file| file.len());
        if bytes <= limits::CHECKED_AT_START_BYTES {
            return Ok(CheckState::Before);
        }
        let file = path.clone();
        let looked = tokio::task::spawn_blocking(move || {
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            look(&Connection::open_with_flags(file, flags)?)
        });
        match looked.await {
            Ok(Ok(())) => Ok(CheckState::Sound),
            Ok(Err(error)) if is_damage(&error) => {
                let words = error.to_string();
                if let Err(error) = std::fs::write(note(&path), &words) {
                    tracing::error!(%error, "the next start will not know that the records are damaged");
                }
                if self.health.take(Fault::Broken(words)) == News::Yes {
                    self.report(Part::Health);
                }
                Ok(CheckState::Damaged)
            }
            Ok(Err(source)) => Err(StoreError::Sqlite { what: "look at its own file", source }),
            // The agent stops just now.
            Err(_) => Err(StoreError::Closed),
        }
    }
}

pub(super) fn is_damage(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}

#[cfg(test)]
mod tests;
