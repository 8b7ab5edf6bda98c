//! *update_controller*: another build of the guest agent, with a way back.
//!
//! What may follow is linear: a snapshot, where the guest and its storages allow one; the guest's slot, in which the
//! controller fetches the bytes and puts them in its own place; the hellos of the new one. It is confirmed when it is well
//! and its stacks are, from one hello to a later one. Else the guest puts its previous program back by itself: because the
//! agent says so, or because nothing confirmed the new one in its time. Nothing is rolled back, so no write of the
//! customer's is lost. Silence has many causes, and it is a person's case only when the guest's own way back did not come
//! either. What was heard is judged here, purely; deliberately absent: waiting for it.

mod skipped;

use std::collections::BTreeSet;
use std::time::Duration;

use holdfast_protocol::id::StackName;
use holdfast_protocol::job::act::ReleaseVersion;
use holdfast_protocol::local::desired::{TrialVerdict, trial_s};
use holdfast_protocol::local::hello::UnwellStack;
use holdfast_protocol::report::Health;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::applied::AppliedBy;
use super::spec::{Facts, Holds, Spec, Subject, Takes, Target};
use super::step::{Exhausted, Step};
use super::{BulkRule, RollBack, Snapshot};
use crate::gate::Effect;
use crate::model::policy::Sha256Hex;
use crate::model::records::{ControllerOutcome, HelloRecord};

pub use skipped::skipped;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UpdateController {
    /// The guest, and a snapshot for a person, where one can be taken.
    pub snapshot: Snapshot,
    /// The version, as an operator signed it.
    pub version: ReleaseVersion,
    /// What the new program hashes to.
    pub sha256: Sha256Hex,
    /// How often this guest's controller says hello, in seconds.
    pub pace_s: u32,
    /// Stacks that were unwell before: they say nothing about the new one.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub unwell_before: BTreeSet<StackName>,
}

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Came {
    /// The new controller said hello and is well, and its stacks are.
    Up,
    /// The new controller was not well to the end of the guest's slot, or the guest put its previous one back.
    Bad,
    /// The guest had the bytes, and no controller was heard in it since, the previous one included. A person looks.
    Silent,
}

/// What is known while the operation waits.
#[derive(Clone, Copy, Debug)]
pub struct HelloState<'a> {
    /// The last hello, where one was said in the guest's slot.
    pub hello: Option<&'a HelloRecord>,
    /// From its first fine hello without a break to the last one, by the agent's own steady clock.
    pub fine_for: Duration,
    /// The same for hellos of the previous controller since the bytes were fetched. It says only after its first one that
    /// it was put back.
    pub previous_for: Duration,
    /// Whether the guest began to fetch the bytes.
    pub fetched: Fetched,
    /// Whether the guest says that it put its previous controller back.
    pub returned: Returned,
    /// Whether a controller still speaks.
    pub speech: Speech,
    /// How far the guest's slot is.
    pub turn: TurnTime,
}

/// Whether a controller spoke in the guest lately, while it would have been heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speech {
    /// Lately, or no controller could have been heard.
    Lately,
    /// Not for longer than the guest needs to put its previous controller back.
    Silent,
}

/// How far the guest's slot is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnTime {
    Running,
    Over,
}

/// Whether the guest says that it put its previous controller back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Returned {
    Yes,
    No,
}

/// Whether a guest began to fetch the bytes that it was offered. Before that it cannot have exchanged anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fetched {
    /// First at this time.
    Yes(Timestamp),
    /// It did not.
    No,
}

/// What follows from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judged {
    /// It is waited on.
    Waits,
    /// The new one is up.
    Up,
    /// The previous one comes back, and why.
    Bad(String),
    /// No controller is heard, and a person must look.
    Silent(String),
    /// The guest stayed as it was, and why.
    NotTaken(String),
}

impl UpdateController {
    /// Whether a step is one of the rollback that operations of an earlier agent end with.
    #[must_use]
    pub fn is_rollback(step: Step) -> bool {
        RollBack::steps().contains(&step)
    }

    #[must_use]
    pub const fn target(&self) -> &Target {
        &self.snapshot.target
    }

    /// The rollback to what this very operation took, as an earlier agent began it.
    #[must_use]
    pub fn back(&self, by: holdfast_protocol::id::OperationId) -> RollBack {
        let (target, snapshot) = (self.snapshot.target.clone(), self.snapshot.name.clone());
        RollBack { target, snapshot, made_by: by, bulk: BulkRule::NoneThere }
    }

    /// How long after its last message the controller counts as silent: the guest's own way back comes first, and has two
    /// minutes for a slow disk.
    #[must_use]
    pub const fn silent_after_s(&self) -> u64 {
        trial_s(self.pace_s) + 120
    }

    /// Until when its guest may be on trial that fetched the bytes then: its own timer has put the previous one back by
    /// that time, whatever it heard.
    #[must_use]
    pub fn trial_ends(&self, fetched: Timestamp) -> Timestamp {
        let most = SignedDuration::try_from(Duration::from_secs(self.silent_after_s()));
        most.ok().and_then(|most| fetched.checked_add(most).ok()).unwrap_or(Timestamp::MAX)
    }

    /// The guest's slot: the guest hears of it with its next hello. A second and a third hello allow for a guest that
    /// was busy.
    #[must_use]
    pub const fn turn_s(&self) -> u64 {
        trial_s(self.pace_s)
    }

    /// How long the new one must be fine before it is confirmed, and the previous one heard before it counts as never
    /// exchanged: from a first hello to a second one.
    #[must_use]
    pub const fn confirmed_after(&self) -> Duration {
        Duration::from_secs(self.pace_s as u64 / 2)
    }

    /// Whether a hello is of the new one, which is well, and no stack is unwell that was not before.
    #[must_use]
    pub fn is_fine(&self, hello: &HelloRecord) -> bool {
        let worse = |stack: &UnwellStack| !self.unwell_before.contains(&stack.stack);
        self.is_new(hello) && hello.health == Health::Well && !hello.reported.unwell.iter().any(worse)
    }

    /// Whether a hello is of the controller from before, said after the bytes were fetched.
    #[must_use]
    pub fn is_previous(&self, hello: &HelloRecord, fetched: Fetched) -> bool {
        matches!(fetched, Fetched::Yes(at) if hello.at > at) && !self.is_new(hello)
    }

    fn is_new(&self, hello: &HelloRecord) -> bool {
        hello.build.as_ref() == Some(&self.sha256)
    }

    /// Judges what was heard in the guest's slot.
    #[must_use]
    pub fn judge(&self, heard: HelloState<'_>) -> Judged {
        let HelloState { hello, fine_for, previous_for, fetched, returned, speech, turn } = heard;
        let new = hello.filter(|hello| self.is_new(hello));
        match (new, fetched, returned, speech, turn) {
            (Some(new), ..) if self.is_fine(new) && fine_for >= self.confirmed_after() => Judged::Up,
            (Some(_), _, _, Speech::Silent, _) => {
                Judged::Silent("it came up, and is silent since".to_owned())
            }
            (Some(new), _, _, Speech::Lately, TurnTime::Over) if !self.is_fine(new) => {
                Judged::Bad(format!("it came up, and until its time was over {}", self.unwell(new)))
            }
            (Some(_), _, _, Speech::Lately, _) => Judged::Waits,
            // Of bytes that it did not fetch in this slot, a guest speaks of an earlier one.
            (None, Fetched::Yes(_), Returned::Yes, ..) => Judged::Bad(
                "nothing confirmed it in its time, and the guest put its previous one back".to_owned(),
            ),
            (None, Fetched::Yes(_), Returned::No, Speech::Silent, _) => {
                Judged::Silent("it was fetched, and since then nobody is heard in the guest".to_owned())
            }
            (None, _, _, _, TurnTime::Running) => Judged::Waits,
            (None, Fetched::Yes(_), Returned::No, Speech::Lately, TurnTime::Over)
                if previous_for < self.confirmed_after() =>
            {
                Judged::Waits
            }
            (None, _, _, _, TurnTime::Over) => Judged::NotTaken(match hello {
                Some(old) => format!(
                    "the guest goes on with controller {}, and did not exchange it: its journal (`journalctl -u guestd`) says why",
                    old.version
                ),
                None => "its controller was silent, and fetched nothing".to_owned(),
            }),
        }
    }

    fn unwell(&self, hello: &HelloRecord) -> String {
        if hello.health != Health::Well {
            return "said that it is not well".to_owned();
        }
        let worse = hello.reported.unwell.iter().filter(|stack| !self.unwell_before.contains(&stack.stack));
        let named: Vec<String> = worse.take(3).map(|one| format!("{} ({})", one.stack, one.why)).collect();
        format!("said that stacks are not well which were before: {}", named.join(", "))
    }
}

/// What the agent answers a guest that asks what becomes of the build that it runs on trial.
#[must_use]
pub fn trial_verdict(
    open: OpenTrial,
    outcome: Option<ControllerOutcome>,
    hello: Option<&HelloRecord>,
) -> TrialVerdict {
    match (open, outcome) {
        (OpenTrial::Yes, _) | (OpenTrial::No, Some(ControllerOutcome::Silent)) => TrialVerdict::Undecided,
        (OpenTrial::No, Some(ControllerOutcome::Bad)) => TrialVerdict::TakeBack,
        (OpenTrial::No, None) => match hello.map(|hello| hello.health) {
            Some(Health::Well) => TrialVerdict::Confirmed,
            Some(Health::Unwell | Health::Starting) | None => TrialVerdict::Undecided,
        },
    }
}

/// Whether the operation that tries the build is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenTrial {
    Yes,
    No,
}

impl Spec for UpdateController {
    fn facts(&self) -> Facts<'_> {
        Facts {
            guest: self.snapshot.target.guest(),
            holds: Holds::Guest,
            takes: Takes::Nothing,
            // One at a time on a host, and it stops no guest.
        }
    }

    fn subject(&self) -> Subject {
        Subject::Snapshot(self.snapshot.name.clone())
    }

    fn steps(&self) -> Vec<Step> {
        vec![Step::CheckRoom, Step::TakeSnapshot, Step::AwaitController]
    }

    fn effects(&self) -> Vec<Effect> {
        vec![
            Effect::Snapshot,
            Effect::ReplaceController { version: self.version.clone(), sha256: self.sha256.clone() },
        ]
    }

    fn applied(&self) -> Option<AppliedBy> {
        None
    }

    /// A rollback that an earlier agent began and that fails is a person's: what it would take back first is the snapshot,
    /// which is all there is to come back to.
    fn exhausted(&self, step: Step) -> Exhausted {
        if Self::is_rollback(step) { Exhausted::Park } else { step.facts().exhausted }
    }
}

#[cfg(test)]
mod tests {
    use jiff::{SignedDuration, Timestamp};

    use super::*;
    use crate::model::records::TakenBy;
    use holdfast_protocol::id::{GuestUid, Vmid};

    pub(super) fn update() -> UpdateController {
        let uid = GuestUid::new(uuid::Uuid::nil());
        let target = Target { uid, name: "web-1".parse().unwrap(), vmid: Vmid::try_from(300).unwrap() };
        let snapshot = Snapshot {
            target,
            name: "update-1".parse().unwrap(),
            taken_by: TakenBy::Agent,
            expires_at: None,
            due: None,
        };
        let (version, sha256) = ("0.2.0".to_owned().try_into().unwrap(), "ab".repeat(32).try_into().unwrap());
        UpdateController { snapshot, version, sha256, pace_s: 60, unwell_before: BTreeSet::new() }
    }

    fn hello(build: &str, health: Health) -> HelloRecord {
        HelloRecord {
            reported: Default::default(),
            version: "0.1.0".to_owned(),
            health,
            boot_id: "b".to_owned(),
            build: Some(build.repeat(32).try_into().unwrap()),
            at: Timestamp::UNIX_EPOCH,
        }
    }

    fn unwell(name: &str) -> UnwellStack {
        UnwellStack {
            stack: name.parse().unwrap(),
            state: holdfast_protocol::local::hello::UnwellState::Down,
            why: "exit 1".to_owned(),
            since: Timestamp::UNIX_EPOCH,
            restarts: 0,
        }
    }

    /// Every combination: only the new one, well for a while, is up; a build is bad by the guest's own word alone, and by no
    /// silence; and nothing waits for ever.
    #[test]
    fn a_build_is_judged_by_what_its_guest_says() {
        let said = [
            None,
            Some(hello("cd", Health::Well)),
            Some(hello("cd", Health::Unwell)),
            Some(hello("ab", Health::Unwell)),
            Some(hello("ab", Health::Well)),
        ];
        let fetches = [
            Fetched::No,
            Fetched::Yes(Timestamp::UNIX_EPOCH),
            Fetched::Yes(Timestamp::UNIX_EPOCH - SignedDuration::from_secs(1)),
        ];
        let mut cases = 0;
        for hello in &said {
            for fetched in fetches {
                for speech in [Speech::Lately, Speech::Silent] {
                    for turn in [TurnTime::Running, TurnTime::Over] {
                        for returned in [Returned::No, Returned::Yes] {
                            for seconds in [0, 29, 30].map(Duration::from_secs) {
                                // Either one speaks, or the other.
                                let is_new = hello.as_ref().is_some_and(|hello| update().is_new(hello));
                                let (fine_for, previous_for) = if is_new {
                                    (seconds, Duration::ZERO)
                                } else {
                                    (Duration::ZERO, seconds)
                                };
                                let hello = hello.as_ref();
                                let judged = update().judge(HelloState {
                                    hello,
                                    fine_for,
                                    previous_for,
                                    fetched,
                                    returned,
                                    speech,
                                    turn,
                                });
                                let new = hello.filter(|hello| hello.build == Some(update().sha256));
                                let case = format!(
                                    "{hello:?} {seconds:?} {fetched:?} {returned:?} {speech:?} {turn:?}: {judged:?}"
                                );
                                let over = turn == TurnTime::Over;
                                let is_well = new.is_some_and(|new| new.health == Health::Well);
                                assert_eq!(
                                    judged == Judged::Up,
                                    is_well && seconds.as_secs() == 30,
                                    "{case}"
                                );
                                let says = new.is_some() && !is_well && over && speech == Speech::Lately;
                                let has_it = matches!(fetched, Fetched::Yes(_));
                                let back = new.is_none() && has_it && returned == Returned::Yes;
                                assert_eq!(matches!(judged, Judged::Bad(_)), says || back, "{case}");
                                let silent = speech == Speech::Silent && !back && judged != Judged::Up;
                                let could = new.is_some() || has_it;
                                assert_eq!(matches!(judged, Judged::Silent(_)), silent && could, "{case}");
                                // What is fetched and not heard of for long is waited for until it counts as silent.
                                let unheard = has_it && seconds.as_secs() < 30;
                                let ends =
                                    (over && speech == Speech::Silent) || (over && new.is_none() && !unheard);
                                assert!(!(ends && judged == Judged::Waits), "{case}");
                                cases += 1;
                            }
                        }
                    }
                }
            }
        }
        assert_eq!(cases, 5 * 3 * 2 * 2 * 2 * 3);
    }

    #[test]
    fn stacks_that_were_well_before_must_be_well_again() {
        let mut update = update();
        update.unwell_before.insert("idle".parse().unwrap());
        let mut new = hello("ab", Health::Well);
        new.reported.unwell = vec![unwell("idle")];
        assert!(update.is_fine(&new));
        new.reported.unwell.push(unwell("shop"));
        assert!(!update.is_fine(&new));
        let heard = HelloState {
            hello: Some(&new),
            fine_for: Duration::ZERO,
            previous_for: Duration::ZERO,
            fetched: Fetched::Yes(Timestamp::UNIX_EPOCH),
            returned: Returned::No,
            speech: Speech::Lately,
            turn: TurnTime::Over,
        };
        let Judged::Bad(why) = update.judge(heard) else { panic!("{:?}", update.judge(heard)) };
        assert!(why.contains("shop (exit 1)") && !why.contains("idle"), "{why}");
    }

    /// Its timer puts the previous one back when the turn is over, and its hello is heard before it says why.
    #[test]
    fn a_guest_that_comes_back_has_time_to_say_that_it_took_the_build_back() {
        let old = hello("cd", Health::Well);
        let heard = |previous_for, returned| HelloState {
            hello: Some(&old),
            fine_for: Duration::ZERO,
            previous_for: Duration::from_secs(previous_for),
            fetched: Fetched::Yes(Timestamp::UNIX_EPOCH - SignedDuration::from_secs(1)),
            returned,
            speech: Speech::Lately,
            turn: TurnTime::Over,
        };
        let judged = |previous_for, returned| update().judge(heard(previous_for, returned));
        assert_eq!(judged(0, Returned::No), Judged::Waits);
        assert!(matches!(judged(0, Returned::Yes), Judged::Bad(_)));
        assert!(matches!(judged(60, Returned::No), Judged::NotTaken(_)), "its own guestd refused the build");
    }

    #[test]
    fn a_guest_hears_of_its_build_what_became_of_it() {
        let (well, unwell) = (hello("ab", Health::Well), hello("ab", Health::Unwell));
        let rows = [
            (OpenTrial::Yes, None, Some(&well), TrialVerdict::Undecided),
            (OpenTrial::Yes, Some(ControllerOutcome::Bad), Some(&well), TrialVerdict::Undecided),
            (OpenTrial::No, Some(ControllerOutcome::Bad), Some(&well), TrialVerdict::TakeBack),
            (OpenTrial::No, Some(ControllerOutcome::Silent), Some(&well), TrialVerdict::Undecided),
            (OpenTrial::No, None, Some(&well), TrialVerdict::Confirmed),
            (OpenTrial::No, None, Some(&unwell), TrialVerdict::Undecided),
            (OpenTrial::No, None, None, TrialVerdict::Undecided),
        ];
        for (open, outcome, hello, verdict) in rows {
            assert_eq!(trial_verdict(open, outcome, hello), verdict, "{open:?} {outcome:?} {hello:?}");
        }
    }

    /// The guest's own way back comes before a silence is one, and all of it has an end.
    #[test]
    fn a_silence_is_known_after_the_guest_could_have_come_back() {
        for pace_s in [60, 600] {
            let update = UpdateController { pace_s, ..update() };
            assert!(update.silent_after_s() > trial_s(pace_s) + 60);
            assert!(update.turn_s() >= 3 * u64::from(pace_s));
            assert!(update.turn_s() + update.silent_after_s() < Step::AwaitController.bound().seconds);
        }
    }

    /// An operation of an earlier agent is read as it was written.
    #[test]
    fn an_earlier_agents_operation_is_read() {
        let text = serde_json::to_string(&update()).unwrap();
        assert!(!text.contains("unwell_before"), "{text}");
        assert_eq!(serde_json::from_str::<UpdateController>(&text).unwrap(), update());
    }
}
