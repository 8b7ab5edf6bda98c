//! The steps of an operation, as its journal lists them by name.
//!
//! What comes in: the names that were written when the operation was opened. What goes out: the steps, up to the first one
//! that this program does not know. A journal counts places, so the list that it was written by is the one it is read by,
//! whatever a later program would do for the same operation.

use super::Step;

/// The steps of one operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepList {
    known: Vec<Step>,
    /// How many there are, unknown ones included.
    count: u16,
    unknown: Option<String>,
}

impl StepList {
    /// The steps that this program gives an operation.
    #[must_use]
    pub fn of(steps: Vec<Step>) -> Self {
        let count = u16::try_from(steps.len()).unwrap_or(u16::MAX);
        Self { known: steps, count, unknown: None }
    }

    /// As it was written.
    #[must_use]
    pub fn read(names: &[String]) -> Self {
        let steps: Vec<Option<Step>> = names.iter().map(|name| read(name)).collect();
        let first = steps.iter().position(Option::is_none);
        let count = u16::try_from(names.len()).unwrap_or(u16::MAX);
        let unknown = first.and_then(|at| names.get(at)).cloned();
        Self { known: steps.into_iter().map_while(|step| step).collect(), count, unknown }
    }

    /// To be written.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.known.iter().map(|step| written(*step)).collect()
    }

    /// The steps, up to the first unknown one.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.known
    }

    /// How many there are, unknown ones included.
    #[must_use]
    pub const fn count(&self) -> u16 {
        self.count
    }

    /// The first one that this program does not know.
    #[must_use]
    pub fn unknown(&self) -> Option<&str> {
        self.unknown.as_deref()
    }
}

/// Its name, with the volume that it is about.
fn written(step: Step) -> String {
    match step {
        Step::AttachVolume(index) | Step::MoveVolume(index) => format!("{} {index}", step.name()),
        other => other.name().to_owned(),
    }
}

fn read(text: &str) -> Option<Step> {
    let (name, index) = text.split_once(' ').map_or((text, None), |(name, index)| (name, Some(index)));
    let step = Step::ALL.iter().copied().find(|step| step.name() == name)?;
    match (step, index) {
        (Step::AttachVolume(_), Some(index)) => index.parse().ok().map(Step::AttachVolume),
        (Step::MoveVolume(_), Some(index)) => index.parse().ok().map(Step::MoveVolume),
        (Step::AttachVolume(_) | Step::MoveVolume(_), None) | (_, Some(_)) => None,
        (step, None) => Some(step),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_is_read_as_it_was_written() {
        let steps: Vec<Step> =
            Step::ALL.iter().copied().chain([Step::AttachVolume(7), Step::MoveVolume(9)]).collect();
        let list = StepList::of(steps);
        assert_eq!(StepList::read(&list.names()), list);
    }

    #[test]
    fn a_list_with_an_unknown_step_ends_before_it_and_says_so() {
        for odd in ["fly", "attach_volume", "attach_volume x", "start 3"] {
            let names = ["start", odd, "confirm_running"].map(str::to_owned);
            let list = StepList::read(&names);
            assert_eq!((list.steps(), list.count(), list.unknown()), (&[Step::Start][..], 3, Some(odd)));
        }
    }
}
