//! `untold.json`: windows that the agent may not have heard the end of, and since when what stood still for them is being
//! started.
//!
//! Whoever starts something writes this down first, whether it ran the window or comes in the place of somebody dead: the
//! agent calls a backup `application` only when it hears that nothing was started before its copy was fixed. It stays until
//! the agent heard it. A file that cannot be written keeps nothing stopped: then that backup is called `crash`.

use std::path::PathBuf;
use std::time::Duration;

use holdfast_protocol::id::OperationId;
use holdfast_protocol::strict::chain;
use serde::{Deserialize, Serialize};
use tracing::warn;

use super::boot;
use crate::clock;
use crate::file::{self, Eyes, FileError};
use crate::place::Place;

/// So many windows are remembered: an agent that hears nothing for longer counted its own bounds long ago.
const WINDOWS_MAX: usize = 8;

const BYTES_MAX: usize = 16 * 1024;

/// The clock counts hundredths: what began after something else must not be told as if it had begun before.
const GRAIN_MS: u64 = 10;

/// The version of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Schema {
    #[default]
    #[serde(rename = "holdfast.guestd-untold/v1")]
    V1,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Book {
    schema: Schema,
    windows: Vec<Untold>,
}

/// One window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Untold {
    pub window: OperationId,
    /// When the first of it was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    begun: Option<Begun>,
}

/// A moment, as only its own boot can compare it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Begun {
    boot_id: String,
    /// Milliseconds since that boot, time asleep included.
    at_ms: u64,
}

impl Untold {
    /// How long ago the starting began; none when nobody knows.
    pub fn begun_ms_ago(&self, place: &Place) -> Option<u64> {
        let begun = self.begun.as_ref()?;
        let same = boot::id(place).ok().flatten()? == begun.boot_id;
        let then = Duration::from_millis(begun.at_ms);
        same.then(|| ms_ago(then, clock::since_boot(place)?)).flatten()
    }
}

/// How long before `now` that was. A clock that went back tells nothing.
pub fn ms_ago(then: Duration, now: Duration) -> Option<u64> {
    let ago = u64::try_from(now.checked_sub(then)?.as_millis()).ok()?;
    Some(ago.saturating_sub(GRAIN_MS))
}

fn path(place: &Place) -> PathBuf {
    place.state_dir().join("untold.json")
}

/// All of them, the oldest first; none where they cannot be read.
pub fn all(place: &Place) -> Vec<Untold> {
    let bytes = file::read(&path(place), BYTES_MAX, Eyes::All).ok().flatten();
    let book: Option<Book> = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    book.unwrap_or_default().windows
}

/// What is noted of one.
pub fn of(place: &Place, window: OperationId) -> Option<Untold> {
    all(place).into_iter().find(|one| one.window == window)
}

/// What stood still for this window is started from now on. Who began earlier stands.
pub fn begins(place: &Place, window: OperationId) {
    let begun = boot::id(place)
        .ok()
        .flatten()
        .zip(clock::since_boot(place))
        .map(|(boot_id, now)| Begun { boot_id, at_ms: u64::try_from(now.as_millis()).unwrap_or(u64::MAX) });
    note(place, Untold { window, begun });
}

/// A window that is over; when it was let go is not known.
pub fn is_over(place: &Place, window: OperationId) {
    note(place, Untold { window, begun: None });
}

fn note(place: &Place, untold: Untold) {
    let mut windows = all(place);
    if windows.iter().any(|known| known.window == untold.window) {
        return;
    }
    windows.push(untold);
    windows.drain(..windows.len().saturating_sub(WINDOWS_MAX));
    keep(place, windows);
}

/// The agent heard it, or never will.
pub fn heard(place: &Place, window: OperationId) {
    let mut windows = all(place);
    let before = windows.len();
    windows.retain(|known| known.window != window);
    if windows.len() != before {
        keep(place, windows);
    }
}

fn keep(place: &Place, windows: Vec<Untold>) {
    let kept = match windows.is_empty() {
        true => file::remove_durably(&path(place)),
        false => write(place, windows),
    };
    if let Err(error) = kept {
        warn!(error = chain(&error), "what the agent must hear of a window is not kept");
    }
}

fn write(place: &Place, windows: Vec<Untold>) -> Result<(), FileError> {
    // Plain text and numbers: it cannot fail, and an empty file would be read as no windows.
    let bytes = serde_json::to_vec_pretty(&Book { schema: Schema::V1, windows }).unwrap_or_default();
    file::replace(&path(place), &bytes, Eyes::All)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u128) -> OperationId {
        OperationId::new(uuid::Uuid::from_u128(number))
    }

    fn place(root: &std::path::Path, seconds: u64, boot: &str) -> Place {
        let place = Place::new(root);
        std::fs::create_dir_all(place.state_dir()).unwrap();
        std::fs::create_dir_all(root.join("proc/sys/kernel/random")).unwrap();
        std::fs::write(root.join("proc/uptime"), format!("{seconds}.00 0.00\n")).unwrap();
        std::fs::write(root.join("proc/sys/kernel/random/boot_id"), boot).unwrap();
        place
    }

    #[test]
    fn the_first_start_counts_until_it_was_heard() {
        let root = tempfile::tempdir().unwrap();
        let place_at = |seconds, boot| place(root.path(), seconds, boot);
        begins(&place_at(100, "a"), id(1));
        begins(&place_at(105, "a"), id(1));
        is_over(&place_at(106, "a"), id(2));
        let ago = |place: &Place| all(place).iter().map(|one| one.begun_ms_ago(place)).collect::<Vec<_>>();
        assert_eq!(ago(&place_at(110, "a")), [Some(9_990), None]);
        assert_eq!(ago(&place_at(99, "a")), [None, None], "a clock that went back");
        assert_eq!(ago(&place_at(110, "b")), [None, None], "another boot's clock");
        heard(&place_at(110, "a"), id(1));
        assert_eq!(all(&place_at(110, "a")).len(), 1);
        heard(&place_at(110, "a"), id(2));
        assert!(!path(&place_at(110, "a")).exists());
        for number in 0..20 {
            begins(&place_at(1, "a"), id(number));
        }
        let kept: Vec<OperationId> = all(&place_at(1, "a")).iter().map(|one| one.window).collect();
        assert_eq!((kept.len(), kept.last()), (WINDOWS_MAX, Some(&id(19))));
    }
}
