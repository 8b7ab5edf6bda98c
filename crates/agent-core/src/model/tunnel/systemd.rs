//! Services in the output of `systemctl show`.
//!
//! In: the text for several units, a block each, in the order of the question. Out: what is known of each. A value of
//! another form is as if it were absent. Deliberately absent: the call.

use holdfast_protocol::report::UnitActivity;
use jiff::Timestamp;

/// The properties that are asked for.
pub const PROPERTIES: &str = "LoadState,ActiveState,StateChangeTimestamp,NRestarts";

/// What systemd says of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServiceState {
    pub activity: UnitActivity,
    /// Since when.
    pub since: Option<Timestamp>,
    /// How often systemd started it again by itself.
    pub restarted: u32,
}

/// One entry for each of `count` units. A block that lacks its state, or is missing, is unknown.
#[must_use]
pub fn parse(text: &str, count: usize) -> Vec<Option<ServiceState>> {
    let mut blocks = text.split("\n\n").map(block);
    (0..count).map(|_| blocks.next().flatten()).collect()
}

fn block(text: &str) -> Option<ServiceState> {
    let value = |key: &str| {
        text.lines()
            .find_map(|line| line.split_once('=').filter(|(name, _)| *name == key))
            .map(|(_, value)| value)
    };
    let activity = match (value("LoadState")?, value("ActiveState")?) {
        ("not-found", "inactive") => UnitActivity::NotFound,
        (_, "active" | "refreshing") => UnitActivity::Active,
        (_, "activating" | "deactivating" | "reloading" | "maintenance") => UnitActivity::Changing,
        (_, "failed") => UnitActivity::Failed,
        (_, "inactive") => UnitActivity::Inactive,
        _ => return None,
    };
    let since = value("StateChangeTimestamp").and_then(|text| text.strip_prefix('@')?.parse().ok());
    let since = since.filter(|second| *second > 0).and_then(|second| Timestamp::from_second(second).ok());
    let restarted = value("NRestarts").and_then(|text| text.parse().ok()).unwrap_or(0);
    Some(ServiceState { activity, since, restarted })
}
