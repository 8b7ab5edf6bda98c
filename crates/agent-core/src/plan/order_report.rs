//! Phases and the end of the log of a work order's operation.
//!
//! What comes in: the names and states of its steps, and its journal. What goes out: what the report of the order shows,
//! within its bounds. Deliberately absent: what Proxmox wrote into the log of a task; its id is in the lines.

use std::fmt::Write as _;

use holdfast_protocol::operation::StepView;
use holdfast_protocol::work_order::OrderPhase;
use holdfast_protocol::work_order::report::{LOG_LINE_BYTES_MAX, LOG_LINES_MAX, PHASES_MAX};
use jiff::Timestamp;

use crate::operation::log::{Entry, Event};

/// The phases, one for each step.
#[must_use]
pub fn phases(steps: &[StepView], journal: &[Entry]) -> Vec<OrderPhase> {
    let steps = (0_u16..).zip(steps).take(PHASES_MAX);
    steps.map(|(place, step)| phase(place, step, journal)).collect()
}

fn phase(place: u16, step: &StepView, journal: &[Entry]) -> OrderPhase {
    let tries =
        || journal.iter().filter(|entry| matches!(&entry.event, Event::Intended { step } if *step == place));
    let begun_at = tries().map(|entry| entry.at).next();
    let ended_at = journal.iter().rev().find(|entry| ends(&entry.event, place)).map(|entry| entry.at);
    // A clock that was set back meanwhile gives no time at all.
    let took_ms = begun_at
        .zip(ended_at)
        .and_then(|(begun, ended)| u64::try_from(ended.duration_since(begun).as_millis()).ok());
    OrderPhase {
        name: step.name.clone(),
        status: step.status,
        attempts: u32::try_from(tries().count()).unwrap_or(u32::MAX),
        begun_at,
        took_ms,
    }
}

fn ends(event: &Event, place: u16) -> bool {
    match event {
        Event::Succeeded { step, .. } | Event::Failed { step, .. } => *step == place,
        Event::Begun
        | Event::Intended { .. }
        | Event::Posted { .. }
        | Event::UndoBegun { .. }
        | Event::UndoIntended { .. }
        | Event::UndoSucceeded { .. }
        | Event::Parked { .. }
        | Event::Reopened { .. }
        | Event::Forgotten { .. }
        | Event::Finished
        | Event::TakenBack => false,
    }
}

/// The newest lines, the oldest of them first.
#[must_use]
pub fn log(steps: &[StepView], journal: &[Entry]) -> Vec<String> {
    let name = |place: u16| steps.get(usize::from(place)).map_or("?", |step| step.name.as_str());
    let skipped = journal.len().saturating_sub(LOG_LINES_MAX);
    journal.iter().skip(skipped).map(|entry| line(entry.at, &said(&entry.event, name))).collect()
}

fn said<'a>(event: &Event, name: impl Fn(u16) -> &'a str) -> String {
    let mut text = String::new();
    let written = match event {
        Event::Begun => write!(text, "begun"),
        Event::Intended { step } => write!(text, "{}: tried", name(*step)),
        Event::Posted { step, upid } => write!(text, "{}: task {upid}", name(*step)),
        Event::Succeeded { step, note, .. } => match note {
            Some(note) => write!(text, "{}: done, {note}", name(*step)),
            None => write!(text, "{}: done", name(*step)),
        },
        Event::Failed { step, problem, .. } => write!(text, "{}: failed, {problem}", name(*step)),
        Event::UndoBegun { problem } => write!(text, "taken back: {problem}"),
        Event::UndoIntended { step } => write!(text, "{}: being taken back", name(*step)),
        Event::UndoSucceeded { step, .. } => write!(text, "{}: taken back", name(*step)),
        Event::Parked { problem, .. } => write!(text, "parked: {problem}"),
        Event::Reopened { by, .. } => write!(text, "tried again by {by}"),
        Event::Forgotten { by, .. } => write!(text, "ended by {by}"),
        Event::Finished => write!(text, "finished"),
        Event::TakenBack => write!(text, "nothing of it is left"),
    };
    // Writing to a string cannot fail.
    let _ = written;
    text
}

/// One line, cut at a whole character.
fn line(at: Timestamp, text: &str) -> String {
    let one: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let mut line = format!("{} {one}", at.strftime("%H:%M:%S"));
    if line.len() > LOG_LINE_BYTES_MAX {
        let end = (0..=LOG_LINE_BYTES_MAX - 3).rev().find(|end| line.is_char_boundary(*end)).unwrap_or(0);
        line.truncate(end);
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    use holdfast_protocol::code::ErrorCode;
    use holdfast_protocol::envelope::ErrorBody;
    use holdfast_protocol::operation::StepStatus;

    use super::*;
    use crate::operation::log::AfterFailure;

    fn entry(number: u32, second: i64, event: Event) -> Entry {
        let at = Timestamp::from_second(1_800_000_000 + second).unwrap();
        Entry { number, at, event }
    }

    fn steps() -> Vec<StepView> {
        let step = |name: &str, status| StepView { name: name.to_owned(), status, note: None, upid: None };
        vec![step("shut_down", StepStatus::Done), step("start", StepStatus::Intended)]
    }

    #[test]
    fn a_phase_counts_its_tries_from_the_first_to_the_end_of_the_last() {
        let problem = ErrorBody::new(ErrorCode::Unavailable, "no\nanswer");
        let journal = [
            entry(1, 0, Event::Begun),
            entry(2, 1, Event::Intended { step: 0 }),
            entry(3, 4, Event::Failed { step: 0, problem, then: AfterFailure::Again }),
            entry(4, 5, Event::Intended { step: 0 }),
            entry(5, 11, Event::Succeeded { step: 0, facts: Vec::new(), note: None }),
            entry(6, 12, Event::Intended { step: 1 }),
        ];
        let phases = phases(&steps(), &journal);
        assert_eq!((phases[0].attempts, phases[0].took_ms), (2, Some(10_000)));
        assert_eq!((phases[1].attempts, phases[1].took_ms), (1, None), "it is under way");
        let log = log(&steps(), &journal);
        assert_eq!(log.len(), journal.len());
        assert!(log[2].contains("shut_down: failed") && !log[2].contains('\n'), "{log:?}");
    }

    #[test]
    fn a_log_is_bounded_in_lines_and_bytes() {
        let note = Some("ä".repeat(1_000));
        let many = |number: u32| {
            entry(
                number,
                i64::from(number),
                Event::Succeeded { step: 0, facts: Vec::new(), note: note.clone() },
            )
        };
        let journal: Vec<Entry> = (1..=500).map(many).collect();
        let log = log(&steps(), &journal);
        assert_eq!(log.len(), LOG_LINES_MAX);
        assert!(log.iter().all(|line| line.len() <= LOG_LINE_BYTES_MAX), "{}", log[0].len());
    }
}
