//! Which part of CI starts next: a pure choice.
//!
//! In: the wanted parts with their states, and how much load the machine takes. Out: the parts to start now. A part waits
//! for those that it needs, and for room.

use super::part::{Part, Shared};

/// How far a part has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Waiting,
    Running,
    Passed,
    Failed,
    /// Never started, since a part that it needs failed.
    NotReached,
}

/// A wanted part and its state.
pub struct Entry {
    pub part: &'static Part,
    /// How far it has come.
    pub state: State,
}

/// Marks what can no longer be reached: its needs failed, or were not reached themselves.
pub fn give_up(entries: &mut [Entry]) {
    loop {
        let lost: Vec<&str> = entries
            .iter()
            .filter(|entry| matches!(entry.state, State::Failed | State::NotReached))
            .map(|entry| entry.part.name)
            .collect();
        let mut changed = false;
        for entry in entries.iter_mut().filter(|entry| entry.state == State::Waiting) {
            if entry.part.after.iter().any(|name| lost.contains(name)) {
                entry.state = State::NotReached;
                changed = true;
            }
        }
        if !changed {
            break;
        }
    }
}

/// The parts to start now, by their place in the list.
pub fn next(entries: &[Entry], capacity: u32) -> Vec<usize> {
    let is_open =
        |name: &str| entries.iter().any(|entry| entry.part.name == name && entry.state != State::Passed);
    let mut load: u32 =
        entries.iter().filter(|entry| entry.state == State::Running).map(|entry| entry.part.load).sum();
    let mut chosen = Vec::new();
    let mut used: Vec<Shared> = entries
        .iter()
        .filter(|entry| entry.state == State::Running)
        .filter_map(|entry| entry.part.uses)
        .collect();
    for (place, entry) in entries.iter().enumerate() {
        let ready = entry.state == State::Waiting && !entry.part.after.iter().any(|name| is_open(name));
        let fits = load == 0 || load + entry.part.load <= capacity;
        let free = entry.part.uses.is_none_or(|uses| !used.contains(&uses));
        if ready && fits && free {
            load += entry.part.load;
            used.extend(entry.part.uses);
            chosen.push(place);
        }
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ci::part::ALL;

    fn entries(names: &[(&str, State)]) -> Vec<Entry> {
        let part = |name: &str| ALL.iter().find(|part| part.name == name).unwrap();
        names.iter().map(|(name, state)| Entry { part: part(name), state: *state }).collect()
    }

    fn names(entries: &[Entry], capacity: u32) -> Vec<&'static str> {
        next(entries, capacity).into_iter().map(|place| entries[place].part.name).collect()
    }

    #[test]
    fn a_part_waits_for_what_it_needs() {
        let all = entries(&[("programs", State::Running), ("matrix", State::Waiting)]);
        assert_eq!(names(&all, 100), Vec::<&str>::new());
        let all = entries(&[("programs", State::Passed), ("matrix", State::Waiting)]);
        assert_eq!(names(&all, 100), ["matrix"]);
        let all = entries(&[("matrix", State::Waiting)]);
        assert_eq!(names(&all, 100), ["matrix"], "what is not wanted is not waited for");
    }

    #[test]
    fn a_part_waits_for_room_but_the_largest_runs_alone() {
        let all = entries(&[("programs", State::Waiting), ("lint", State::Waiting)]);
        assert_eq!(names(&all, 0), ["programs"]);
        assert_eq!(names(&all, 100), ["programs"], "both build into one folder");
        let all = entries(&[("programs", State::Waiting), ("deny", State::Waiting)]);
        assert_eq!(names(&all, 100), ["programs", "deny"]);
        let all = entries(&[("programs", State::Running), ("deny", State::Waiting)]);
        assert_eq!(names(&all, 1), Vec::<&str>::new());
    }

    #[test]
    fn what_only_one_may_use_is_used_by_one() {
        let all = entries(&[("stacks", State::Running), ("demo-root", State::Waiting)]);
        assert_eq!(names(&all, 100), Vec::<&str>::new());
        let all = entries(&[("stacks", State::Passed), ("demo-root", State::Waiting)]);
        assert_eq!(names(&all, 100), ["demo-root"]);
    }

    #[test]
    fn what_needs_a_failed_part_is_not_reached() {
        let mut all =
            entries(&[("programs", State::Failed), ("package", State::Waiting), ("host", State::Waiting)]);
        give_up(&mut all);
        assert!(all.iter().skip(1).all(|entry| entry.state == State::NotReached));
    }

    #[test]
    fn each_part_is_named_once_and_needs_parts_that_stand_before_it() {
        for (place, part) in ALL.iter().enumerate() {
            let before: Vec<&str> = ALL.iter().take(place).map(|part| part.name).collect();
            assert!(!before.contains(&part.name), "{} twice", part.name);
            assert!(part.after.iter().all(|name| before.contains(name)), "{}", part.name);
        }
    }
}
