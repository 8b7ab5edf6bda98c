//! Signs of life: hellos that only repeat earlier ones.
//!
//! A controller sends a hello every few minutes, nearly always with unchanged content. Writing each would cost a sync
//! of the disk, and reporting each would send the whole list of guests to the hub. So a hello that repeats the last one
//! only moves a time in memory. A reader of the guests' records finds that time there, in steps of a quarter of an
//! hour. It is written again after an hour, so a crash makes a controller look unheard for an hour at most, until its
//! next hello. A hello that ends a silence is written at once: the guest may have been reported as silent meanwhile.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use holdfast_protocol::id::GuestUid;
use jiff::{SignedDuration, Timestamp};

use agent_core::model::records::{GuestRecord, HelloRecord};

/// The hello on disk is never older than this while the controller lives.
const WRITTEN_EVERY: SignedDuration = SignedDuration::from_hours(1);

/// The time that readers get lags by at most this, and changes only this often.
const STEP_S: i64 = 15 * 60;

/// The shortest and the longest time between two hellos that a controller keeps to (`limits::hello_again_s`).
const EVERY: (SignedDuration, SignedDuration) = (SignedDuration::from_mins(1), SignedDuration::from_mins(10));

/// After this multiple of the usual pause a hello ends a silence.
const SILENCE_PAUSES: i32 = 3;

/// A controller's last written hello, and the time of its last hello.
struct LastHello {
    written: HelloRecord,
    last: Timestamp,
    /// The time between the last two hellos, within [`EVERY`].
    pause: SignedDuration,
}

/// When a hello may have been missed: the listener was away, or a guest's connection was refused.
#[derive(Default)]
struct Missed {
    all: Option<Timestamp>,
    guests: BTreeMap<GuestUid, Timestamp>,
}

/// The controllers that sent a hello in this run of the agent.
#[derive(Default)]
pub(super) struct HelloCache(Mutex<BTreeMap<GuestUid, LastHello>>, Mutex<Missed>);

impl HelloCache {
    fn all(&self) -> MutexGuard<'_, BTreeMap<GuestUid, LastHello>> {
        // A poisoned lock still guards valid messages and times.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn missed(&self) -> MutexGuard<'_, Missed> {
        // A poisoned lock still guards valid times.
        self.1.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// No guest could reach the agent at this moment.
    pub(super) fn missed_all(&self, at: Timestamp) {
        self.missed().all = Some(at);
    }

    /// This guest could not reach the agent at this moment.
    pub(super) fn missed_guest(&self, uid: GuestUid, at: Timestamp) {
        self.missed().guests.insert(uid, at);
    }

    /// Since when hellos of this guest would have been received; none, where that is since the start.
    pub(super) fn missed_last(&self, uid: GuestUid) -> Option<Timestamp> {
        let missed = self.missed();
        missed.all.max(missed.guests.get(&uid).copied())
    }

    /// Takes a hello that says nothing new. One with news, one that ends a silence, and one that is due on disk again
    /// must be written by the caller.
    pub(super) fn repeats(&self, uid: GuestUid, hello: &HelloRecord) -> bool {
        let mut all = self.all();
        let Some(said) = all.get_mut(&uid) else { return false };
        // A hello dated ahead of now was written before the clock was set back.
        let age = hello.at.duration_since(said.written.at);
        let due = age >= WRITTEN_EVERY || age.is_negative();
        let pause = hello.at.duration_since(said.last);
        let ends_silence = pause > said.pause * SILENCE_PAUSES;
        said.pause = pause.clamp(EVERY.0, EVERY.1);
        if due || ends_silence || !same_words(&said.written, hello) {
            return false;
        }
        said.last = said.last.max(hello.at);
        true
    }

    /// A hello is on disk.
    pub(super) fn wrote(&self, uid: GuestUid, hello: HelloRecord) {
        let mut all = self.all();
        let pause = all.get(&uid).map_or(EVERY.1, |said| said.pause);
        all.insert(uid, LastHello { last: hello.at, written: hello, pause });
    }

    /// The last hello in this run, with its exact time: a caller that waits for a hello needs it to the second.
    pub(super) fn last(&self, uid: GuestUid) -> Option<HelloRecord> {
        self.all().get(&uid).map(|said| HelloRecord { at: said.last, ..said.written.clone() })
    }

    /// Forgets the hello of this guest's controller.
    pub(super) fn forget(&self, uid: GuestUid) {
        self.all().remove(&uid);
    }

    /// Puts the time of the last hello into a record as it was read from disk.
    pub(super) fn freshen(&self, record: &mut GuestRecord) {
        let Some(hello) = &mut record.hello else { return };
        if let Some(said) = self.all().get(&record.uid).filter(|said| same_words(&said.written, hello)) {
            hello.at = hello.at.max(step(said.last));
        }
    }
}

fn same_words(one: &HelloRecord, other: &HelloRecord) -> bool {
    (&one.version, one.health, &one.boot_id, &one.build, &one.reported)
        == (&other.version, other.health, &other.boot_id, &other.build, &other.reported)
}

fn step(at: Timestamp) -> Timestamp {
    let second = at.as_second();
    Timestamp::from_second(second - second.rem_euclid(STEP_S)).unwrap_or(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent_core::model::records::ReportedConditions;
    use holdfast_protocol::report::Health;

    fn hello(second: i64, health: Health) -> HelloRecord {
        let at = Timestamp::from_second(1_800_000_000 + second).unwrap();
        HelloRecord {
            version: "0.1.0".to_owned(),
            health,
            boot_id: "b".to_owned(),
            build: None,
            reported: ReportedConditions::default(),
            at,
        }
    }

    #[test]
    fn news_is_written_and_a_repetition_is_not_until_an_hour_has_passed() {
        let (heard, uid) = (HelloCache::default(), GuestUid::new(uuid::Uuid::from_u128(1)));
        assert!(!heard.repeats(uid, &hello(0, Health::Well)), "never heard before");
        heard.wrote(uid, hello(0, Health::Well));
        assert!(heard.repeats(uid, &hello(60, Health::Well)));
        assert_eq!(
            heard.last(uid),
            Some(hello(60, Health::Well)),
            "to the second, although it is not on disk"
        );
        assert!(!heard.repeats(uid, &hello(120, Health::Unwell)), "that is news");
        for minute in 2..60 {
            assert!(heard.repeats(uid, &hello(minute * 60, Health::Well)), "minute {minute}");
        }
        assert!(!heard.repeats(uid, &hello(3_600, Health::Well)), "due on disk");
        assert!(!heard.repeats(uid, &hello(-1, Health::Well)), "the clock was set back");
        heard.forget(uid);
        assert_eq!(heard.last(uid), None);
        assert!(!heard.repeats(uid, &hello(61, Health::Well)), "a new claim begins anew");
    }

    #[test]
    fn a_hello_that_ends_a_silence_is_written_at_once() {
        let (heard, uid) = (HelloCache::default(), GuestUid::new(uuid::Uuid::from_u128(1)));
        heard.wrote(uid, hello(0, Health::Well));
        assert!(heard.repeats(uid, &hello(600, Health::Well)), "how often it speaks is not known yet");
        for second in [605, 665, 725] {
            assert!(heard.repeats(uid, &hello(second, Health::Well)), "{second}");
        }
        assert!(!heard.repeats(uid, &hello(725 + 200, Health::Well)), "three pauses and more");
        heard.wrote(uid, hello(925, Health::Well));
        assert!(heard.repeats(uid, &hello(925 + 500, Health::Well)), "one that speaks seldom now");
        for again in 1..5 {
            assert!(heard.repeats(uid, &hello(1_425 + again * 500, Health::Well)));
        }
    }

    #[test]
    fn who_could_not_be_heard_is_silent_from_then_on_only() {
        let (heard, at) = (HelloCache::default(), |second| hello(second, Health::Well).at);
        let [one, other] = [1, 2].map(|uid| GuestUid::new(uuid::Uuid::from_u128(uid)));
        assert_eq!(heard.missed_last(one), None);
        heard.missed_guest(one, at(10));
        assert_eq!((heard.missed_last(one), heard.missed_last(other)), (Some(at(10)), None));
        heard.missed_all(at(20));
        assert_eq!((heard.missed_last(one), heard.missed_last(other)), (Some(at(20)), Some(at(20))));
        heard.missed_guest(one, at(30));
        assert_eq!((heard.missed_last(one), heard.missed_last(other)), (Some(at(30)), Some(at(20))));
    }

    #[test]
    fn the_time_moves_in_steps_and_never_backwards() {
        assert_eq!(step(hello(899, Health::Well).at), hello(0, Health::Well).at);
        assert_eq!(step(hello(900, Health::Well).at), hello(900, Health::Well).at);
    }
}
