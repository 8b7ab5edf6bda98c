//! Which cases there are, and running them on all cores.
//!
//! In: stories, and how deep to go. Out: a [`Report`]. First each story is told undisturbed, which gives its points. Then,
//! for each point: killed there; killed there and again at each point of the recovery that follows, or at one in so many of
//! them (that recovery's points are known from the single kill); killed there and back only after an hour. Beside that: each
//! step done again, each step failing in each way, and every task ending otherwise than it should.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use agentd::execute::failpoint::{Moment, Side};

use super::case::{Case, HOWS, Outcome, TASK_ENDS, run};
use super::table::Report;
use crate::invariant::Reference;
use crate::points::{At, Place};
use crate::story::{Does, KillFrom, Story};

/// An agent that stays dead so long finds its tickets expired and its tasks ended.
const AN_HOUR: Duration = Duration::from_secs(3_600);

/// How it gets on is told once in so many points.
const TOLD_EVERY: usize = 50;

/// How deep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// Killed once.
    Single,
    /// Killed once, and again in the recovery: at each of its points, or at one in so many, another for each first.
    Double {
        /// Of so many points one; 1 is each. A story that asks for fewer has fewer.
        one_in: usize,
    },
}

/// A story with how it goes undisturbed.
struct Told {
    story: Story,
    places: Vec<Place>,
    reference: Reference,
}

impl Told {
    /// Whether the whole agent tells it. What fails there, or waits too long, is taken back and wished for anew: what that
    /// comes to is for the schedules to say.
    const fn is_whole(&self) -> bool {
        matches!(self.story.does, Does::Wishes(_))
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

/// Runs everything.
#[must_use]
pub fn run_all(stories: &[Story], depth: Depth, threads: usize) -> Report {
    let began = Instant::now();
    let report = Mutex::new(Report::default());
    let told = tell(stories, &report);
    let units = units(&told);
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                loop {
                    let nth = next.fetch_add(1, Ordering::SeqCst);
                    let Some(unit) = units.get(nth) else { break };
                    if nth.is_multiple_of(TOLD_EVERY) {
                        eprintln!(
                            "{nth:>5} of {} points, {:.0} s",
                            units.len(),
                            began.elapsed().as_secs_f32()
                        );
                    }
                    work(&told, *unit, depth, &report);
                }
            });
        }
    });
    let mut report = report.into_inner().unwrap();
    report.took = began.elapsed();
    report
}

/// Each story undisturbed. One that does not come to its end then is not worth killing.
fn tell(stories: &[Story], report: &Mutex<Report>) -> Vec<Told> {
    let mut all = Vec::new();
    for story in stories {
        let outcome = run(story, &Case::Undisturbed, None);
        let (places, reference) = (outcome.places.clone(), outcome.reference.clone());
        let fine = outcome.violations.is_empty() && outcome.end == Some(story.end);
        report.lock().unwrap().add(story, &Case::Undisturbed, None, &outcome);
        if fine {
            all.push(Told { story: *story, places, reference });
        } else {
            report.lock().unwrap().wrong_story(story, &outcome);
        }
    }
    all
}

fn units(told: &[Told]) -> Vec<Unit> {
    let mut units = Vec::new();
    for (story, held) in told.iter().enumerate() {
        let first = first_point(held);
        units.extend((first..held.places.len()).map(|first| Unit::Point { story, first }));
        units.push(Unit::Again { story });
        units.push(Unit::Tasks { story });
        // What fails on the way there is judged by the story of the way there.
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
fn first_point(told: &Told) -> usize {
    let frame = Place { step: "operation", side: Side::Before, at: At::Agent(Moment::Frame) };
    match told.story.kills {
        KillFrom::TheBeginning => 0,
        KillFrom::TheFailure => {
            let mut frames = told.places.iter().enumerate().filter(|(_, place)| **place == frame);
            frames.nth(1).map_or(0, |(undo, _)| undo.saturating_sub(2))
        }
    }
}

/// Where the second kill strikes: everywhere, or where the story or who asks says so at one point in so many, another for each
/// first.
fn seconds(told: &Told, one_in: usize, first: usize, points: usize) -> impl Iterator<Item = usize> {
    let step = told.story.second_one_in.max(one_in).max(1);
    (first % step..points).step_by(step)
}

fn work(told: &[Told], unit: Unit, depth: Depth, report: &Mutex<Report>) {
    let one = |story: usize, place: Option<Place>, case: &Case| -> Outcome {
        let held = &told[story];
        let outcome = run(&held.story, case, Some(&held.reference));
        report.lock().unwrap().add(&held.story, case, place, &outcome);
        outcome
    };
    match unit {
        Unit::Point { story, first } => {
            let place = Some(told[story].places[first]);
            let single = one(story, place, &Case::killed(&[first]));
            if !told[story].is_whole() {
                one(story, place, &Case::Killed { at: vec![first], dead_for: AN_HOUR });
            }
            if let Depth::Double { one_in } = depth {
                for second in seconds(&told[story], one_in, first, single.places.len()) {
                    one(story, place, &Case::killed(&[first, second]));
                }
            }
        }
        Unit::Again { story } => drop(one(story, None, &Case::EachStepAgain)),
        Unit::Tasks { story } => {
            for (end, _) in TASK_ENDS.into_iter().filter(|(end, _)| end.is_done() || !told[story].is_whole())
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
