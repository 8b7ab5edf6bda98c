//! Conditions that began, ended, or are more or less urgent.

use std::collections::BTreeMap;

use holdfast_protocol::condition::{ConditionCode, Subject};
use holdfast_protocol::state::StateCondition;

use crate::change::{Area, Change, Direction};
use crate::flat::{word, written};

type ByIdentity<'a> = BTreeMap<(ConditionCode, &'a Subject), &'a StateCondition>;

fn by_identity(conditions: &[StateCondition]) -> ByIdentity<'_> {
    conditions.iter().map(|one| ((one.code, &one.subject), one)).collect()
}

fn name(condition: &StateCondition) -> String {
    format!("{} on {}", written(&condition.code), condition.subject)
}

fn says(condition: &StateCondition) -> String {
    let message = condition.observed.message.as_str();
    word(&format!("{}, {message}", written(&condition.severity)))
}

/// Compares what is wrong.
pub(crate) fn conditions(before: &[StateCondition], after: &[StateCondition]) -> Vec<Change> {
    let (mut old, new) = (by_identity(before), by_identity(after));
    let mut found = Vec::new();
    for (identity, condition) in new {
        match old.remove(&identity) {
            None => found.push(Change::began(Area::Condition, name(condition), says(condition))),
            Some(earlier) => found.extend(severity(earlier, condition)),
        }
    }
    found.extend(old.into_values().map(|gone| Change::ended(Area::Condition, name(gone), says(gone))));
    found
}

fn severity(before: &StateCondition, after: &StateCondition) -> Option<Change> {
    let direction = if after.severity > before.severity { Direction::Worse } else { Direction::Better };
    let words = |one: &StateCondition| Some(written(&one.severity));
    let what = format!("severity of {}", name(after));
    Change::of((direction, Area::Condition), what, words(before), words(after))
}
