//! The dead-man's switch: liveness by silence.
//!
//! In: when a host was last heard of, how often it should ask, since when the hub has been listening, and now. Out: how
//! the host is. The clock restarts with the hub, so a hub that was down raises no alarm until each host had
//! its full time again. Deliberately absent: the recipients.
//!
//! ```text
//! new ──check-in──► online ──2 polls──► late ──3 polls + 45 s, or alarm_after_s──► offline (alarm)
//!  │                  ▲ ◄───check-in──────┘                         │
//!  │                  └───────────────check-in (event)──────────────┤
//!  └──────────────as long after its enrolment (alarm)────────────────┘
//! ```

use holdfast_protocol::size::{AlarmSeconds, PollSeconds};
use jiff::{SignedDuration, Timestamp};

/// Added to three polls before the alarm. Together with [`TICK`] and the first delivery this
/// stays under the minute that is promised.
const GRACE: SignedDuration = SignedDuration::from_secs(45);

/// How often silence is judged.
pub const TICK: std::time::Duration = std::time::Duration::from_secs(5);

/// When two readings of the clock are further apart than this, the hub itself was away (suspended, stopped). It then
/// starts to listen anew.
pub const ABSENCE: SignedDuration = SignedDuration::from_secs(20);

/// How a host that was heard of at least once is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Liveness {
    /// Heard of in time.
    Online,
    /// One poll overdue.
    Late,
    /// Overdue so long that an operator must check.
    Offline,
}

/// Judges a silence.
#[must_use]
pub fn evaluate(
    seen_at: Timestamp,
    (poll, alarm_after): (PollSeconds, Option<AlarmSeconds>),
    hub_up_since: Timestamp,
    now: Timestamp,
) -> Liveness {
    let silence = now.duration_since(seen_at.max(hub_up_since));
    let poll = SignedDuration::from_secs(i64::from(u32::from(poll)));
    let longest =
        alarm_after.map_or(poll * 3 + GRACE, |alarm| SignedDuration::from_secs(i64::from(u32::from(alarm))));
    if silence > longest {
        Liveness::Offline
    } else if silence > poll * 2 {
        Liveness::Late
    } else {
        Liveness::Online
    }
}

/// The liveness to record, given the recorded one. Only a check-in improves it, so silence never does: after a restart
/// of the hub, an offline host stays offline until it reports.
#[must_use]
pub fn worsened(written: Liveness, judged: Liveness) -> Option<Liveness> {
    (judged > written).then_some(judged)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_700_000_000 + seconds).unwrap()
    }

    #[test]
    fn silence_is_judged_by_the_poll_and_from_when_the_hub_could_hear() {
        let poll = PollSeconds::try_from(30).unwrap();
        let table = [
            // seen, hub up since, now, judged
            (0, -1000, 0, Liveness::Online),
            (0, -1000, 60, Liveness::Online),
            (0, -1000, 61, Liveness::Late),
            (0, -1000, 135, Liveness::Late),
            (0, -1000, 136, Liveness::Offline),
            (0, 500, 560, Liveness::Online),
            (0, 500, 561, Liveness::Late),
            (0, 500, 636, Liveness::Offline),
            (600, 500, 560, Liveness::Online),
        ];
        for (seen, up, now, judged) in table {
            assert_eq!(
                evaluate(at(seen), (poll, None), at(up), at(now)),
                judged,
                "seen {seen}, up {up}, now {now}"
            );
        }
    }

    #[test]
    fn a_document_sets_the_alarm_alone() {
        let poll = PollSeconds::try_from(30).unwrap();
        let alarm = AlarmSeconds::try_from(600).ok();
        let judged = |now| evaluate(at(0), (poll, alarm), at(-9999), at(now));
        assert_eq!(
            [judged(60), judged(61), judged(600), judged(601)],
            [Liveness::Online, Liveness::Late, Liveness::Late, Liveness::Offline]
        );
    }

    #[test]
    fn the_alarm_comes_within_three_polls_and_a_minute() {
        for seconds in [5, 30, 300] {
            let poll = PollSeconds::try_from(seconds).unwrap();
            let promised = i64::from(seconds) * 3 + 60;
            let looked = promised - i64::try_from(TICK.as_secs()).unwrap();
            assert_eq!(evaluate(at(0), (poll, None), at(-9999), at(looked)), Liveness::Offline, "{seconds}");
        }
    }

    #[test]
    fn silence_makes_nothing_better() {
        assert_eq!(worsened(Liveness::Offline, Liveness::Online), None);
        assert_eq!(worsened(Liveness::Late, Liveness::Online), None);
        assert_eq!(worsened(Liveness::Late, Liveness::Late), None);
        assert_eq!(worsened(Liveness::Online, Liveness::Offline), Some(Liveness::Offline));
    }
}
