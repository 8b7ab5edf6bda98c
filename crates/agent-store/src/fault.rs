//! A failing disk, for tests.
//!
//! Input: the fault to simulate. Output: SQLite's own error at the next commit, before it or after it. Only in builds
//! with the feature `failpoints`, which is never shipped. Deliberately absent: damage of written data; tests do that to
//! the file.

use std::cell::Cell;

use rusqlite::ffi;

/// The simulated faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreFault {
    /// The next so many commits find no space.
    Full { times: u32 },
    /// The next commit is on disk, and yet its sync gives an error.
    SyncFails,
}

thread_local! {
    static ARMED: Cell<Option<StoreFault>> = const { Cell::new(None) };
}

/// Arms a fault on this thread, or disarms it.
pub fn arm(fault: Option<StoreFault>) {
    ARMED.set(fault);
}

fn error(code: i32, text: &str) -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(ffi::Error::new(code), Some(text.to_owned()))
}

pub(super) fn before_commit() -> Result<(), rusqlite::Error> {
    match ARMED.get() {
        Some(StoreFault::Full { times }) => {
            ARMED.set(times.checked_sub(1).filter(|left| *left > 0).map(|times| StoreFault::Full { times }));
            Err(error(ffi::SQLITE_FULL, "database or disk is full"))
        }
        Some(StoreFault::SyncFails) | None => Ok(()),
    }
}

pub(super) fn after_commit() -> Result<(), rusqlite::Error> {
    match ARMED.get() {
        Some(StoreFault::SyncFails) => {
            ARMED.set(None);
            Err(error(ffi::SQLITE_IOERR_FSYNC, "disk I/O error"))
        }
        Some(StoreFault::Full { .. }) | None => Ok(()),
    }
}
