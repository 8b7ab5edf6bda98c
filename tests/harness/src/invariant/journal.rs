//! Invariants I11, I12 and I14: counters, end and order.

use std::collections::BTreeMap;

use agentd::operation::step::Step;

use super::{Evidence, Violations};

/// Steps of one name in one operation: the guests of the stories have two volumes.
const OF_ONE_NAME: u32 = 2;

/// I11: counters never fall, and the audit only grows. How often the agent started since its last good cycle is the one
/// counter that is meant to.
pub(super) fn counters_never_fall(evidence: &Evidence<'_>) -> Violations {
    let mut found = Violations::new();
    for (name, before) in &evidence.book_before.counters {
        let now = evidence.book.counters.get(name);
        if !name.starts_with("starts") && now.is_none_or(|now| now < before) {
            found.push(format!("counter {name} was {before} and is {now:?}"));
        }
    }
    let kept = evidence.book.audit.get(..evidence.book_before.audit.len());
    if kept != Some(&evidence.book_before.audit[..]) {
        found.push("lines of the audit were changed or lost".to_owned());
    }
    if let Some(gap) = (1..).zip(&evidence.book.audit).find(|(wanted, line)| line.number != *wanted) {
        found.push(format!("the audit has a gap before line {}", gap.1.number));
    }
    found
}

/// I12: nothing is left open.
pub(super) fn it_settled(evidence: &Evidence<'_>) -> Violations {
    let mut found: Violations =
        evidence.book.open.iter().map(|id| format!("operation {id} has not ended")).collect();
    if evidence.end.is_none() {
        found.push("the story's operation has no end".to_owned());
    }
    let running = evidence.tasks.iter().filter(|(task, _)| task.to.is_none());
    found.extend(running.map(|(task, _)| format!("task {} has not ended", task.upid)));
    found
}

/// I12: no step fails more often than it may be tried.
pub(super) fn no_step_is_tried_for_ever(evidence: &Evidence<'_>) -> Violations {
    let mut failed: BTreeMap<(&str, &str), u32> = BTreeMap::new();
    for line in evidence.book.audit.iter().filter(|line| line.action == "step_failed") {
        let step = line.detail.split(':').next().unwrap_or_default();
        *failed.entry((&line.operation, step)).or_default() += 1;
    }
    let most = |name: &str| {
        let step = Step::ALL.iter().find(|step| step.name() == name);
        step.map_or(0, |step| step.bound().tries * OF_ONE_NAME)
    };
    let too_often = failed.into_iter().filter(|((_, step), times)| *times > most(step));
    too_often
        .map(|((operation, step), times)| format!("{step} of {operation} failed {times} times"))
        .collect()
}

/// I14: before each request that could change something, the audit says that its step was intended.
pub(super) fn written_before_done(evidence: &Evidence<'_>) -> Violations {
    let intended = |step: &str, at: i64| {
        evidence.book.audit.iter().any(|line| {
            let intends = matches!(line.action.as_str(), "step_intended" | "undo_intended");
            intends && line.detail == step && line.at <= at
        })
    };
    let mut found = Violations::new();
    for effect in evidence.effects {
        let at = evidence.began_micros + i64::try_from(effect.at.as_micros()).unwrap_or(i64::MAX);
        if !intended(effect.step, at) {
            found.push(format!(
                "{} {} was sent before `{}` was written",
                effect.call, effect.path, effect.step
            ));
        }
    }
    found
}
