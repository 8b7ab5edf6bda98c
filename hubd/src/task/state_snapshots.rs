//! The task that keeps a snapshot of state each day or week.
//!
//! In: the clock, and what the store keeps already. Out: one snapshot for each period, compressed and thinned. Whether there is
//! one is decided by the store when it is kept, so that several hubs, or a hub that starts again, keep one.

use std::sync::Arc;
use std::time::Duration;

use holdfast_protocol::json::chain;
use holdfast_protocol::state::StateScope;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};
use serde::Deserialize;
use tokio::sync::watch;

use super::{Rest, rest};
use crate::clock::Clock;
use crate::snapshots::{LiveState, Packer, SnapshotError};
use crate::store::{KeepOutcome, NewStateSnapshot, SharedStore};

/// After a start hosts need time to report.
const FIRST_AFTER: Duration = Duration::from_secs(300);

const EVERY: Duration = Duration::from_secs(1800);

/// How often a snapshot is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SnapshotSchedule {
    Off,
    #[default]
    Daily,
    Weekly,
}

impl SnapshotSchedule {
    /// The day that a snapshot of now stands for: the day itself in UTC, or the Monday of its week.
    fn day(self, now: Timestamp) -> Option<Date> {
        let today = TimeZone::UTC.to_datetime(now).date();
        match self {
            Self::Off => None,
            Self::Daily => Some(today),
            Self::Weekly => {
                let since_monday = i64::from(today.weekday().to_monday_zero_offset());
                today.checked_sub(Span::new().days(since_monday)).ok()
            }
        }
    }
}

/// When snapshots are kept, and how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotSettings {
    pub schedule: SnapshotSchedule,
    /// How many bytes all kept snapshots may have, compressed.
    pub bytes_max: u64,
}

/// Keeps the snapshot of this day, where there is none.
///
/// # Errors
/// [`SnapshotError`]; nothing was kept then.
pub async fn keep(
    store: &SharedStore,
    day: Date,
    now: Timestamp,
    bytes_max: u64,
) -> Result<KeepOutcome, SnapshotError> {
    let mut live = LiveState::new(Arc::clone(store), StateScope::default(), now);
    let mut packer = Packer::new().map_err(SnapshotError::Pack)?;
    while let Some(lines) = live.next_lines().await? {
        packer.push(&lines).map_err(SnapshotError::Pack)?;
        let bytes = packer.packed_bytes();
        if bytes > bytes_max {
            return Err(SnapshotError::TooLarge { bytes, max: bytes_max });
        }
    }
    let tail = live.tail().cloned().ok_or(SnapshotError::Ended)?;
    let (body, bytes) = packer.end().map_err(SnapshotError::Pack)?;
    let new = NewStateSnapshot { day, taken_at: now, tail, bytes, body, bytes_max };
    Ok(store.keep_state_snapshot(new).await?)
}

/// Runs until `stop`. What fails is logged, and tried again half an hour later.
pub async fn run(
    settings: SnapshotSettings,
    store: SharedStore,
    clock: Arc<dyn Clock>,
    mut stop: watch::Receiver<bool>,
) {
    let mut wait = FIRST_AFTER;
    while rest(&mut stop, wait).await == Rest::Over {
        wait = EVERY;
        let now = clock.now();
        let Some(day) = settings.schedule.day(now) else { continue };
        if let Err(error) = keep_when_due(settings, &store, day, now).await {
            tracing::error!(action = "keep_state_snapshot", result = "failed", error = %chain(&error));
        }
    }
}

async fn keep_when_due(
    settings: SnapshotSettings,
    store: &SharedStore,
    day: Date,
    now: Timestamp,
) -> Result<(), SnapshotError> {
    if store.has_state_snapshot(day).await? {
        return Ok(());
    }
    if keep(store, day, now, settings.bytes_max).await? == KeepOutcome::Kept {
        tracing::info!(action = "keep_state_snapshot", result = "ok", day = %day);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_stands_for_its_day_or_for_the_monday_of_its_week() {
        let day = |schedule: SnapshotSchedule, at: &str| {
            schedule.day(at.parse().unwrap()).map(|day| day.to_string())
        };
        let (sunday, monday) = ("2026-11-22T23:59:59Z", "2026-11-23T00:00:00Z");
        assert_eq!(day(SnapshotSchedule::Daily, sunday).as_deref(), Some("2026-11-22"));
        assert_eq!(day(SnapshotSchedule::Weekly, sunday).as_deref(), Some("2026-11-16"));
        assert_eq!(day(SnapshotSchedule::Weekly, monday).as_deref(), Some("2026-11-23"));
        assert_eq!(day(SnapshotSchedule::Off, monday), None);
    }
}
