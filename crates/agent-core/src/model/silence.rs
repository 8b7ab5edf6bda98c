//! How long a guest agent may go unheard before that is reported.
//!
//! In: when it last said hello, how often it should, and now. Out: whether it is heard, late or silent. A hello that is late may
//! be a slow guest; one that is silent has missed three. Deliberately absent: what follows from it.

use jiff::{SignedDuration, Timestamp};

/// Added to the time that two hellos may take: a handshake on a busy host.
const LATE_GRACE_S: i64 = 30;

/// Added to the time that three may take.
const SILENT_GRACE_S: i64 = 60;

/// How a guest agent is heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Silence {
    Heard,
    /// It should have said hello again; the time is that of its last.
    Late(Timestamp),
    /// It has missed three; the time is that of its last.
    Silent(Timestamp),
}

/// Judges by the last hello, how often one should come, and now.
#[must_use]
pub fn judge(last: Timestamp, every_s: u32, now: Timestamp) -> Silence {
    let silence = now.duration_since(last);
    let missed = |count: i64, grace: i64| {
        silence > SignedDuration::from_secs(i64::from(every_s).saturating_mul(count).saturating_add(grace))
    };
    match (missed(2, LATE_GRACE_S), missed(3, SILENT_GRACE_S)) {
        (_, true) => Silence::Silent(last),
        (true, false) => Silence::Late(last),
        (false, false) => Silence::Heard,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_missed_hellos_are_late_and_three_are_silence() {
        let at = |second: i64| Timestamp::from_second(1_800_000_000 + second).unwrap();
        let judged = |every, second| judge(at(0), every, at(second));
        for second in [-5, 0, 60, 150] {
            assert_eq!(judged(60, second), Silence::Heard, "{second}");
        }
        assert_eq!((judged(60, 151), judged(60, 240)), (Silence::Late(at(0)), Silence::Late(at(0))));
        assert_eq!((judged(60, 241), judged(60, 90_000)), (Silence::Silent(at(0)), Silence::Silent(at(0))));
        assert_eq!((judged(600, 1_230), judged(600, 1_861)), (Silence::Heard, Silence::Silent(at(0))));
    }
}
