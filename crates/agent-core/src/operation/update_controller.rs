//! *update_controller*: another build of the guest agent, behind a snapshot.
//!
//! What may follow is linear: a snapshot; the guest's slot, in which the controller fetches the bytes and puts them in
//! its own place; the hello of the new one. When that does not come, the same operation rolls the guest back. So
//! nothing else comes between, and no more is lost than was written in the guest's slot. What is not needed is reported
//! as such and skipped. A guest is rolled back only on its own report: the new controller spoke, and says that it is
//! not well. Silence has many causes (a stopped guest, a full disk, a network that others fill), and no process of a
//! container is seen from outside. So a guest that fell silent stays as it is, for a person. What was heard is judged
//! here, purely; deliberately absent: waiting for it.

use holdfast_protocol::job::act::ReleaseVersion;
use holdfast_protocol::report::Health;
use serde::{Deserialize, Serialize};

use super::applied::AppliedBy;
use super::spec::{Facts, Holds, Spec, Subject, Takes, Target};
use super::step::{Exhausted, Step};
use super::{BulkRule, RollBack, Snapshot};
use crate::gate::{self, Effect};
use crate::model::policy::Sha256Hex;
use crate::model::records::HelloRecord;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UpdateController {
    /// The guest, and the state that it can come back to.
    pub snapshot: Snapshot,
    /// The version, as an operator signed it.
    pub version: ReleaseVersion,
    /// What the new program hashes to.
    pub sha256: Sha256Hex,
    /// How often this guest's controller says hello, in seconds.
    pub pace_s: u32,
}

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Came {
    /// The new controller said hello and is well.
    Up,
    /// The new controller said, to the end of the guest's slot, that it is not well: the guest is rolled back.
    Bad,
    /// The guest had the bytes, and no controller was heard in it since. It stays as it is, and a person looks.
    Silent,
}

/// What is known while the operation waits.
#[derive(Clone, Copy, Debug)]
pub struct HelloState<'a> {
    /// The last hello, where one was said in the guest's slot.
    pub hello: Option<&'a HelloRecord>,
    /// Whether the guest began to fetch the bytes.
    pub fetched: Fetched,
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
    /// Not for longer than a controller pauses.
    Silent,
}

/// How far the guest's slot is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnTime {
    Running,
    Over,
}

/// Whether a guest began to fetch the bytes that it was offered. Before that it cannot have exchanged anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fetched {
    Yes,
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
    /// The guest must go back, and why.
    Bad(String),
    /// No controller is heard, and a person must look.
    Silent(String),
    /// The guest stayed as it was, and why.
    NotTaken(String),
}

impl UpdateController {
    /// Whether a step is one of the way back, which is skipped unless the guest must go back.
    #[must_use]
    pub fn is_way_back(step: Step) -> bool {
        RollBack::steps().contains(&step)
    }

    #[must_use]
    pub const fn target(&self) -> &Target {
        &self.snapshot.target
    }

    /// The way back, to what this very operation took.
    #[must_use]
    pub fn back(&self, by: holdfast_protocol::id::OperationId) -> RollBack {
        let (target, snapshot) = (self.snapshot.target.clone(), self.snapshot.name.clone());
        RollBack { target, snapshot, made_by: by, bulk: BulkRule::NoneThere }
    }

    /// How long after its last message the controller counts as silent: two hellos, and two minutes for a slow disk.
    #[must_use]
    pub const fn silent_after_s(&self) -> u64 {
        2 * self.pace_s as u64 + 120
    }

    /// The guest's slot: the guest hears of it with its next hello. A second and a third hello allow for a guest that
    /// was busy.
    #[must_use]
    pub const fn turn_s(&self) -> u64 {
        3 * self.pace_s as u64 + 300
    }

    /// Judges what was heard in the guest's slot.
    #[must_use]
    pub fn judge(&self, heard: HelloState<'_>) -> Judged {
        let HelloState { hello, fetched, speech, turn } = heard;
        let new = hello.filter(|hello| hello.build.as_ref() == Some(&self.sha256));
        match (new, fetched, speech, turn) {
            (Some(new), ..) if new.health == Health::Well => Judged::Up,
            (Some(_), _, Speech::Lately, TurnTime::Over) => {
                Judged::Bad("it came up, and said until its time was over that it is not well".to_owned())
            }
            (Some(_), _, Speech::Silent, TurnTime::Over) => {
                Judged::Silent("it came up, said that it is not well, and is silent since".to_owned())
            }
            (Some(_), _, _, TurnTime::Running) => Judged::Waits,
            (None, Fetched::Yes, Speech::Silent, _) => {
                Judged::Silent("it was fetched, and since then nobody is heard in the guest".to_owned())
            }
            (None, _, _, TurnTime::Running) => Judged::Waits,
            (None, Fetched::Yes, Speech::Lately, TurnTime::Over) if hello.is_none() => {
                Judged::Silent("it was fetched, and nobody was heard in the guest's turn".to_owned())
            }
            (None, _, _, TurnTime::Over) => Judged::NotTaken(match hello {
                Some(old) => format!(
                    "the guest goes on with controller {}, and did not exchange it: its journal (`journalctl -u guestd`) says why",
                    old.version
                ),
                None => "its controller was silent, and fetched nothing".to_owned(),
            }),
        }
    }
}

impl Spec for UpdateController {
    fn facts(&self) -> Facts<'_> {
        Facts {
            guest: self.snapshot.target.guest(),
            holds: Holds::Guest,
            takes: Takes::Nothing,
            // One at a time on a host, and it stops its guest only to mend what it did itself.
        }
    }

    fn subject(&self) -> Subject {
        Subject::Snapshot(self.snapshot.name.clone())
    }

    fn steps(&self) -> Vec<Step> {
        let turn = vec![Step::CheckRoom, Step::TakeSnapshot, Step::AwaitController];
        turn.into_iter().chain(RollBack::steps()).collect()
    }

    fn effects(&self) -> Vec<Effect> {
        vec![
            Effect::Snapshot,
            Effect::ReplaceController { version: self.version.clone(), sha256: self.sha256.clone() },
            Effect::RollBack(gate::RollBack::FailedUpdate),
            Effect::Protect,
        ]
    }

    fn applied(&self) -> Option<AppliedBy> {
        None
    }

    /// A way back that fails is a person's: what it would take back first is the snapshot, which is all there is to come back to.
    fn exhausted(&self, step: Step) -> Exhausted {
        if Self::is_way_back(step) { Exhausted::Park } else { step.facts().exhausted }
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::model::records::TakenBy;
    use holdfast_protocol::id::{GuestUid, Vmid};

    fn update() -> UpdateController {
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
        UpdateController { snapshot, version, sha256, pace_s: 60 }
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

    /// Every combination: only the new one, well, is up; only the new one's own report sends a guest back, and no
    /// silence.
    #[test]
    fn a_guest_goes_back_only_for_its_own_word() {
        let said = [
            None,
            Some(hello("cd", Health::Well)),
            Some(hello("cd", Health::Unwell)),
            Some(hello("ab", Health::Unwell)),
            Some(hello("ab", Health::Well)),
        ];
        for hello in &said {
            for fetched in [Fetched::No, Fetched::Yes] {
                for speech in [Speech::Lately, Speech::Silent] {
                    for turn in [TurnTime::Running, TurnTime::Over] {
                        let judged =
                            update().judge(HelloState { hello: hello.as_ref(), fetched, speech, turn });
                        let new = hello.as_ref().filter(|hello| hello.build == Some(update().sha256));
                        let case = format!("{hello:?} {fetched:?} {speech:?} {turn:?}: {judged:?}");
                        let over = turn == TurnTime::Over;
                        let is_well = new.is_some_and(|new| new.health == Health::Well);
                        assert_eq!(judged == Judged::Up, is_well, "{case}");
                        let says_it_is_not = new.is_some() && !is_well && over && speech == Speech::Lately;
                        assert_eq!(matches!(judged, Judged::Bad(_)), says_it_is_not, "{case}");
                        if new.is_none() && fetched == Fetched::No {
                            assert_eq!(matches!(judged, Judged::NotTaken(_)), over, "{case}");
                        }
                        if new.is_none() && fetched == Fetched::Yes && speech == Speech::Silent {
                            assert!(matches!(judged, Judged::Silent(_)), "{case}");
                        }
                        // Nothing waits beyond the end.
                        assert!(!(over && judged == Judged::Waits), "{case}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_silence_is_known_before_the_turn_is_over() {
        for pace_s in [60, 600] {
            let update = UpdateController { pace_s, ..update() };
            assert!(update.silent_after_s() > 2 * u64::from(pace_s));
            assert!(
                update.silent_after_s() < update.turn_s()
                    && update.turn_s() <= Step::AwaitController.bound().seconds
            );
        }
    }
}
