//! The pre-emption table of a guest's lane.
//!
//! What comes in: two kinds of work, whether the one that is there holds the lane or waits, and whether both are about
//! the same thing. What goes out: one [`Meeting`]. The pairs that do not simply wait are rows of a table; everything
//! else waits. [`page`] prints all of it; `docs/lanes.md` holds that print. Deliberately absent: counting (that is
//! [`super::admit`]).

use std::fmt::Write as _;

use holdfast_protocol::operation::OperationKind;

use super::Incoming;

/// Whether the work that is there already holds the lane or waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// It has the lane: its operation is open.
    Holds,
    /// It waits for the lane.
    Waits,
}

/// Whether both are about the same thing: the same snapshot, the same disk, the same guest as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Likeness {
    Same,
    /// They are not.
    Other,
}

/// What becomes of the incoming work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meeting {
    /// It begins before everything else, at once.
    First,
    /// It takes its place behind.
    Waits,
    /// It is the same request: it is answered with what is there.
    Joins,
    /// What is there ends, and it takes that place.
    Preempts,
    /// It is not taken.
    Refused(Why),
}

/// Why work is not taken into a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// A rollback behind a backup would come at a time that no caller chose, and lose what was written until then.
    BackupFirst,
    /// The guest is about to be destroyed.
    GuestGoes,
    /// A rollback waits for this very snapshot.
    RollBackNeedsIt,
    /// This very snapshot is about to be deleted.
    SnapshotGoes,
}

impl Why {
    /// Every reason.
    pub const ALL: &'static [Self] =
        &[Self::BackupFirst, Self::GuestGoes, Self::RollBackNeedsIt, Self::SnapshotGoes];

    /// For the guest that asked.
    #[must_use]
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::BackupFirst => {
                "a backup of this guest is under way or waits: ask for the rollback again when it has ended"
            }
            Self::GuestGoes => {
                "an operator ordered that this guest be destroyed: nothing new is taken up for it"
            }
            Self::RollBackNeedsIt => {
                "a rollback to this snapshot is under way or waits: cancel it first, or wait until it has ended"
            }
            Self::SnapshotGoes => {
                "this snapshot is about to be deleted: cancel that first, or choose another"
            }
        }
    }

    const fn short(self) -> &'static str {
        match self {
            Self::BackupFirst => "backup first",
            Self::GuestGoes => "guest goes",
            Self::RollBackNeedsIt => "rollback needs it",
            Self::SnapshotGoes => "snapshot goes",
        }
    }
}

/// What becomes of work that comes, where that is not to wait.
struct Rule {
    comes: OperationKind,
    there: OperationKind,
    meeting: Special,
}

/// Other than waiting.
#[derive(Clone, Copy)]
enum Special {
    /// It ends what is there, if that waits.
    PreemptsWaiting,
    /// It is not taken.
    Refused(Why),
    /// It is not taken when both are about the same thing.
    RefusedForSame(Why),
}

const fn rule(comes: OperationKind, there: OperationKind, meeting: Special) -> Rule {
    Rule { comes, there, meeting }
}

/// All pairs that do not wait for each other, but for those of [`meet`] itself.
const RULES: [Rule; 7] = [
    rule(OperationKind::Stop, OperationKind::Snapshot, Special::PreemptsWaiting),
    rule(OperationKind::Stop, OperationKind::Start, Special::PreemptsWaiting),
    rule(OperationKind::Start, OperationKind::Stop, Special::PreemptsWaiting),
    rule(OperationKind::RollBack, OperationKind::Backup, Special::Refused(Why::BackupFirst)),
    rule(OperationKind::RollBack, OperationKind::QuiescedBackup, Special::Refused(Why::BackupFirst)),
    rule(OperationKind::RollBack, OperationKind::ExpireSnapshot, Special::RefusedForSame(Why::SnapshotGoes)),
    rule(
        OperationKind::ExpireSnapshot,
        OperationKind::RollBack,
        Special::RefusedForSame(Why::RollBackNeedsIt),
    ),
];

#[must_use]
pub fn meet(incoming: Incoming, there: OperationKind, at: At, likeness: Likeness) -> Meeting {
    let work = match incoming {
        Incoming::Release | Incoming::Cancel => return Meeting::First,
        Incoming::Work(work) => work,
    };
    if work == there && likeness == Likeness::Same {
        return Meeting::Joins;
    }
    if there == OperationKind::Destroy {
        return Meeting::Refused(Why::GuestGoes);
    }
    if work == OperationKind::Destroy {
        return queued(at, Meeting::Preempts);
    }
    let special = RULES.iter().find(|rule| rule.comes == work && rule.there == there);
    match special.map(|rule| rule.meeting) {
        Some(Special::PreemptsWaiting) => queued(at, Meeting::Preempts),
        Some(Special::Refused(why)) => Meeting::Refused(why),
        Some(Special::RefusedForSame(why)) => same(likeness, why),
        None => Meeting::Waits,
    }
}

/// Only what waits is touched; what is under way is never cut off.
const fn queued(at: At, meeting: Meeting) -> Meeting {
    match at {
        At::Waits => meeting,
        At::Holds => Meeting::Waits,
    }
}

const fn same(likeness: Likeness, why: Why) -> Meeting {
    match likeness {
        Likeness::Same => Meeting::Refused(why),
        Likeness::Other => Meeting::Waits,
    }
}

/// The whole table as it is in `docs/lanes.md`: one row for what comes, one column for what is there.
#[must_use]
pub fn page() -> String {
    let mut text = "| comes \\ is there |".to_owned();
    for there in OperationKind::ALL {
        // Writing into a String cannot fail.
        let _infallible = write!(text, " {} |", there.as_str());
    }
    text.push_str("\n| --- |");
    text.push_str(&" --- |".repeat(OperationKind::ALL.len()));
    text.push('\n');
    for incoming in Incoming::all() {
        let _infallible = write!(text, "| {} |", incoming.name());
        for there in OperationKind::ALL {
            let _infallible = write!(text, " {} |", cell(incoming, *there));
        }
        text.push('\n');
    }
    text
}

/// One cell: the plain case first, then where it differs.
fn cell(incoming: Incoming, there: OperationKind) -> String {
    let plain = meet(incoming, there, At::Holds, Likeness::Other);
    let mut text = word(plain);
    let queued = meet(incoming, there, At::Waits, Likeness::Other);
    if queued != plain {
        let _infallible = write!(text, ", queued: {}", word(queued));
    }
    let alike = meet(incoming, there, At::Holds, Likeness::Same);
    if alike != plain {
        let _infallible = write!(text, ", same: {}", word(alike));
    }
    text
}

fn word(meeting: Meeting) -> String {
    match meeting {
        Meeting::First => "first".to_owned(),
        Meeting::Waits => "waits".to_owned(),
        Meeting::Joins => "joins".to_owned(),
        Meeting::Preempts => "pre-empts".to_owned(),
        Meeting::Refused(why) => format!("refused ({})", why.short()),
    }
}
