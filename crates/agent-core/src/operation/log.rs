//! The rules of the journal: `next(status, event)`.
//!
//! ```text
//! Queued ─Begun▶ Before(0) ─Intended▶ During(0) ─Succeeded▶ Before(1) … ─Succeeded▶ AllDone ─Finished▶ Done
//!                    ▲                  │ ▲ Posted
//!                    └──Failed{again}───┘ └┘
//!                                       └──Failed{no more}▶ Broken(i) ─UndoBegun▶ UndoBefore(i)
//! UndoBefore(i) ─UndoIntended▶ UndoDuring(i) ─UndoSucceeded▶ UndoBefore(i-1) … ▶ AllUndone ─TakenBack▶ Undone
//! any but an end ─Parked▶ Parked ─Reopened▶ where it stood
//!                            └─Forgotten▶ Forgotten
//! ```

use std::collections::BTreeSet;

use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::id::{KeyFingerprint, Vmid};
use holdfast_protocol::local::restore_test::TestVerdict;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::swap_guest::identity::GuestIdentities;
use super::update_controller::Came;
use crate::model::boot::BootMoment;
use crate::model::disks::Disks;
use crate::model::hardware::HardwareAddress;
use crate::model::records::{HeldMounts, VolumeId};

/// How far an operation has come. Steps are named by their place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// In its lane.
    Queued,
    /// Step not begun.
    Before(u16),
    /// Step's intent is on disk; its effect may have happened.
    During(u16),
    /// Step failed for good.
    Broken(u16),
    /// Every step happened.
    AllDone,
    /// Step is the next to be taken back.
    UndoBefore(u16),
    /// Undo of the step was begun.
    UndoDuring(u16),
    /// Every step was taken back.
    AllUndone,
    /// The end: as wanted.
    Done,
    /// The end: nothing of it is left.
    Undone,
    /// The end: left for a person, who may reopen or forget it.
    Parked,
    /// The end: a person ended it; what is left of it is theirs.
    Forgotten,
}

/// One thing that happened to an operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// It leaves the queue.
    Begun,
    /// A step is about to be tried. On disk before the effect.
    Intended { step: u16 },
    /// Proxmox gave a task for it, or the task of a lost reply was found.
    Posted { step: u16, upid: String },
    /// The world was read, and the step has happened.
    Succeeded {
        step: u16,
        /// What was learnt.
        facts: Vec<Finding>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    /// A try failed, and the world was read: the step has not happened.
    Failed {
        step: u16,
        problem: ErrorBody,
        /// Whether another try follows.
        then: AfterFailure,
    },
    /// What this operation made is taken back.
    UndoBegun { problem: ErrorBody },
    /// A step is about to be taken back. On disk before the effect.
    UndoIntended { step: u16 },
    /// The world was read, and nothing of the step is left.
    UndoSucceeded {
        step: u16,
        /// What was learnt while it was taken back.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        facts: Vec<Finding>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    /// Stopped on purpose, left untouched.
    Parked {
        problem: ErrorBody,
        /// What a person should run or look at.
        remedy: String,
    },
    /// A person has it tried again, from where it was. Its probes decide what is left to do, so nothing is done twice.
    Reopened {
        /// Its status when it was parked.
        at: Status,
        by: String,
    },
    /// A person ended it. What is left of it stays as it is.
    Forgotten {
        /// Why, in that person's words.
        reason: String,
        by: String,
    },
    /// All is as wanted.
    Finished,
    /// Nothing of it is left.
    TakenBack,
}

/// What follows a failed try.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AfterFailure {
    Again,
    GiveUp,
}

/// What a step learnt of the world. Later steps and the undo go by these, and by nothing else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finding {
    /// The number that was chosen and reserved.
    Vmid(Vmid),
    /// The restore that made the guest.
    RestoredBy(String),
    /// A volume that this operation made.
    Volume(VolumeId),
    /// The backup that was taken and found, as journals before *backup* have it.
    Backup(VolumeId),
    /// The backup that was taken and found.
    BackupFound {
        archive: VolumeId,
        bytes: u64,
        /// When, by Proxmox's clock.
        at: Timestamp,
        /// The key it is encrypted with, where its storage names one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sealed: Option<KeyFingerprint>,
        /// Which of its guest's mounts it holds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mounts: Option<HeldMounts>,
        /// The hardware address of its guest's first network.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hardware: Option<HardwareAddress>,
        /// The disks of its guest.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        disks: Option<Box<Disks>>,
    },
    /// The quiesce window was granted, at this moment on the clock that runs through suspend.
    WindowGranted(BootMoment),
    /// The backup is not listed any more.
    BackupGone,
    /// The snapshot that was taken and found.
    SnapshotTaken {
        /// When, by Proxmox's clock.
        at: Timestamp,
    },
    /// The snapshot is not there any more, or not ours any more.
    SnapshotGone,
    /// Whether the guest ran when the operation came to it.
    Found(PowerFound),
    /// The tags and the description that a guest had when the operation came to it.
    FoundMarked { tags: BTreeSet<String>, description: String },
    /// What a guest and its copy were known by when the operation came to them.
    FoundIdentities(Box<GuestIdentities>),
    /// The guest has a token, of this count, when the operation came to it.
    FoundToken { generation: u32 },
    /// A volume of the guest is with the container that takes its place, under this name.
    Moved { was: VolumeId, volume: VolumeId },
    /// A volume is back with the guest, under this name.
    MovedBack { was: VolumeId, volume: VolumeId },
    /// The copy runs in its guest's place, and was heard.
    TookPlace,
    /// What a backup that was tried showed.
    Tested {
        /// In one word.
        verdict: TestVerdict,
        /// Why, in words.
        why: String,
    },
    /// What became of a guest's slot to exchange its controller.
    Controller {
        /// In one word.
        came: Came,
        /// Why, in words.
        why: String,
    },
    /// The step did not do all it should, which does not undo the guest.
    Condition(ErrorBody),
}

/// How a guest was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PowerFound {
    Running,
    /// It was stopped.
    Stopped,
}

/// One line of the journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Its number in the operation, from 1, without gaps.
    pub number: u32,
    /// When it was written.
    pub at: Timestamp,
    pub event: Event,
}

/// An event that may not follow.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "event {event} may not follow status {status:?}: the journal was changed by hand, or this is a fault of agentd"
)]
pub struct IllegalEvent {
    /// How far the operation had come.
    pub status: Status,
    /// The event's name.
    pub event: &'static str,
}

impl Status {
    /// Whether nothing more may happen.
    #[must_use]
    pub const fn is_end(self) -> bool {
        matches!(self, Self::Done | Self::Undone | Self::Parked | Self::Forgotten)
    }

    /// Whether an operation of so many steps can be at this place.
    const fn within(self, steps: u16) -> bool {
        match self {
            Self::Before(at)
            | Self::During(at)
            | Self::Broken(at)
            | Self::UndoBefore(at)
            | Self::UndoDuring(at) => at < steps,
            Self::Queued
            | Self::AllDone
            | Self::AllUndone
            | Self::Done
            | Self::Undone
            | Self::Parked
            | Self::Forgotten => true,
        }
    }
}

impl Event {
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Begun => "begun",
            Self::Intended { .. } => "intended",
            Self::Posted { .. } => "posted",
            Self::Succeeded { .. } => "succeeded",
            Self::Failed { .. } => "failed",
            Self::UndoBegun { .. } => "undo_begun",
            Self::UndoIntended { .. } => "undo_intended",
            Self::UndoSucceeded { .. } => "undo_succeeded",
            Self::Parked { .. } => "parked",
            Self::Reopened { .. } => "reopened",
            Self::Forgotten { .. } => "forgotten",
            Self::Finished => "finished",
            Self::TakenBack => "taken_back",
        }
    }
}

/// What follows, for an operation of so many steps.
///
/// # Errors
/// When the event may not happen there.
pub fn next(status: Status, event: &Event, steps: u16) -> Result<Status, IllegalEvent> {
    use Status as S;
    let after = |step: u16| if step + 1 < steps { S::Before(step + 1) } else { S::AllDone };
    let before = |step: u16| step.checked_sub(1).map_or(S::AllUndone, S::UndoBefore);
    match (status, event) {
        (S::Queued, Event::Begun) if steps > 0 => Ok(S::Before(0)),
        (S::Before(at), Event::Intended { step }) if at == *step => Ok(S::During(at)),
        (S::During(at), Event::Posted { step, .. }) if at == *step => Ok(status),
        (S::During(at), Event::Succeeded { step, .. }) if at == *step => Ok(after(at)),
        (S::During(at), Event::Failed { step, then: AfterFailure::Again, .. }) if at == *step => {
            Ok(S::Before(at))
        }
        (S::During(at), Event::Failed { step, then: AfterFailure::GiveUp, .. }) if at == *step => {
            Ok(S::Broken(at))
        }
        (S::Broken(at), Event::UndoBegun { .. }) => Ok(S::UndoBefore(at)),
        (S::UndoBefore(at), Event::UndoIntended { step }) if at == *step => Ok(S::UndoDuring(at)),
        (S::UndoDuring(at), Event::Posted { step, .. }) if at == *step => Ok(status),
        (S::UndoDuring(at), Event::UndoSucceeded { step, .. }) if at == *step => Ok(before(at)),
        (S::AllDone, Event::Finished) => Ok(S::Done),
        (S::AllUndone, Event::TakenBack) => Ok(S::Undone),
        (from, Event::Parked { .. }) if !from.is_end() => Ok(S::Parked),
        (S::Parked, Event::Reopened { at, .. }) if !at.is_end() && at.within(steps) => Ok(*at),
        (S::Parked, Event::Forgotten { .. }) => Ok(S::Forgotten),
        _ => Err(IllegalEvent { status, event: event.name() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_protocol::code::ErrorCode;

    fn problem() -> ErrorBody {
        ErrorBody::new(ErrorCode::Internal, "why")
    }

    fn all_events(step: u16) -> Vec<Event> {
        vec![
            Event::Begun,
            Event::Intended { step },
            Event::Posted { step, upid: "UPID:".to_owned() },
            Event::Succeeded { step, facts: Vec::new(), note: None },
            Event::Failed { step, problem: problem(), then: AfterFailure::Again },
            Event::Failed { step, problem: problem(), then: AfterFailure::GiveUp },
            Event::UndoBegun { problem: problem() },
            Event::UndoIntended { step },
            Event::UndoSucceeded { step, facts: Vec::new(), note: None },
            Event::Parked { problem: problem(), remedy: "look".to_owned() },
            Event::Reopened { at: Status::During(step), by: "root".to_owned() },
            Event::Forgotten { reason: "gone".to_owned(), by: "root".to_owned() },
            Event::Finished,
            Event::TakenBack,
        ]
    }

    fn all_statuses() -> Vec<Status> {
        use Status as S;
        let mut all = vec![S::Queued, S::AllDone, S::AllUndone, S::Done, S::Undone, S::Parked, S::Forgotten];
        for step in 0..2 {
            all.extend([
                S::Before(step),
                S::During(step),
                S::Broken(step),
                S::UndoBefore(step),
                S::UndoDuring(step),
            ]);
        }
        all
    }

    /// The whole table for an operation of two steps. A change of the rules shows here.
    #[test]
    fn the_table() {
        let mut text = String::new();
        for status in all_statuses() {
            for step in 0..2 {
                for event in all_events(step) {
                    if let Ok(to) = next(status, &event, 2) {
                        let name = match &event {
                            Event::Failed { then, .. } => format!("failed/{then:?}"),
                            other => other.name().to_owned(),
                        };
                        text.push_str(&format!("{status:?} + {name}({step}) -> {to:?}\n"));
                    }
                }
            }
        }
        insta::assert_snapshot!(text);
    }

    #[test]
    fn nothing_follows_an_end() {
        for status in [Status::Done, Status::Undone, Status::Forgotten] {
            for event in all_events(0) {
                assert!(next(status, &event, 2).is_err(), "{status:?} {}", event.name());
            }
        }
    }

    #[test]
    fn what_is_parked_goes_on_only_where_it_could_have_stood() {
        let reopened = |at| next(Status::Parked, &Event::Reopened { at, by: "root".to_owned() }, 2);
        assert_eq!(reopened(Status::UndoDuring(1)), Ok(Status::UndoDuring(1)));
        for at in [Status::Done, Status::Undone, Status::Parked, Status::Forgotten, Status::During(2)] {
            assert!(reopened(at).is_err(), "{at:?}");
        }
    }

    #[test]
    fn events_read_back_and_are_closed() {
        for event in all_events(1) {
            let text = serde_json::to_string(&event).unwrap();
            assert_eq!(serde_json::from_str::<Event>(&text).unwrap(), event, "{text}");
        }
        assert!(serde_json::from_str::<Event>(r#"{"exploded":{"step":1}}"#).is_err());
    }
}
