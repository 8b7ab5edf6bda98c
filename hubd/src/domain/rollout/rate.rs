//! The turns of hosts, at most so many in an hour.
//!
//! In: a rollout with its hosts, and now. Out: when each host that waits for its turn has it. Deliberately absent: hosts
//! whose time is not now. They wait for their windows, and hold no place.

use std::num::NonZeroU32;

use holdfast_protocol::id::HostId;
use jiff::{SignedDuration, Timestamp};

use super::progress::Progress;
use super::{HostFacts, Rollout};

/// The time in which offers are counted.
const HOUR: SignedDuration = SignedDuration::from_hours(1);

/// Hosts whose turn comes, with the time of it, in the order of waves and names. A host that has the release needs none.
#[must_use]
pub fn turns(rollout: &Rollout, hosts: &[HostFacts], now: Timestamp) -> Vec<(HostId, Timestamp)> {
    let waits = |host: &&HostFacts| {
        let takes = match host.progress {
            Progress::Waiting | Progress::Silent => true,
            Progress::Done | Progress::Failed(_) | Progress::Gone => false,
        };
        takes && host.offered_at.is_none() && rollout.stage.offers(host.wave) && host.allowed.is_open(now)
    };
    // An offer that lies in the future was made before the clock was set back.
    let is_recent = |at: &Timestamp| now.duration_since(*at) < HOUR;
    let mut offers: Vec<Timestamp> =
        hosts.iter().filter_map(|host| host.offered_at).filter(is_recent).map(|at| at.min(now)).collect();
    offers.sort_unstable();
    let mut turns = Vec::new();
    for host in hosts.iter().filter(waits) {
        let at = turn(rollout.per_hour, &offers, now);
        offers.push(at);
        turns.push((host.host, at));
    }
    turns
}

/// When the next offer may be made after these, which are in order.
fn turn(per_hour: Option<NonZeroU32>, offers: &[Timestamp], now: Timestamp) -> Timestamp {
    let Some(per_hour) = per_hour else { return now };
    let of_an_hour_ago =
        offers.len().checked_sub(per_hour.get() as usize).and_then(|place| offers.get(place));
    of_an_hour_ago.map_or(now, |at| at.saturating_add(HOUR).unwrap_or(Timestamp::MAX).max(now))
}

/// Hosts that are newly offered the release.
#[must_use]
pub fn newly_offered(rollout: &Rollout, hosts: &[HostFacts], now: Timestamp) -> Vec<HostId> {
    turns(rollout, hosts, now).into_iter().filter(|(_, at)| *at <= now).map(|(host, _)| host).collect()
}
