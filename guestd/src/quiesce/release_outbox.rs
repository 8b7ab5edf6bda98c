//! Outbox of window ends that the agent has not acknowledged, `releases.json`.
//!
//! Each entry has the time when its stacks began to start again.
//!
//! A process that starts a part writes this down first, whether it ran the window or resumes in place of a dead
//! process. The agent calls a backup `application` only when it is notified that nothing was started before its copy
//! was fixed. The entry stays until the agent has acknowledged it. If the file cannot be written, the stacks are
//! started all the same, and that backup is called `crash`.

use std::path::PathBuf;
use std::time::Duration;

use holdfast_protocol::id::OperationId;
use holdfast_protocol::json::chain;
use serde::{Deserialize, Serialize};
use tracing::warn;

use super::boot;
use crate::clock;
use crate::file::{self, Eyes, FileError};
use crate::paths::Paths;

/// How many windows are kept: an agent that was offline for longer has already applied its own bounds.
const WINDOWS_MAX: usize = 8;

const BYTES_MAX: usize = 16 * 1024;

/// The clock counts hundredths of a second. A start that came after another event must not be reported as earlier than
/// that event.
const GRAIN_MS: u64 = 10;

/// The version of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Schema {
    #[default]
    #[serde(rename = "holdfast.guestd-releases/v1")]
    V1,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Outbox {
    schema: Schema,
    windows: Vec<PendingRelease>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PendingRelease {
    pub window: OperationId,
    /// When the first of it was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    started: Option<StartTime>,
}

/// A moment, as only its own boot can compare it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StartTime {
    boot_id: String,
    /// Milliseconds since that boot, time asleep included.
    at_ms: u64,
}

impl PendingRelease {
    /// How long ago the start began; none when that is unknown.
    pub fn begun_ms_ago(&self, paths: &Paths) -> Option<u64> {
        let started = self.started.as_ref()?;
        let same = boot::id(paths).ok().flatten()? == started.boot_id;
        let then = Duration::from_millis(started.at_ms);
        same.then(|| ms_ago(then, clock::since_boot(paths)?)).flatten()
    }
}

/// How long before `now` that was. None where the clock went back.
pub fn ms_ago(then: Duration, now: Duration) -> Option<u64> {
    let ago = u64::try_from(now.checked_sub(then)?.as_millis()).ok()?;
    Some(ago.saturating_sub(GRAIN_MS))
}

fn path(paths: &Paths) -> PathBuf {
    paths.state_dir().join("releases.json")
}

/// All of them, the oldest first; none where they cannot be read.
pub fn all(paths: &Paths) -> Vec<PendingRelease> {
    let bytes = file::read(&path(paths), BYTES_MAX, Eyes::All).ok().flatten();
    let book: Option<Outbox> = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    book.unwrap_or_default().windows
}

/// What is noted of one.
pub fn of(paths: &Paths, window: OperationId) -> Option<PendingRelease> {
    all(paths).into_iter().find(|one| one.window == window)
}

/// Records that the stopped parts of this window are started from now on. An earlier record is kept.
pub fn note_start(paths: &Paths, window: OperationId) {
    let started = boot::id(paths).ok().flatten().zip(clock::since_boot(paths)).map(|(boot_id, now)| {
        StartTime { boot_id, at_ms: u64::try_from(now.as_millis()).unwrap_or(u64::MAX) }
    });
    note(paths, PendingRelease { window, started });
}

/// A window that is over; when it was let go is not known.
pub fn note_end(paths: &Paths, window: OperationId) {
    note(paths, PendingRelease { window, started: None });
}

fn note(paths: &Paths, untold: PendingRelease) {
    let mut windows = all(paths);
    if windows.iter().any(|known| known.window == untold.window) {
        return;
    }
    windows.push(untold);
    windows.drain(..windows.len().saturating_sub(WINDOWS_MAX));
    save(paths, windows);
}

/// The agent received it, or never will.
pub fn delivered(paths: &Paths, window: OperationId) {
    let mut windows = all(paths);
    let before = windows.len();
    windows.retain(|known| known.window != window);
    if windows.len() != before {
        save(paths, windows);
    }
}

fn save(paths: &Paths, windows: Vec<PendingRelease>) {
    let kept = match windows.is_empty() {
        true => file::remove_durably(&path(paths)),
        false => write(paths, windows),
    };
    if let Err(error) = kept {
        warn!(error = chain(&error), "cannot store a window end for the agent");
    }
}

fn write(paths: &Paths, windows: Vec<PendingRelease>) -> Result<(), FileError> {
    // Plain text and numbers: it cannot fail, and an empty file would be read as no windows.
    let bytes = serde_json::to_vec_pretty(&Outbox { schema: Schema::V1, windows }).unwrap_or_default();
    file::replace(&path(paths), &bytes, Eyes::All)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u128) -> OperationId {
        OperationId::new(uuid::Uuid::from_u128(number))
    }

    fn paths(root: &std::path::Path, seconds: u64, boot: &str) -> Paths {
        let paths = Paths::new(root);
        std::fs::create_dir_all(paths.state_dir()).unwrap();
        std::fs::create_dir_all(root.join("proc/sys/kernel/random")).unwrap();
        std::fs::write(root.join("proc/uptime"), format!("{seconds}.00 0.00\n")).unwrap();
        std::fs::write(root.join("proc/sys/kernel/random/boot_id"), boot).unwrap();
        paths
    }

    #[test]
    fn the_first_start_counts_until_delivery() {
        let root = tempfile::tempdir().unwrap();
        let place_at = |seconds, boot| paths(root.path(), seconds, boot);
        note_start(&place_at(100, "a"), id(1));
        note_start(&place_at(105, "a"), id(1));
        note_end(&place_at(106, "a"), id(2));
        let ago = |paths: &Paths| all(paths).iter().map(|one| one.begun_ms_ago(paths)).collect::<Vec<_>>();
        assert_eq!(ago(&place_at(110, "a")), [Some(9_990), None]);
        assert_eq!(ago(&place_at(99, "a")), [None, None], "a clock that went back");
        assert_eq!(ago(&place_at(110, "b")), [None, None], "another boot's clock");
        delivered(&place_at(110, "a"), id(1));
        assert_eq!(all(&place_at(110, "a")).len(), 1);
        delivered(&place_at(110, "a"), id(2));
        assert!(!path(&place_at(110, "a")).exists());
        for number in 0..20 {
            note_start(&place_at(1, "a"), id(number));
        }
        let kept: Vec<OperationId> = all(&place_at(1, "a")).iter().map(|one| one.window).collect();
        assert_eq!((kept.len(), kept.last()), (WINDOWS_MAX, Some(&id(19))));
    }
}
