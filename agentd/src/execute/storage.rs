//! Mounting of one target through the helper.
//!
//! In: an action that was decided. Out: its result. The helper judges the device by root's own policy. The kernel's
//! table says whether the mount is visible from here; the marker says which disk it is. Each is bounded in time, even
//! for a disk that hangs. Deliberately absent: deciding, and trying again.

use std::time::Duration;

use holdfast_protocol::id::TargetName;
use holdfast_protocol::json::chain;
use holdfast_protocol::storage::backend::FsUuid;

use crate::model::storage::{Marked, MarkerSeen, place};
use crate::plan::storage::TargetAction;
use crate::port::disk_marker::{self, Expected};
use crate::port::helper::{Helper, HelperError};
use crate::port::mounts::Mounts;

/// A marker is a few bytes; the measurement after the first one takes some seconds on the slowest disk.
const DISK_MAX: Duration = Duration::from_secs(30);

/// One action on one target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// What is done.
    pub action: TargetAction,
    /// The file system.
    pub uuid: FsUuid,
    /// Whose marker should be there.
    pub expected: Expected,
}

/// What became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is mounted.
    Mounted {
        /// The mount's number.
        id: u64,
        /// What was found on the disk.
        marker: MarkerSeen,
        /// What is to be noted of a disk that got its marker.
        marked: Option<Marked>,
    },
    /// It is not mounted any more.
    Unmounted,
    /// It was not done: a stable code and a sentence.
    Refused(String, String),
}

pub async fn perform(helper: &Helper, mounts: &Mounts, order: Order) -> Outcome {
    let target = &order.expected.target;
    match order.action {
        TargetAction::Unmount(_) => match helper.unmount(target).await {
            Ok(()) => Outcome::Unmounted,
            Err(error) => refused(&error),
        },
        TargetAction::Mount => match helper.mount(target, &order.uuid).await {
            Ok(_mounted) => looked_at(mounts, order.expected).await,
            Err(error) => refused(&error),
        },
    }
}

fn refused(error: &HelperError) -> Outcome {
    match error {
        HelperError::Refused { code, message } => Outcome::Refused(code.clone(), message.clone()),
        other => Outcome::Refused("E_HELPER".to_owned(), chain(other)),
    }
}

/// The number first: if the mount were exchanged after it, the table would show another number, and the mount is
/// checked anew.
async fn looked_at(mounts: &Mounts, expected: Expected) -> Outcome {
    let id = match number(mounts, &expected.target) {
        Ok(id) => id,
        Err(says) => return Outcome::Refused("E_ENV".to_owned(), says),
    };
    let folder = place(&expected.target);
    let looking = tokio::task::spawn_blocking(move || disk_marker::look(&folder, &expected));
    let (marker, marked) = match tokio::time::timeout(DISK_MAX, looking).await {
        Ok(Ok(found)) => found,
        Ok(Err(_)) => (MarkerSeen::Unread("reading it broke off".to_owned()), None),
        Err(_) => (MarkerSeen::Unread("the disk does not answer".to_owned()), None),
    };
    Outcome::Mounted { id, marker, marked }
}

fn number(mounts: &Mounts, target: &TargetName) -> Result<u64, String> {
    let seen = mounts.look().map_err(|error| chain(&error))?;
    seen.get(target.as_str()).map(|mount| mount.id).ok_or_else(|| {
        "the helper has mounted it, and the agent does not see that: its unit hides mounts of the host"
            .to_owned()
    })
}
