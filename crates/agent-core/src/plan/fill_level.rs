//! Fill levels of storages, and what follows from them.
//!
//! What comes in: what Proxmox says of each storage. What goes out: a text for a person. A storage that runs full stops
//! every guest on it, so the last part of one is left to those that are there. Deliberately absent: what one restore
//! takes (`gate/room`), and who grows how fast.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::id::StorageName;

use crate::model::observed::{Observed, StorageFact};

/// From this percentage on a storage is reported as nearly full.
pub(super) const REPORTED_PERCENT: u64 = 90;

/// From this on nothing new is made on it.
pub(super) const FULL_PERCENT: u64 = 95;

/// How full a storage is, and its sizes.
fn filled(fact: Option<&StorageFact>) -> Option<(u64, u64, u64)> {
    match fact? {
        StorageFact::Active { total, used, .. } => Some((percent(*used, *total)?, *used, *total)),
        StorageFact::Inactive | StorageFact::Unknown => None,
    }
}

/// The part in use, in percent; none of a storage without a size.
pub(super) fn percent(used: u64, total: u64) -> Option<u64> {
    let percent = (u128::from(used) * 100).checked_div(u128::from(total))?;
    Some(u64::try_from(percent).unwrap_or(u64::MAX))
}

/// Why no disk is made on a storage.
pub(super) fn lacks(observed: &Observed, storage: &StorageName) -> Option<String> {
    let (percent, used, total) = filled(observed.storages.get(storage))?;
    (percent >= FULL_PERCENT).then(|| {
        format!(
            "storage {storage} is {percent} % full ({used} of {total}), and from {FULL_PERCENT} % on nothing new is made on it: \
             free some of it, or name another target",
            used = gib(used),
            total = gib(total)
        )
    })
}

/// Storages that are nearly full.
#[must_use]
pub fn problems(observed: &Observed) -> Vec<ErrorBody> {
    let reported = |(name, fact): (&StorageName, &StorageFact)| {
        let (percent, used, total) = filled(Some(fact))?;
        (percent >= REPORTED_PERCENT).then(|| {
            let text = format!(
                "storage {name} is {percent} % full ({} of {}): guests stop when it is full; from {FULL_PERCENT} % on nothing new \
                 is made on it",
                gib(used),
                gib(total)
            );
            ErrorBody::new(ErrorCode::StorageFull, text)
        })
    };
    observed.storages.iter().filter_map(reported).collect()
}

pub(super) fn gib(bytes: u64) -> String {
    format!("{}.{} GiB", bytes >> 30, ((bytes % (1 << 30)) * 10) >> 30)
}
