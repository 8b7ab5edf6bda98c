//! The time since which some hub has been able to hear hosts.
//!
//! In: what is kept in the database, and now. Out: what is kept next. It is about all hubs on a database together: a hub
//! that starts beside others neither delays an alarm nor takes the time before its start for silence, and a restart that
//! is shorter than a gap changes nothing.

use jiff::Timestamp;

use super::deadman::ABSENCE;

/// Since when a hub hears hosts, and when one last did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Presence {
    pub since: Timestamp,
    pub at: Timestamp,
}

/// What is kept now. A gap begins anew, and so does a clock that was set back by more than hubs' clocks may differ.
#[must_use]
pub fn heard(before: Option<Presence>, now: Timestamp) -> Presence {
    match before {
        Some(Presence { since, at }) if now.duration_since(at).abs() <= ABSENCE => {
            Presence { since: since.min(now), at: at.max(now) }
        }
        Some(_) | None => Presence { since: now, at: now },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_begins_anew_and_another_hub_s_clock_does_not() {
        let at = |second: i64| Timestamp::from_second(1_700_000_000 + second).unwrap();
        let kept = |since, last| Some(Presence { since: at(since), at: at(last) });
        let table = [
            (None, 0, (0, 0)),
            (kept(0, 5), 10, (0, 10)),
            (kept(0, 5), 25, (0, 25)),
            (kept(0, 5), 26, (26, 26)),
            // A hub whose clock is two seconds behind.
            (kept(0, 5), 3, (0, 5)),
            (kept(100, 100), 98, (98, 100)),
            (kept(0, 500), 400, (400, 400)),
        ];
        for (before, now, (since, last)) in table {
            assert_eq!(
                heard(before, at(now)),
                Presence { since: at(since), at: at(last) },
                "{before:?} {now}"
            );
        }
    }
}
