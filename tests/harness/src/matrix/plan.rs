//! Which cases there are, and running them on all cores.
//!
//! In: stories, and how deep to go. Out: a [`Report`]. First each story is played undisturbed, which gives its points.
//! Then each point has these cases: killed there; killed there and again at each point of the recovery that follows, or
//! at one in so many of them (that recovery's points are known from the single kill); killed there and back only after
//! an hour. In addition: each step done again, each step failing in each way, and every task ending otherwise than it
//! should.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use agentd::execute::failpoint::{Moment, Side};

use super::case::{Case, HOWS, Outcome, TASK_ENDS, run};
use super::table::Report;
use crate::invariant::Reference;
use crate::points::{At, Place};
use crate::story::{Does, KillFrom, Story};

/// An agent that stays dead this long finds its bootstrap tokens expired and its tasks ended.
const AN_HOUR: Duration = Duration::from_secs(3_600);

/// In a sample the agent stays dead at one point in this many.
const HOUR_ONE_IN: usize = 8;

/// Progress is printed once in this many points.
const REPORTED_EVERY: usize = 50;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    Single,
    /// Killed once, and again in the recovery: at each of its points, or at one in this many, another one for each
    /// first kill.
    Double {
        /// One point in this many; 1 is each. A story that sets a smaller share has fewer.
        one_in: usize,
        /// Which of them: runs with 0, 1 and so on up to `one_in` take every point between them.
        from: usize,
    },
}

impl Depth {
    /// Whether the kill at this point is also one after which the agent stays dead: where second kills are a sample, these
    /// are one in eight, and each run has others.
    const fn has_hour(self, first: usize) -> bool {
        match self {
            Self::Single | Self::Double { one_in: 1, .. } => true,
            Self::Double { from, .. } => (first + from).is_multiple_of(HOUR_ONE_IN),
        }
    }
}

/// One share of several: a part of the work, for runs that are split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// From 0.
    pub number: usize,
    /// How many shares there are.
    pub of: usize,
}

impl Share {
    /// All of it.
    pub const WHOLE: Self = Self { number: 0, of: 1 };
}

/// Reads a share as people write it: `1/4` is the first of four.
///
/// # Errors
/// When it is none.
pub fn parse_share(text: &str) -> Result<Share, String> {
    let parsed = text.split_once('/').and_then(|(number, of)| Some((number.parse().ok()?, of.parse().ok()?)));
    match parsed {
        Some((number, of)) if (1..=of).contains(&number) => Ok(Share { number: number - 1, of }),
        _ => Err(format!("{text} is no share: write 1/4 for the first of four")),
    }
}

/// A story with its undisturbed course.
struct Reported {
    story: Story,
    places: Vec<Place>,
    reference: Reference,
}

impl Reported {
    /// Whether the whole agent plays the story. A failure or a long wait there makes the agent take the work back and
    /// request it again. The schedules check the result of that.
    const fn is_whole(&self) -> bool {
        matches!(self.story.does, Does::Goals(_))
    }
}

/// A piece of work for one thread.
#[derive(Clone, Copy)]
enum Unit {
    Point { story: usize, first: usize },
    Again { story: usize },
    Failing { story: usize, step: &'static str },
    Tasks { story: usize },
}

impl Unit {
    /// The story and the position in it, for a person who searches for it.
    fn name(self, reported: &[Reported]) -> String {
        let of = |story: usize| reported.get(story).map_or("?", |reported| reported.story.name);
        match self {
            Self::Point { story, first } => format!("{}/{first}", of(story)),
            Self::Again { story } => format!("{}/again", of(story)),
            Self::Failing { story, step } => format!("{}/fail:{step}", of(story)),
            Self::Tasks { story } => format!("{}/tasks", of(story)),
        }
    }
}

#[must_use]
pub fn run_all(stories: &[Story], depth: Depth, share: Share, threads: usize) -> Report {
    let began = Instant::now();
    let report = Mutex::new(Report::default());
    let reported = undisturbed(stories, &report);
    let mut units = units(&reported);
    let mut place = 0..;
    units.retain(|_| place.next().is_some_and(|place: usize| place % share.of == share.number));
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                loop {
                    let nth = next.fetch_add(1, Ordering::SeqCst);
                    let Some(unit) = units.get(nth) else { break };
                    if nth.is_multiple_of(REPORTED_EVERY) {
                        eprintln!(
                            "{nth:>5} of {} points, {:.0} s, at {}",
                            units.len(),
                            began.elapsed().as_secs_f32(),
                            unit.name(&reported)
                        );
                    }
                    work(&reported, *unit, depth, &report);
                }
            });
        }
    });
    let mut report = report.into_inner().unwrap();
    report.took = began.elapsed();
    report
}

/// Each story undisturbed. One that does not come to its end then is not worth killing.
fn undisturbed(stories: &[Story], report: &Mutex<Report>) -> Vec<Reported> {
    let mut all = Vec::new();
    for story in stories {
        let outcome = run(story, &Case::Undisturbed, None);
        let (places, reference) = (outcome.places.clone(), outcome.reference.clone());
        let fine = outcome.violations.is_empty() && outcome.end == Some(story.end);
        report.lock().unwrap().add(story, &Case::Undisturbed, None, &outcome);
        if fine {
            all.push(Reported { story: *story, places, reference });
        } else {
            report.lock().unwrap().wrong_story(story, &outcome);
        }
    }
    all
}

fn units(reported: &[Reported]) -> Vec<Unit> {
    let mut units = Vec::new();
    for (story, held) in reported.iter().enumerate() {
        let first = first_point(held);
        units.extend((first..held.places.len()).map(|first| Unit::Point { story, first }));
        units.push(Unit::Again { story });
        units.push(Unit::Tasks { story });
        // A failure on the way there is checked by the story that covers that way.
        if held.story.kills == KillFrom::TheBeginning && !held.is_whole() {
            let mut steps: Vec<&'static str> = held.places.iter().map(|place| place.step).collect();
            steps.dedup();
            steps.sort_unstable();
            steps.dedup();
            units.extend(
                steps
                    .into_iter()
                    .filter(|step| *step != "operation")
                    .map(|step| Unit::Failing { story, step }),
            );
        }
    }
    units
}

/// For a story of the way back: the failed step's outcome. The first frame is the begin, the second the begin of the undo;
/// its two neighbours before are that outcome.
fn first_point(reported: &Reported) -> usize {
    let frame = Place { step: "operation", side: Side::Before, at: At::Agent(Moment::Frame) };
    match reported.story.kills {
        KillFrom::TheBeginning => 0,
        KillFrom::TheFailure => {
            let mut frames = reported.places.iter().enumerate().filter(|(_, place)| **place == frame);
            frames.nth(1).map_or(0, |(undo, _)| undo.saturating_sub(2))
        }
    }
}

/// Where the second kill happens: at each point that the story names, or at one of these in this many, another one for
/// each first kill.
fn seconds(
    story_one_in: usize,
    (one_in, from): (usize, usize),
    first: usize,
    points: usize,
) -> impl Iterator<Item = usize> {
    let (step, one_in) = (story_one_in.max(1), one_in.max(1));
    let all = (first % step..points).step_by(step).enumerate();
    all.filter(move |(nth, _)| (nth + first + from).is_multiple_of(one_in)).map(|(_, point)| point)
}

fn work(reported: &[Reported], unit: Unit, depth: Depth, report: &Mutex<Report>) {
    let one = |story: usize, place: Option<Place>, case: &Case| -> Outcome {
        let held = &reported[story];
        let outcome = run(&held.story, case, Some(&held.reference));
        report.lock().unwrap().add(&held.story, case, place, &outcome);
        outcome
    };
    match unit {
        Unit::Point { story, first } => {
            let place = Some(reported[story].places[first]);
            let single = one(story, place, &Case::killed(&[first]));
            if !reported[story].is_whole() && depth.has_hour(first) {
                one(story, place, &Case::Killed { at: vec![first], dead_for: AN_HOUR });
            }
            if let Depth::Double { one_in, from } = depth {
                let story_one_in = reported[story].story.second_one_in;
                for second in seconds(story_one_in, (one_in, from), first, single.places.len()) {
                    one(story, place, &Case::killed(&[first, second]));
                }
            }
        }
        Unit::Again { story } => drop(one(story, None, &Case::EachStepAgain)),
        Unit::Tasks { story } => {
            for (end, _) in
                TASK_ENDS.into_iter().filter(|(end, _)| end.is_done() || !reported[story].is_whole())
            {
                one(story, None, &Case::Tasks(end));
            }
        }
        Unit::Failing { story, step } => {
            for (how, _) in HOWS {
                one(story, None, &Case::Failing { step: step.to_owned(), how });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_samples_together_are_every_second_kill_once() {
        for story_one_in in [1, 3] {
            for first in 0..7 {
                let whole: Vec<usize> = seconds(story_one_in, (1, 0), first, 50).collect();
                let mut parts: Vec<usize> =
                    (0..20).flat_map(|from| seconds(story_one_in, (20, from), first, 50)).collect();
                parts.sort_unstable();
                assert_eq!(parts, whole, "first {first}, the story's own one in {story_one_in}");
            }
        }
    }
}
