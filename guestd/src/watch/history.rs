//! History of a stack over several polls: reports and restarts. Pure.

use std::time::Duration;

use holdfast_protocol::id::StackName;
use holdfast_protocol::local::hello::WHY_BYTES_MAX;
use jiff::Timestamp;

use super::assessment::{Assessment, State};
use crate::program::beginning;
use crate::stacks::OnFailure;
use crate::status_file::StackStatus;

/// The pause after the first start; it doubles with each further start.
const PAUSE: Duration = Duration::from_secs(60);
const PAUSE_MAX: Duration = Duration::from_secs(3_600);

/// After this time without a failure the pauses start again from the beginning.
const FORGIVEN: Duration = Duration::from_secs(3_600);

#[derive(Clone, Debug, Default)]
pub struct StackHistory {
    shown: Option<ShownState>,
    /// It was not well at the last check, for the first time.
    suspect: Option<Suspect>,
    restarts: u32,
    /// No start before this, on the clock since the boot.
    not_before: Duration,
    /// Since when it is well again.
    well_since: Option<Duration>,
    /// Why the last start came to nothing.
    start_failed: Option<String>,
}

#[derive(Clone, Debug)]
struct ShownState {
    state: State,
    why: Option<String>,
    since: Timestamp,
}

#[derive(Clone, Copy, Debug)]
struct Suspect {
    since: Timestamp,
}

/// What follows from a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    AsBefore,
    /// It may be but a moment.
    LookAgain,
    /// It is not well, with a text that was not reported before.
    Report(String),
    /// The reported problem is over.
    Well,
    /// The failed parts are started.
    Start,
}

impl StackHistory {
    /// Processes the result of a check.
    pub fn next(&mut self, seen: &Assessment, on_failure: OnFailure, now: Duration, at: Timestamp) -> Step {
        let (state, why) = match seen {
            Assessment::Fine(state) => return self.fine(*state, now, at),
            Assessment::Unwell(state, why) => (*state, why.as_str()),
            Assessment::Fell(fallen) => (State::Down, fallen.why.as_str()),
        };
        self.well_since = None;
        let was_reported = self.is_reported();
        let Some(suspect) = self.suspect else {
            if !was_reported {
                self.suspect = Some(Suspect { since: at });
                return Step::LookAgain;
            }
            return self.wrong(seen, (state, why), on_failure, now, at);
        };
        let since = suspect.since;
        self.suspect = None;
        self.wrong(seen, (state, why), on_failure, now, since)
    }

    fn fine(&mut self, state: State, now: Duration, at: Timestamp) -> Step {
        self.suspect = None;
        let was_reported = self.is_reported();
        let since = *self.well_since.get_or_insert(now);
        if now.saturating_sub(since) >= FORGIVEN || state == State::Stopped {
            (self.restarts, self.not_before) = (0, Duration::ZERO);
        }
        self.start_failed = None;
        self.show(state, None, at);
        if was_reported { Step::Well } else { Step::AsBefore }
    }

    fn wrong(
        &mut self,
        seen: &Assessment,
        (state, why): (State, &str),
        on_failure: OnFailure,
        now: Duration,
        since: Timestamp,
    ) -> Step {
        let why = match &self.start_failed {
            Some(failed) => format!("{why}; it was started, and {failed}"),
            None => why.to_owned(),
        };
        let news = self.show(state, Some(&why), since);
        let may_start = on_failure == OnFailure::Restart && now >= self.not_before;
        match (seen, news) {
            (Assessment::Fell(_), _) if may_start => Step::Start,
            (_, Change::Yes) => Step::Report(why),
            (_, Change::No) => Step::AsBefore,
        }
    }

    /// It was started, well or not.
    pub fn started(&mut self, now: Duration, failed: Option<&str>) {
        let doubled = 2_u32.saturating_pow(self.restarts.min(16));
        self.not_before = now.saturating_add(PAUSE.saturating_mul(doubled).min(PAUSE_MAX));
        self.restarts = self.restarts.saturating_add(1);
        self.start_failed = failed.map(short);
    }

    /// The state for people and for the agent. None before the first certain result.
    pub fn shown(&self, stack: &StackName) -> Option<StackStatus> {
        let ShownState { state, why, since } = self.shown.clone()?;
        Some(StackStatus { stack: stack.clone(), state, why, since, restarts: self.restarts })
    }

    fn is_reported(&self) -> bool {
        self.shown.as_ref().is_some_and(|shown| shown.state.unwell().is_some())
    }

    fn show(&mut self, state: State, why: Option<&str>, since: Timestamp) -> Change {
        let why = why.map(short);
        match &mut self.shown {
            Some(shown) if shown.state == state => {
                let news = if shown.why == why { Change::No } else { Change::Yes };
                shown.why = why;
                news
            }
            shown => {
                *shown = Some(ShownState { state, why, since });
                Change::Yes
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Yes,
    No,
}

/// As the agent takes it.
fn short(why: &str) -> String {
    let said = beginning(why, WHY_BYTES_MAX);
    if said.is_empty() { "no output".to_owned() } else { said }
}

#[cfg(test)]
mod tests {
    use super::super::assessment::FallenStack;
    use super::*;
    use crate::driver::{Engine, Group};

    fn fell() -> Assessment {
        let group = Group { name: "web".to_owned(), ids: vec!["1".to_owned()] };
        Assessment::Fell(FallenStack {
            engine: Engine::Docker,
            groups: vec![group],
            why: "web ended by itself".to_owned(),
        })
    }

    fn at(second: u64) -> Timestamp {
        Timestamp::from_second(i64::try_from(second).unwrap()).unwrap()
    }

    fn next(course: &mut StackHistory, seen: &Assessment, on_failure: OnFailure, second: u64) -> Step {
        course.next(seen, on_failure, Duration::from_secs(second), at(second))
    }

    #[test]
    fn two_bad_polls_in_a_row_are_reported_once() {
        let mut course = StackHistory::default();
        let well = Assessment::Fine(State::Runs);
        let mut step = |seen: &Assessment, second| next(&mut course, seen, OnFailure::Report, second);
        assert_eq!(step(&well, 0), Step::AsBefore);
        assert_eq!(step(&fell(), 60), Step::LookAgain);
        assert_eq!(step(&well, 70), Step::AsBefore, "it was but a moment");
        assert_eq!(step(&fell(), 130), Step::LookAgain);
        assert_eq!(step(&fell(), 140), Step::Report("web ended by itself".to_owned()));
        assert_eq!(step(&fell(), 200), Step::AsBefore, "never started, and told once");
        assert_eq!(step(&well, 260), Step::Well);
        let name = "shop".parse().unwrap();
        let shown = course.shown(&name).unwrap();
        assert_eq!((shown.state, shown.why, shown.since), (State::Runs, None, at(260)));
    }

    #[test]
    fn starts_come_with_growing_pauses_up_to_an_hour_and_are_forgiven() {
        let mut course = StackHistory::default();
        let mut starts = Vec::new();
        for second in (0..12 * 3_600).step_by(10) {
            if next(&mut course, &fell(), OnFailure::Restart, second) == Step::Start {
                starts.push(second);
                course.started(Duration::from_secs(second), None);
            }
        }
        let pauses: Vec<u64> = starts.windows(2).map(|two| two[1] - two[0]).collect();
        assert_eq!(starts[0], 10, "at the second look");
        assert_eq!(&pauses[..7], [60, 120, 240, 480, 960, 1_920, 3_600]);
        assert!(pauses[6..].iter().all(|pause| *pause == 3_600), "{pauses:?}");
        let well = Assessment::Fine(State::Well);
        for second in [50_000, 53_600] {
            assert!(course.restarts > 0, "remembered until it was well for an hour");
            next(&mut course, &well, OnFailure::Restart, second);
        }
        assert_eq!(course.restarts, 0);
    }

    #[test]
    fn what_is_left_to_others_or_was_stopped_is_never_started() {
        let again = Assessment::Unwell(State::Restarting, "web ends again and again".to_owned());
        for seen in [again, Assessment::Fine(State::Stopped)] {
            let mut course = StackHistory::default();
            for second in (0..7_200).step_by(60) {
                assert_ne!(next(&mut course, &seen, OnFailure::Restart, second), Step::Start, "{seen:?}");
            }
        }
    }

    #[test]
    fn a_failed_start_is_reported() {
        let mut course = StackHistory::default();
        next(&mut course, &fell(), OnFailure::Restart, 0);
        assert_eq!(next(&mut course, &fell(), OnFailure::Restart, 10), Step::Start);
        course.started(Duration::from_secs(10), Some(&"é".repeat(200)));
        let Step::Report(why) = next(&mut course, &fell(), OnFailure::Restart, 20) else { panic!("news") };
        assert!(why.starts_with("web ended by itself; it was started, and é"), "{why}");
        let shown = course.shown(&"shop".parse().unwrap()).unwrap();
        assert!(shown.why.unwrap().len() <= WHY_BYTES_MAX);
        assert_eq!(shown.restarts, 1);
    }
}
