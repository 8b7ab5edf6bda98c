//! Whether a storage has room for one more backup of a guest.
//!
//! Asked before each backup, of what Proxmox says is available there and of the largest of the guest's last backups on it.
//! The last part of a storage is left to what must be written: one that is full takes nobody's backups any more. A backup
//! server keeps what is new alone, so there only that last part counts. What nobody answers for keeps no backup.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::Problem;
use holdfast_protocol::id::StorageName;
use holdfast_protocol::protection::Tier;

use crate::model::observed::{Observed, StorageFact};
use crate::model::record::BackupRecord;

/// Of these the largest is looked at.
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
) -> Result<(), Problem> {
    let Some(StorageFact::Active { total, available, .. }) = observed.storages.get(storage) else {
        return Ok(());
    };
    if *total == 0 {
        return Ok(());
    }
    let there = backups.iter().filter(|backup| backup.storage == *storage && backup.missing_since.is_none());
    let last = there.rev().take(LAST).map(|backup| backup.bytes).max().unwrap_or(0);
    let takes = match tier {
        Tier::OffSite => 0,
        Tier::Snapshot | Tier::Local => last.saturating_add(last / GROWS_SHARE),
    };
    if *available >= takes.saturating_add(total / LEFT_SHARE) {
        return Ok(());
    }
    let text = format!(
        "no backup is taken to storage {storage}: {} of {} are available there, the next backup takes about {}, and a twentieth \
         is left free: make room there, or lower the retention by a signed `loosen_policy`",
        mib(*available),
        mib(*total),
        mib(takes)
    );
    Err(Problem::new(ErrorCode::StorageFull, text))
}

fn mib(bytes: u64) -> String {
    match bytes {
        0..0x1_0000_0000 => format!("{} MiB", bytes.div_ceil(1 << 20)),
        _ => format!("{} GiB", bytes >> 30),
    }
}
