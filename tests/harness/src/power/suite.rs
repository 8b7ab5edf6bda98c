//! The cases of the power-loss suite, run on all cores.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::fate::Fate;
use super::files;
use crate::matrix::case::{Case, Outcome, run};
use crate::matrix::plan::Share;
use crate::story::{self, Story};

/// The stories that lose their power: a guest that is made, a backup, and signed jobs.
const STORIES: [&str; 4] = ["provision", "backup", "job: destroy", "job: policy"];

/// What came of all of it.
#[derive(Debug, Default)]
pub struct Report {
    /// A line for each story: its name, how many changes it has, and how many losses were tried.
    pub stories: Vec<(&'static str, u64, usize)>,
    /// Each case that does not hold, by its name, and why.
    pub wrong: Vec<String>,
}

/// The stories, by their names.
#[must_use]
pub fn stories() -> Vec<Story> {
    let all: Vec<_> = story::all().into_iter().filter(|story| STORIES.contains(&story.name)).collect();
    assert_eq!(all.len(), STORIES.len(), "a story has another name");
    all
}

/// How often the power can go in a story, and how it goes when the power stays.
#[must_use]
pub fn undisturbed(story: &Story) -> Outcome {
    run(story, &Case::PowerLost { at: u64::MAX, fate: Fate::Kept }, None)
}

/// Every loss of a story with so many changes: before each, all that was not synced is lost, is there, or is there in part.
pub fn cases(changes: u64) -> impl Iterator<Item = Case> {
    (0..changes)
        .flat_map(|at| [Fate::Lost, Fate::Kept, Fate::Torn(at)].map(|fate| Case::PowerLost { at, fate }))
}

/// Tries a share of the losses of each story, and all of those of small files.
#[must_use]
pub fn run_all(share: Share, threads: usize) -> Report {
    let mut report = Report { wrong: files::run(), ..Report::default() };
    let mut work = Vec::new();
    for story in stories() {
        let reported = undisturbed(&story);
        if reported.changes == 0 || !reported.violations.is_empty() {
            report.wrong.push(format!("{}: {:?}", story.name, reported.violations));
            continue;
        }
        let chosen = cases(reported.changes).enumerate().filter(|(nth, _)| nth % share.of == share.number);
        let cases: Vec<_> = chosen.map(|(_, case)| (story, case, reported.reference.clone())).collect();
        report.stories.push((story.name, reported.changes, cases.len()));
        work.extend(cases);
    }
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                while let Some((story, case, reference)) = work.get(next.fetch_add(1, Ordering::SeqCst)) {
                    let outcome = run(story, case, Some(reference));
                    let reported = outcome.violations.iter().map(|violation| {
                        format!("{}/{case}: {}: {}", story.name, violation.name, violation.what)
                    });
                    wrong.lock().unwrap().extend(reported);
                }
            });
        }
    });
    report.wrong.extend(wrong.into_inner().unwrap());
    report
}
