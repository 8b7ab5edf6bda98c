//! Whether a storage has room for one more backup of a guest.
//!
//! Checked before each backup: when it is planned, by what was seen last, and right before it is begun, by what Proxmox
//! says then. So the first backup of a guest and the one behind a swap are held to it, too. The size it takes is
//! estimated by the largest of the guest's last backups there. Where there is none, the backups on other storages
//! count. Where there is none at all, what Proxmox says its root disk holds counts, which says nothing of further
//! volumes. The last part of a storage is left to what must be written: one that is full takes no guest's backups any
//! more. A backup server keeps only what is new, so there only that last part counts. Where no fill level is reported,
//! no backup is held back.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::id::StorageName;
use holdfast_protocol::protection::Tier;

use crate::model::observed::{Observed, StorageFact};
use crate::model::records::BackupRecord;

/// The largest of this many backups counts.
const LAST: usize = 3;

/// A twentieth of a storage is left.
const LEFT_SHARE: u64 = 20;

/// What the next backup takes beyond the last ones: a tenth of them.
const GROWS_SHARE: u64 = 10;

/// Why one more backup does not go to a storage.
///
/// # Errors
/// [`ErrorCode::StorageFull`], with the sizes.
pub(in crate::plan) fn judge(
    observed: &Observed,
    backups: &[BackupRecord],
    (storage, tier): (&StorageName, Tier),
) -> Result<(), ErrorBody> {
    let Some(room) = room(observed, storage) else { return Ok(()) };
    fits(storage, room, next_takes(backups, (storage, tier)))
}

/// What a storage has left; none, where it does not say so.
pub(super) fn room(observed: &Observed, storage: &StorageName) -> Option<Room> {
    match observed.storages.get(storage)? {
        StorageFact::Active { total, available, .. } => Some(Room { total: *total, available: *available }),
        StorageFact::Inactive | StorageFact::Unknown => None,
    }
}

/// What the next backup of a tier takes on its storage.
pub(super) fn next_takes(backups: &[BackupRecord], (storage, tier): (&StorageName, Tier)) -> u64 {
    match tier {
        Tier::OffSite => 0,
        Tier::Snapshot | Tier::Local => takes(backups, storage, 0),
    }
}

/// What a storage says of itself, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// Its size; zero means nothing.
    pub total: u64,
    /// What can still be written.
    pub available: u64,
}

/// What the next backup takes on a storage that keeps each one whole. `used` is what its guest is known to hold.
#[must_use]
pub fn takes(backups: &[BackupRecord], storage: &StorageName, used: u64) -> u64 {
    let largest = |here: bool| {
        let mut listed: Vec<&BackupRecord> = backups
            .iter()
            .filter(|one| one.missing_since.is_none() && (!here || one.storage == *storage))
            .collect();
        listed.sort_by_key(|one| std::cmp::Reverse(one.taken_at));
        listed.into_iter().take(LAST).map(|one| one.bytes).max()
    };
    let last = largest(true).or_else(|| largest(false)).unwrap_or(used);
    last.saturating_add(last / GROWS_SHARE)
}

/// Whether so much fits on a storage while its last part stays free.
///
/// # Errors
/// [`ErrorCode::StorageFull`], with the sizes.
pub fn fits(storage: &StorageName, Room { total, available }: Room, takes: u64) -> Result<(), ErrorBody> {
    if total == 0 || available >= takes.saturating_add(total / LEFT_SHARE) {
        return Ok(());
    }
    let text = format!(
        "no backup is taken to storage {storage}: {} of {} are available there, the next backup takes about {}, and a twentieth \
         is left free: make room there, delete a backup by a signed `delete_backup` (`holdfast sign --delete-backup`), or lower \
         the retention by a signed `loosen_policy`",
        mib(available),
        mib(total),
        mib(takes)
    );
    Err(ErrorBody::new(ErrorCode::StorageFull, text))
}

fn mib(bytes: u64) -> String {
    match bytes {
        0..0x1_0000_0000 => format!("{} MiB", bytes.div_ceil(1 << 20)),
        _ => format!("{} GiB", bytes >> 30),
    }
}
