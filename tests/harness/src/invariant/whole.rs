//! Invariants I2, I3, I6 and I8: once, whole, exclusive, refused.

use agentd::operation::log::Status;

use super::{Condition, Evidence, Violations, done};

/// I2: no effect twice: never more tasks of one kind on one guest than the undisturbed story has.
pub(super) fn each_effect_at_most_once(evidence: &Evidence<'_>) -> Violations {
    let Some(reference) = evidence.reference else { return Violations::new() };
    let now = done(evidence.tasks);
    let mut found = Violations::new();
    for ((kind, id), count) in &now {
        let wanted = reference.done.get(&(kind.clone(), id.clone())).copied().unwrap_or_default();
        // Taking back has tasks that a story without a failure does not have, each at most once.
        let back = evidence.wanted != Condition::TheSameEnd
            && match kind.as_str() {
                "vzstop" | "vzdestroy" => true,
                // What ran before runs again.
                "vzstart" => id.parse().is_ok_and(|number| evidence.before.running.contains(&number)),
                // A volume that moved goes back the way that it came.
                "move_volume" => id.split_once('>').is_some_and(|(from, to)| {
                    reference.done.contains_key(&(kind.clone(), format!("{to}>{from}")))
                }),
                _ => false,
            };
        if *count > wanted && !(back && *count == 1) {
            found.push(format!("{kind} on {id} took effect {count} times, not {wanted}"));
        }
    }
    if evidence.wanted == Condition::TheSameEnd && evidence.end == Some(evidence.should_end) {
        for ((kind, id), wanted) in &reference.done {
            let count = now.get(&(kind.clone(), id.clone())).copied().unwrap_or_default();
            if count < *wanted {
                found.push(format!("{kind} on {id} took effect {count} times, not {wanted}"));
            }
        }
    }
    found
}

/// I2: one request is one operation, however often it was sent.
pub(super) fn each_goal_is_one_operation(evidence: &Evidence<'_>) -> Violations {
    let of_reference = || evidence.reference.map(|reference| reference.operations);
    let wanted = evidence.wanted_operations.or_else(of_reference);
    let Some(wanted) = wanted.filter(|_| evidence.wanted == Condition::TheSameEnd) else {
        return Violations::new();
    };
    let found = evidence.operations;
    if found == wanted {
        Violations::new()
    } else {
        vec![format!("there were {found} operations, not {wanted}")]
    }
}

/// I3: complete, or absent with all its volumes, or parked.
pub(super) fn nothing_half_built(evidence: &Evidence<'_>) -> Violations {
    let Some(reference) = evidence.reference else { return Violations::new() };
    let Some(end) = evidence.end else { return Violations::new() };
    let after = evidence.after.comparable();
    match evidence.wanted {
        Condition::TheSameEnd | Condition::TheSameOrNothing if end == evidence.should_end => {
            after.differences(&reference.after)
        }
        Condition::TheSameOrNothing if end == Status::Undone => shape(evidence),
        Condition::TheSameEnd | Condition::TheSameOrNothing => {
            vec![format!("it ended {end:?}, not {:?}", evidence.should_end)]
        }
        Condition::AnyLawfulEnd => match end {
            Status::Undone => shape(evidence),
            Status::Done if evidence.should_end == Status::Done => {
                // A step that may fail without harm, such as the first backup, leaves an archive less.
                let all = after.differences(&reference.after);
                all.into_iter().filter(|line| !line.starts_with("archives of")).collect()
            }
            _ => Violations::new(),
        },
    }
}

/// The same guests with the same volumes as before.
fn shape(evidence: &Evidence<'_>) -> Violations {
    let mut found = Violations::new();
    let (before, after) = (evidence.before, evidence.after);
    if !before.guests.keys().eq(after.guests.keys()) {
        found.push(format!(
            "it was taken back, but there are guests {:?} where there were {:?}",
            after.guests.keys(),
            before.guests.keys()
        ));
    }
    let extra = after.volumes.keys().filter(|name| !before.volumes.contains_key(*name));
    found.extend(extra.map(|name| format!("it was taken back, but {name} is left")));
    found
}

/// I8: an operation that ended without a request that could change something changed nothing.
pub(super) fn a_refusal_changes_nothing(evidence: &Evidence<'_>) -> Violations {
    let refused = evidence.end == Some(Status::Undone) && evidence.effects.is_empty();
    if refused && evidence.before != evidence.after {
        return evidence.after.comparable().differences(&evidence.before.comparable());
    }
    Violations::new()
}
