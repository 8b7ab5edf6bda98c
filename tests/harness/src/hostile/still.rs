//! The judge of stopped programs in the hostile hub suite.
//!
//! A guest requests quiesce windows; the judge checks how long its programs were stopped.
//!
//! In: the world. Out: in the world, when programs were stopped, by the guest's own count; and what exceeds the policy.
//! The guest requests windows more often than the policy allows, and starts its programs no sooner than its bound says.

use std::time::Duration;

use agentd::model::policy::QuiesceBound;
use agentd::model::request::Ask;
use agentd::port::store::Store;
use agentd::port::store::request::NewRequest;
use holdfast_protocol::id::OperationId;

use crate::fixtures::uid;
use crate::points::Conductor;
use crate::window_memory::Stood;
use crate::windows::{self, Windows};
use crate::world::World;

/// The guest whose controller requests windows.
pub const ASKS: u8 = 1;

/// How long programs may be stopped in any 24 hours, by the policy.
pub const BUDGET: Duration = Duration::from_secs(40 * 60);

/// The policy's limit.
pub const POLICY: &str = "still_min_per_day = 40\n";

/// Twelve requests a day, of a quarter of an hour each.
const ASK_EVERY: Duration = Duration::from_secs(2 * 3_600);

/// How often a controller checks its window.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// How many checks are made for a request that waits behind other work.
const LOOKS_MAX: usize = 360;

const DAY: Duration = Duration::from_secs(86_400);

/// Requests windows, stops and starts programs for as long as it is awaited.
pub async fn play(world: &World, store: &Store, conductor: &Conductor) {
    for nth in 1_u128.. {
        tokio::time::sleep(ASK_EVERY).await;
        let id = OperationId::new(uuid::Uuid::from_u128((8 << 64) | nth));
        let ask = Ask::QuiescedBackup { tier: None, bound: QuiesceBound::usual() };
        let asked =
            NewRequest { id, guest: uid(ASKS), ask, key: None, correlation: None, at: world.timeline.now() };
        if store.ask(asked).await.is_err() {
            continue;
        }
        for _ in 0..LOOKS_MAX {
            tokio::time::sleep(LOOK_EVERY).await;
            if windows::is_settled(world, store, conductor, (Windows::Slow, id)).await {
                break;
            }
        }
    }
}

/// The longest total time that programs were stopped within 24 hours.
#[must_use]
pub fn longest(stood: &[Stood], now: Duration) -> Duration {
    let from_each = stood.iter().map(|first| {
        let until = first.from + DAY;
        let within = stood.iter().filter(|other| other.from >= first.from);
        within.map(|other| other.to.unwrap_or(now).min(until).saturating_sub(other.from)).sum()
    });
    from_each.max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_any_24_hours() {
        let hours = |hours: u64| Duration::from_secs(hours * 3_600);
        let stood = |from: u64, to: Option<u64>| Stood {
            window: OperationId::new(uuid::Uuid::from_u128(u128::from(from))),
            from: hours(from),
            deadline: hours(from + 9),
            heard: hours(from),
            to: to.map(hours),
        };
        let both = [stood(20, Some(22)), stood(30, Some(31))];
        assert_eq!(longest(&both, hours(40)), hours(3), "over midnight");
        assert_eq!(longest(&[stood(1, Some(2)), stood(26, Some(27))], hours(40)), hours(1));
        assert_eq!(longest(&[stood(1, None)], hours(5)), hours(4), "that still stand");
        assert_eq!(longest(&[], hours(5)), Duration::ZERO);
    }
}
