//! Convergence of a host to a document, by its last report. Pure.

use holdfast_protocol::desired::{DesiredDocument, DesiredGuest, RunState};
use holdfast_protocol::generation::Generation;
use holdfast_protocol::operation::{OperationStatus, OperationView, StepStatus};
use holdfast_protocol::report::{FieldState, GuestReport, GuestStatus, Running, Sections};

/// The progress of a host towards its document.
#[derive(Debug, PartialEq, Eq)]
pub enum Convergence {
    /// Under way; the text names what is missing.
    Underway(Vec<String>),
    /// All guests are as the document requires.
    Reached,
    /// The agent would not take the document.
    Refused(String),
    /// What is left waits for a signature.
    NeedsSignature(Vec<String>),
    /// What is left needs a person.
    Stuck(Vec<String>),
}

/// Judges the last report. A host that has not reported yet is under way.
pub fn assess(wanted: &DesiredDocument, sections: &Sections) -> Convergence {
    let desired = sections.desired.as_ref();
    let refused = desired.and_then(|desired| desired.refused.as_ref());
    if let Some(refused) = refused.filter(|refused| refused.generation == Some(wanted.generation)) {
        return Convergence::Refused(refused.problem.to_string());
    }
    let held = desired.map_or(Generation::NONE, |desired| desired.held);
    if held < wanted.generation {
        return Convergence::Underway(vec![format!("the agent to take generation {}", wanted.generation)]);
    }
    let guests = sections.guests.as_deref().unwrap_or_default();
    let operations = sections.operations.as_deref().unwrap_or_default();
    let (mut missing, mut stuck) = (Vec::new(), Vec::new());
    for guest in &wanted.guests {
        let report = guests.iter().find(|report| report.uid == Some(guest.uid));
        match gap(guest, report, operations) {
            Gap::None => {}
            Gap::Missing(what) => missing.push(format!("{}: {what}", guest.name)),
            Gap::Stuck(why) => stuck.push(format!("{}: {why}", guest.name)),
        }
    }
    if !missing.is_empty() {
        return Convergence::Underway(missing);
    }
    if !stuck.is_empty() {
        return Convergence::Stuck(stuck);
    }
    let uids = || wanted.guests.iter().map(|guest| Some(guest.uid));
    let waiting = sections.waiting.iter().flatten().filter(|waiting| uids().any(|uid| uid == waiting.guest));
    let waiting: Vec<String> =
        waiting.map(|waiting| format!("{} ({})", waiting.effect, waiting.reason)).collect();
    if waiting.is_empty() { Convergence::Reached } else { Convergence::NeedsSignature(waiting) }
}

enum Gap {
    None,
    Missing(String),
    Stuck(String),
}

fn gap(guest: &DesiredGuest, report: Option<&GuestReport>, operations: &[OperationView]) -> Gap {
    let open = operations.iter().find(|op| op.guest == guest.uid && !op.status.is_end());
    if let Some(open) = open {
        return Gap::Missing(format!("{} is under way", open.kind.as_str()));
    }
    let Some(report) = report else { return Gap::Missing("not reported yet".to_owned()) };
    match report.status {
        GuestStatus::Managed => shape(guest, report),
        GuestStatus::Absent => Gap::Missing("not there yet".to_owned()),
        // The agent took the document, but its report is older than that.
        GuestStatus::Unmanaged => Gap::Missing("still seen as unmanaged".to_owned()),
        GuestStatus::Missing
        | GuestStatus::Foreign
        | GuestStatus::Broken
        | GuestStatus::Parked
        | GuestStatus::RestoredCopy => {
            Gap::Stuck(conditions(report).unwrap_or_else(|| status_word(report.status).to_owned()))
        }
    }
}

fn shape(guest: &DesiredGuest, report: &GuestReport) -> Gap {
    let run = match guest.run {
        RunState::Running => Running::Running,
        RunState::Stopped => Running::Stopped,
    };
    if report.run != run {
        let word = if run == Running::Running { "start" } else { "stop" };
        return Gap::Missing(format!("yet to {word}"));
    }
    if report.size.is_some_and(|size| size != guest.size) {
        return Gap::Missing("its size".to_owned());
    }
    if report.address.is_some_and(|address| address != guest.network.address) {
        return Gap::Missing("its address".to_owned());
    }
    let behind = |state: &&FieldState| state.desired.is_some() && state.desired != state.observed;
    if let Some(state) = report.fields.iter().find(behind) {
        return Gap::Missing(format!("its {}", state.field.path()));
    }
    Gap::None
}

fn conditions(report: &GuestReport) -> Option<String> {
    let texts: Vec<&str> = report.conditions.iter().map(|condition| condition.message.as_str()).collect();
    (!texts.is_empty()).then(|| texts.join("; "))
}

/// A guest's status, as text for people.
pub const fn status_word(status: GuestStatus) -> &'static str {
    match status {
        GuestStatus::Managed => "managed",
        GuestStatus::Unmanaged => "unmanaged",
        GuestStatus::Absent => "absent",
        GuestStatus::Missing => "missing",
        GuestStatus::Foreign => "foreign",
        GuestStatus::Broken => "broken",
        GuestStatus::Parked => "parked",
        GuestStatus::RestoredCopy => "restored copy",
    }
}

/// What happened to an operation between two reports, one line each.
pub fn changes_since(before: &[OperationView], after: &[OperationView]) -> Vec<String> {
    let mut lines = Vec::new();
    for now in after {
        let was = before.iter().find(|was| was.id == now.id);
        lines.extend(step_changes(was, now));
        if now.status.is_end() && was.map(|was| was.status) != Some(now.status) {
            lines.push(outcome_line(now));
        }
    }
    lines
}

fn step_changes(was: Option<&OperationView>, now: &OperationView) -> Vec<String> {
    let earlier = |index: usize| was.and_then(|was| was.steps.get(index)).map(|step| step.status);
    let mut lines = Vec::new();
    for (index, step) in now.steps.iter().enumerate() {
        if earlier(index) == Some(step.status) || step.status == StepStatus::Pending {
            continue;
        }
        let word = match step.status {
            StepStatus::Pending | StepStatus::Intended => "…",
            StepStatus::Done => "done",
            StepStatus::Failed => "failed",
            StepStatus::Undoing => "taking back",
            StepStatus::Undone => "taken back",
        };
        let note = step.note.as_ref().map(|note| format!(" ({note})")).unwrap_or_default();
        let place = format!("{}/{}", index + 1, now.steps.len());
        lines.push(format!("{}  {}  {place} {} {word}{note}", now.name, now.kind.as_str(), step.name));
    }
    lines
}

/// How an operation ended, as text for people.
pub fn outcome_line(operation: &OperationView) -> String {
    let word = match operation.status {
        OperationStatus::Done => "is done",
        OperationStatus::Undone => "failed and was taken back",
        OperationStatus::Parked => "is parked",
        OperationStatus::Forgotten => "was parked, and was forgotten by an operator",
        OperationStatus::Queued | OperationStatus::Running | OperationStatus::Undoing => "is under way",
    };
    let why = operation.problem.as_ref().map(|problem| format!(": {problem}")).unwrap_or_default();
    format!("{}  {}  {word}{why}", operation.name, operation.kind.as_str())
}

/// How many steps are done, of how many.
pub fn steps_done(operation: &OperationView) -> (u64, u64) {
    let done = operation.steps.iter().filter(|step| step.status == StepStatus::Done).count();
    let count = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
    (count(done), count(operation.steps.len()))
}

/// What an operation is doing now.
pub fn current_step(operation: &OperationView) -> String {
    let now = operation.steps.iter().rev().find(|step| step.status != StepStatus::Pending);
    match now {
        Some(step) => match &step.note {
            Some(note) => format!("{}: {note}", step.name),
            None => step.name.clone(),
        },
        None => "queued".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use holdfast_protocol::code::ErrorCode;
    use holdfast_protocol::envelope::ErrorBody;
    use holdfast_protocol::report::{Condition, RefusedDocument};

    use super::*;
    use crate::render::samples;

    #[test]
    fn a_matching_report_has_converged_and_gaps_are_named() {
        let wanted = samples::document();
        let reached = samples::converged_sections();
        assert_eq!(assess(&wanted, &reached), Convergence::Reached);
        let missing = |change: &dyn Fn(&mut Sections)| {
            let mut sections = reached.clone();
            change(&mut sections);
            assess(&wanted, &sections)
        };
        let underway = |text: &str| Convergence::Underway(vec![text.to_owned()]);
        let guest = |s: &mut Sections, f: &dyn Fn(&mut GuestReport)| f(&mut s.guests.as_mut().unwrap()[0]);
        assert_eq!(missing(&|s| *s = Sections::default()), underway("the agent to take generation 7"));
        assert_eq!(missing(&|s| guest(s, &|g| g.run = Running::Stopped)), underway("web-1: yet to start"));
        assert_eq!(missing(&|s| guest(s, &|g| g.run = Running::Unknown)), underway("web-1: yet to start"));
        assert_eq!(
            missing(&|s| guest(s, &|g| g.status = GuestStatus::Absent)),
            underway("web-1: not there yet")
        );
        assert_eq!(
            missing(&|s| guest(s, &|g| g.size.as_mut().unwrap().memory_mib = 64.try_into().unwrap())),
            underway("web-1: its size")
        );
        let behind = serde_json::json!([{ "field": "network.mtu", "desired": "1400", "observed": "bridge" }]);
        let behind: Vec<FieldState> = serde_json::from_value(behind).unwrap();
        assert_eq!(
            missing(&|s| guest(s, &|g| g.fields = behind.clone())),
            underway("web-1: its network.mtu")
        );
        assert_eq!(
            missing(&|s| drop(s.guests.as_mut().unwrap().remove(0))),
            underway("web-1: not reported yet")
        );
        assert_eq!(
            missing(&|s| s.operations = Some(vec![samples::operation(OperationStatus::Running)])),
            underway("web-1: provision is under way")
        );
    }

    #[test]
    fn refused_stuck_and_unsigned_are_distinguished() {
        let wanted = samples::document();
        let mut sections = samples::converged_sections();
        sections.guests.as_mut().unwrap()[0].status = GuestStatus::Parked;
        assert_eq!(assess(&wanted, &sections), Convergence::Stuck(vec!["web-1: parked".to_owned()]));
        let message = "restore failed: no space".to_owned();
        sections.guests.as_mut().unwrap()[0].conditions =
            vec![Condition { code: ErrorCode::Parked, message }];
        assert_eq!(
            assess(&wanted, &sections),
            Convergence::Stuck(vec!["web-1: restore failed: no space".to_owned()])
        );
        sections.guests.as_mut().unwrap()[1].run = Running::Stopped;
        assert!(matches!(assess(&wanted, &sections), Convergence::Underway(_)), "the others are waited for");
        let problem = ErrorBody::new(ErrorCode::StaleGeneration, "older");
        sections.desired.as_mut().unwrap().refused =
            Some(RefusedDocument { generation: Some(wanted.generation), problem });
        assert_eq!(assess(&wanted, &sections), Convergence::Refused("older [STALE_GENERATION]".to_owned()));
        let mut sections = samples::converged_sections();
        sections.waiting = Some(vec![samples::waiting()]);
        assert!(matches!(assess(&wanted, &sections), Convergence::NeedsSignature(_)));
    }

    #[test]
    fn changes_are_shown_once() {
        let running = samples::operation(OperationStatus::Running);
        let done = samples::operation(OperationStatus::Done);
        let first = changes_since(&[], std::slice::from_ref(&running));
        assert_eq!(
            first,
            ["web-1  provision  1/3 choose_vmid done", "web-1  provision  2/3 restore … (12%)"]
        );
        assert!(changes_since(std::slice::from_ref(&running), std::slice::from_ref(&running)).is_empty());
        let last = changes_since(std::slice::from_ref(&running), std::slice::from_ref(&done));
        assert_eq!(last.last().unwrap(), "web-1  provision  is done");
        assert!(changes_since(std::slice::from_ref(&done), std::slice::from_ref(&done)).is_empty());
    }
}
