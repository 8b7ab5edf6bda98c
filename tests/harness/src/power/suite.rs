//! The cases of the power-loss suite, run on all cores.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{files, first_start};
use crate::matrix::case::{Case, Outcome, PowerLoss, run};
use crate::matrix::plan::Share;
use crate::story::{self, Story};
use power_disk::dice::Dice;
use power_disk::fate::Fate;

/// The stories that lose their power: a guest that is made, a backup, and signed jobs.
const STORIES: [&str; 4] = ["provision", "backup", "job: destroy", "job: policy"];

/// Opening a store and taking up open operations takes about this many changes.
const RECOVERY_START: u64 = 24;

/// The result of all cases.
#[derive(Debug, Default)]
pub struct Report {
    /// A line for each story: its name, how many changes it has, and how many losses were tried.
    pub stories: Vec<(&'static str, u64, usize)>,
    /// In this many of them the power was lost again during recovery.
    pub twice: usize,
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

/// How often the power can be lost in a story, and the story's course with power.
#[must_use]
pub fn undisturbed(story: &Story) -> Outcome {
    run(story, &Case::PowerLost(vec![PowerLoss { at: u64::MAX, fate: Fate::Kept }]), None)
}

/// How many changes of files a story has.
#[must_use]
pub fn changes(undisturbed: &Outcome) -> u64 {
    undisturbed.changes.first().copied().unwrap_or(0)
}

/// Every loss of a story with this many changes: before each, all unsynced data is lost, is there, or is there in part.
/// Two more lose the power again in the recovery that follows, one of them soon after its start.
pub fn cases(changes: u64) -> impl Iterator<Item = Case> {
    (0..changes).flat_map(move |at| {
        let fates = [Fate::Lost, Fate::Kept, Fate::Torn(at)];
        let once = fates.map(|fate| vec![PowerLoss { at, fate }]);
        let mut dice = Dice::of(at);
        let twice = [RECOVERY_START, changes - at + RECOVERY_START].map(|bound| {
            let again = PowerLoss { at: dice.below(bound), fate: *dice.of_these(&fates) };
            vec![PowerLoss { at, fate: *dice.of_these(&fates) }, again]
        });
        once.into_iter().chain(twice).map(Case::PowerLost)
    })
}

/// Whether the power was also lost in the life after the first loss: its changes ended at the planned cut.
fn went_twice(case: &Case, outcome: &Outcome) -> bool {
    match (case, outcome.changes.as_slice()) {
        (Case::PowerLost(losses), [_, again]) => losses.get(1).is_some_and(|loss| loss.at == *again),
        _ => false,
    }
}

/// Tries a share of the losses of one story, or of each; then also all of those of small files and of a first start.
#[must_use]
pub fn run_all(story: Option<&str>, share: Share, threads: usize) -> Report {
    let mut report = Report::default();
    if story.is_none() {
        let (changes, tried, wrong) = first_start::run(share);
        report.stories.push(("an agent's first start", changes, tried));
        report.wrong = files::run();
        report.wrong.extend(wrong);
    }
    let mut work = Vec::new();
    for story in stories().into_iter().filter(|known| story.is_none_or(|name| known.name == name)) {
        let reported = undisturbed(&story);
        let changes = changes(&reported);
        if changes == 0 || !reported.violations.is_empty() {
            report.wrong.push(format!("{}: {:?}", story.name, reported.violations));
            continue;
        }
        // By chance and not in order, so that every share has cases of each kind.
        let in_share = |nth: usize| Dice::of(nth as u64).below(share.of as u64) == share.number as u64;
        let chosen = cases(changes).enumerate().filter(|(nth, _)| in_share(*nth));
        let cases: Vec<_> = chosen.map(|(_, case)| (story, case, reported.reference.clone())).collect();
        report.stories.push((story.name, changes, cases.len()));
        work.extend(cases);
    }
    let (next, twice, wrong) = (AtomicUsize::new(0), AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                while let Some((story, case, reference)) = work.get(next.fetch_add(1, Ordering::SeqCst)) {
                    let outcome = run(story, case, Some(reference));
                    twice.fetch_add(usize::from(went_twice(case, &outcome)), Ordering::SeqCst);
                    let reported = outcome.violations.iter().map(|violation| {
                        format!("{}/{case}: {}: {}", story.name, violation.name, violation.what)
                    });
                    wrong.lock().unwrap().extend(reported);
                }
            });
        }
    });
    report.twice = twice.into_inner();
    report.wrong.extend(wrong.into_inner().unwrap());
    report
}
