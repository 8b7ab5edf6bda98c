//! Invariants after every case, checked from the world.
//!
//! In: [`Evidence`]. Out: violations, each with the invariant's name and what was seen. A new invariant is a function and a
//! line in [`ALL`].

pub(crate) mod apart;
mod journal;
mod loss;
mod whole;
mod window;

use std::collections::BTreeMap;

use agentd::operation::log::Status;

use crate::db_reader::Book;
use crate::log::{Effect, TaskSpan};
use crate::scene::{Comparable, Scene};
use crate::transport::WITHOUT_END;
use crate::window_memory::Stood;

/// How strictly the end is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// The same end as the undisturbed story's.
    TheSameEnd,
    /// The same, or taken back whole: so much time passed that a bootstrap token expired.
    TheSameOrNothing,
    /// Any allowed end: something failed for good.
    AnyLawfulEnd,
}

/// The course of the story without a disturbance.
#[derive(Clone, Debug)]
pub struct Reference {
    /// The scene at the end.
    pub after: Comparable,
    /// Tasks that took effect, by kind and guest.
    pub done: BTreeMap<(String, String), usize>,
    /// How many operations there were.
    pub operations: usize,
}

/// Everything a case left behind.
pub struct Evidence<'a> {
    /// How the story ends, killed or not.
    pub should_end: Status,
    /// The holdings of a customer that it is allowed to remove.
    pub may_take: fn(&str) -> bool,
    /// Volumes of a customer that it may rename: each is there afterwards, under whatever name.
    pub may_rename: fn(&str) -> bool,
    /// The number of the foreign guest that it is allowed to label as ours.
    pub takes_over: Option<u32>,
    /// Two that must never run at the same time.
    pub never_both: Option<[u32; 2]>,
    /// How many operations there must be, where that is the point of the story.
    pub wanted_operations: Option<usize>,
    /// The undisturbed course; none while it is determined.
    pub reference: Option<&'a Reference>,
    /// How strictly the end is checked.
    pub wanted: Condition,
    /// The scene before.
    pub before: &'a Scene,
    /// The scene now.
    pub after: &'a Scene,
    /// What was written before.
    pub book_before: &'a Book,
    /// The contents of the agent's database now.
    pub book: &'a Book,
    /// How its operations ended; none when one has not.
    pub end: Option<Status>,
    /// How many operations there were.
    pub operations: usize,
    /// When programs were stopped for windows.
    pub stood: &'a [Stood],
    /// The label of the story's backup, where that is part of it.
    pub label: Option<&'static str>,
    /// Requests that could change something.
    pub effects: &'a [Effect],
    /// Tasks with how each ended.
    pub tasks: &'a [(TaskSpan, String)],
    /// When the world began, in microseconds since 1970.
    pub began_micros: i64,
    /// Forbidden requests that were sent, from the simulator's guard.
    pub offences: &'a [String],
    /// Violations that were seen during the story.
    pub on_the_way: &'a [Violation],
}

/// Something that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub name: &'static str,
    /// The observation.
    pub what: String,
}

impl Violation {
    /// A story that broke off. An agent that sends requests without end has not settled; everything else is a fault of
    /// the harness.
    #[must_use]
    pub fn of_panic(panic: &(dyn std::any::Any + Send)) -> Self {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or_default();
        let name = if text.starts_with(WITHOUT_END) { "I12" } else { "harness" };
        Self { name, what: format!("it broke: {text}") }
    }
}

/// The end of a task that is in no index.
pub const GONE: &str = "?";

/// The findings of an invariant.
pub type Violations = Vec<String>;

/// One of them.
pub type Invariant = fn(&Evidence<'_>) -> Violations;

/// All of them, by name.
pub const ALL: &[(&str, Invariant)] = &[
    ("I1", loss::nothing_of_a_customer_is_gone),
    ("I2", whole::each_effect_at_most_once),
    ("I2", whole::each_goal_is_one_operation),
    ("I3", whole::nothing_half_built),
    ("I4", window::nothing_stands_past_its_bound),
    ("I4", window::nothing_waits_standing_still),
    ("label", window::nothing_is_captured_late),
    ("label", window::labels_are_honest),
    ("label", window::labels_are_as_earned),
    ("I6", |evidence| one_task_at_a_time(evidence.tasks)),
    ("I8", whole::a_refusal_changes_nothing),
    ("I11", journal::counters_never_fall),
    ("I12", journal::it_settled),
    ("I12", journal::no_step_is_tried_for_ever),
    ("I14", journal::written_before_done),
    ("I15", loss::what_is_not_ours_is_untouched),
    ("apart", apart::no_address_twice),
    ("apart", apart::never_both_at_once),
    ("wire", |evidence| evidence.offences.to_vec()),
];

/// Holds the evidence to all invariants. What can only be seen on the way (I7, and that a case ran at all) is part of it.
#[must_use]
pub fn judge(evidence: &Evidence<'_>) -> Vec<Violation> {
    let mut all = evidence.on_the_way.to_vec();
    for (name, look) in ALL {
        all.extend(look(evidence).into_iter().map(|what| Violation { name, what }));
    }
    all
}

/// Tasks of ours that took effect, by kind and guest: all but those that failed. In the matrix no worker dies before
/// its work is done, so a task with an unknown end has done it as well.
#[must_use]
pub fn done(tasks: &[(TaskSpan, String)]) -> BTreeMap<(String, String), usize> {
    let mut counts = BTreeMap::new();
    for (task, status) in tasks {
        let unknown = matches!(status.as_str(), "unexpected status" | GONE);
        if task.is_ours() && (status == "OK" || status.starts_with("WARNINGS") || unknown) {
            *counts.entry((task.kind.clone(), task.id.clone())).or_default() += 1;
        }
    }
    counts
}

/// I6: no two tasks of ours on one guest at the same time.
pub(crate) fn one_task_at_a_time(tasks: &[(TaskSpan, String)]) -> Vec<String> {
    let ours: Vec<_> = tasks.iter().map(|(task, _)| task).filter(|task| task.is_ours()).collect();
    let mut found = Vec::new();
    for (nth, one) in ours.iter().enumerate() {
        for other in ours.iter().skip(nth + 1) {
            let apart =
                one.to.is_some_and(|to| to <= other.from) || other.to.is_some_and(|to| to <= one.from);
            let shared = one.guests().find(|vmid| other.guests().any(|other| other == *vmid));
            if let (false, Some(vmid)) = (apart, shared) {
                found.push(format!("{} and {} ran on {vmid} at the same time", one.kind, other.kind));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// A task of ours from one second to another.
    fn task(kind: &str, id: &str, from: u64, to: u64) -> (TaskSpan, String) {
        let upid = format!("UPID:pve1:00000CEA:000654F7:6B0117B2:{kind}:{id}:hf@pve!operate:");
        let mut span = TaskSpan::new(&upid, Duration::from_secs(from));
        span.to = Some(Duration::from_secs(to));
        assert!(span.is_ours());
        (span, "OK".to_owned())
    }

    #[test]
    fn a_task_on_two_guests_is_alone_on_both() {
        let hand = task("move_volume", "215-mp0>214-mp0", 10, 20);
        for (id, from, wrong) in [("215", 15, 1), ("214", 19, 1), ("214", 20, 0), ("216", 15, 0)] {
            let found = one_task_at_a_time(&[hand.clone(), task("vzstart", id, from, 30)]);
            assert_eq!(found.len(), wrong, "{id} from {from}: {found:?}");
        }
    }
}
