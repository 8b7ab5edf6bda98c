//! Points of a schedule around now, with jitter.
//!
//! Guests of one policy share its points, which are looked for once. Each guest is put off by a part of the jitter that
//! follows from its uid and the point, so that it is the same after a restart, and another for the next point.

use holdfast_protocol::id::GuestUid;
use holdfast_protocol::protection::{Schedule, Tier};
use jiff::{SignedDuration, Timestamp};

/// What begins at the points of a schedule: each is put off by another part of the jitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Backups of a tier.
    Tier(Tier),
    /// Maintenance of the guest.
    Maintenance,
}

impl From<Tier> for Purpose {
    fn from(tier: Tier) -> Self {
        Self::Tier(tier)
    }
}

impl Purpose {
    /// Another for each.
    const fn salt(self) -> u64 {
        match self {
            Self::Tier(tier) => tier as u64,
            Self::Maintenance => 0xff,
        }
    }
}

/// The points on both sides of now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Around {
    /// The last one, now included.
    pub last: Option<Timestamp>,
    /// The next one.
    pub next: Option<Timestamp>,
    /// The one after that, for the jitter of the next one.
    after: Option<Timestamp>,
}

impl Around {
    /// Of a schedule.
    #[must_use]
    pub fn of(schedule: &Schedule, now: Timestamp) -> Self {
        let next = schedule.next(now);
        Self { last: schedule.last(now), next, after: next.and_then(|next| schedule.next(next)) }
    }

    /// When the last one begins for a guest.
    #[must_use]
    pub fn last_begins(
        &self,
        schedule: &Schedule,
        guest: GuestUid,
        purpose: impl Into<Purpose>,
    ) -> Option<(Timestamp, Timestamp)> {
        let point = self.last?;
        Some((point, begins(schedule, guest, purpose.into(), point, self.next)))
    }

    /// When the next one begins for a guest.
    #[must_use]
    pub fn next_begins(
        &self,
        schedule: &Schedule,
        guest: GuestUid,
        purpose: impl Into<Purpose>,
    ) -> Option<Timestamp> {
        Some(begins(schedule, guest, purpose.into(), self.next?, self.after))
    }
}

/// Put off by less than half the way to the following point: what is put off beyond that would be overtaken.
fn begins(
    schedule: &Schedule,
    guest: GuestUid,
    purpose: Purpose,
    point: Timestamp,
    following: Option<Timestamp>,
) -> Timestamp {
    let most = i64::from(schedule.jitter_min.get()) * 60;
    let half = following.map_or(most, |following| following.duration_since(point).as_secs() / 2);
    let span = u64::try_from(most.min(half)).unwrap_or(0);
    let put_off = scatter(guest, purpose, point) % (span + 1);
    let put_off = SignedDuration::from_secs(i64::try_from(put_off).unwrap_or(0));
    point.checked_add(put_off).unwrap_or(point)
}

/// A number that is as good as drawn by lot, and always the same. The finisher of splitmix64, twice.
fn scatter(guest: GuestUid, purpose: Purpose, point: Timestamp) -> u64 {
    let (high, low) = guest.uuid().as_u64_pair();
    let mix = |mut number: u64| {
        number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        number ^ (number >> 31)
    };
    mix(mix(high ^ low.rotate_left(17)) ^ point.as_second().cast_unsigned() ^ (purpose.salt() << 56))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schedule(at: &str, jitter: u32) -> Schedule {
        serde_json::from_value(json!({ "at": [at], "zone": "UTC", "jitter_min": jitter, "window_min": 720 }))
            .unwrap()
    }

    fn uid(n: u128) -> GuestUid {
        GuestUid::new(uuid::Uuid::from_u128(n << 64 | n))
    }

    #[test]
    fn guests_are_spread_over_the_jitter_and_each_begins_at_the_same_time_again() {
        let schedule = schedule("02:30", 60);
        let now: Timestamp = "2026-11-21T12:00:00Z".parse().unwrap();
        let begins: Vec<i64> = (1..=1_000)
            .map(|n| {
                let around = Around::of(&schedule, now);
                let (point, begins) = around.last_begins(&schedule, uid(n), Tier::Local).unwrap();
                assert_eq!(
                    Around::of(&schedule, now).last_begins(&schedule, uid(n), Tier::Local).unwrap().1,
                    begins
                );
                begins.duration_since(point).as_secs()
            })
            .collect();
        assert!(begins.iter().all(|after| (0..=3_600).contains(after)));
        let in_each_tenth = |tenth: i64| begins.iter().filter(|after| **after / 361 == tenth).count();
        assert!((0..10).map(in_each_tenth).all(|count| (50..150).contains(&count)), "{begins:?}");
        let other = Around::of(&schedule, now).last_begins(&schedule, uid(1), Tier::OffSite).unwrap().1;
        assert_ne!(other.duration_since(now), begins_of_first(&schedule, now), "tiers do not begin together");
    }

    fn begins_of_first(schedule: &Schedule, now: Timestamp) -> SignedDuration {
        Around::of(schedule, now).last_begins(schedule, uid(1), Tier::Local).unwrap().1.duration_since(now)
    }

    #[test]
    fn no_one_is_put_off_beyond_half_the_way_to_the_following_point() {
        let schedule = schedule("*:00", 600);
        let now: Timestamp = "2026-11-21T12:20:00Z".parse().unwrap();
        for n in 1..200 {
            let (point, begins) =
                Around::of(&schedule, now).last_begins(&schedule, uid(n), Tier::Local).unwrap();
            assert!(begins.duration_since(point).as_secs() <= 1_800);
        }
    }
}
