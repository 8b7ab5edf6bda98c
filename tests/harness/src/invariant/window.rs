//! Invariant I4, and the labels of backups.

use agentd::operation::log::Status;

use super::{Evidence, Violations};
use crate::log::TaskSpan;

/// Controllers check this often, and the simulator's log counts whole seconds.
const NOTICE_MICROS: i64 = 1_000_000;

/// I4: no program is stopped past its window's bound, whatever died.
pub(super) fn nothing_stands_past_its_bound(evidence: &Evidence<'_>) -> Violations {
    let late = evidence.stood.iter().filter(|stood| stood.to.is_none_or(|to| to > stood.deadline));
    late.map(|stood| format!("for window {} programs stand still past its bound: {stood:?}", stood.window))
        .collect()
}

/// I4: no program is stopped while something else works on the guest. In these stories one guest alone has windows.
pub(super) fn nothing_waits_standing_still(evidence: &Evidence<'_>) -> Violations {
    let mut found = Violations::new();
    for stood in evidence.stood {
        let to = stood.to.unwrap_or(stood.deadline);
        let meanwhile = |task: &&TaskSpan| task.from < to && task.to.is_none_or(|end| end > stood.from);
        let ours = evidence.tasks.iter().map(|(task, _)| task).filter(|task| task.is_ours());
        let all: Vec<&TaskSpan> = ours.filter(meanwhile).collect();
        // The programs are stopped for the last backup that was begun meanwhile.
        let own = all.iter().rposition(|task| task.kind == "vzdump" && task.from >= stood.from);
        for (_, task) in all.iter().enumerate().filter(|(nth, _)| Some(*nth) != own) {
            found.push(format!(
                "programs stood still for window {} while another {} worked on the guest",
                stood.window, task.kind
            ));
        }
    }
    found
}

/// After its bound the programs run, or may run: a copy that is fixed then does not count as a capture of the window.
pub(super) fn nothing_is_captured_late(evidence: &Evidence<'_>) -> Violations {
    let captures = evidence.book.captures.iter();
    let late = captures.filter(|capture| capture.at_ms >= capture.bound_s * 1_000);
    late.map(|capture| format!("a capture counts that came after the bound of its window: {capture:?}"))
        .collect()
}

/// A backup is labelled `application` only when programs were stopped at the moment the simulator fixed its copy.
pub(super) fn labels_are_honest(evidence: &Evidence<'_>) -> Violations {
    let mut found = Violations::new();
    for label in &evidence.book.labels {
        if label.consistency != "application" {
            continue;
        }
        let name = label.archive.rsplit('/').next().unwrap_or_default();
        let Some(fixed_s) = evidence.after.fixed.get(name.trim_end_matches(".tar.zst")) else {
            found.push(format!("nobody knows when {name} was fixed"));
            continue;
        };
        let micros = |at: std::time::Duration| {
            evidence.began_micros + i64::try_from(at.as_micros()).unwrap_or(i64::MAX)
        };
        let stood = evidence.stood.iter().any(|stood| {
            let (from, to) = (micros(stood.from), stood.to.map_or(i64::MAX, micros));
            let fixed = fixed_s * 1_000_000;
            label.operation == stood.window.to_string() && from < fixed + NOTICE_MICROS && fixed < to
        });
        if !stood {
            found.push(format!("{name} is called application, and programs ran when it was fixed"));
        }
    }
    found
}

/// The course of the story decides the backup's label; a restart of the agent does not change it.
pub(super) fn labels_are_as_earned(evidence: &Evidence<'_>) -> Violations {
    let Some(wanted) = evidence.label else { return Violations::new() };
    if evidence.wanted != super::Condition::TheSameEnd || evidence.end != Some(Status::Done) {
        return Violations::new();
    }
    let own = |label: &&crate::db_reader::BackupLabel| !evidence.book_before.labels.contains(label);
    let all: Vec<&str> =
        evidence.book.labels.iter().filter(own).map(|label| label.consistency.as_str()).collect();
    if all.contains(&wanted) {
        Violations::new()
    } else {
        vec![format!("no backup is called {wanted}: {all:?}")]
    }
}
