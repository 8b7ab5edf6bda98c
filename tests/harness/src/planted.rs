//! The search for each planted bug.
//!
//! In: a bug. Out: where it was found and after how many cases, or that it was not found. Each bug is searched for
//! where it would show: in one family of the matrix's cases, compared with the story's course without the bug, in a
//! plot or by a stolen hub, seed by seed. Nothing depends on a clock: a number of cases bounds every search. A bug
//! within the agent exists in the copy of the tree that `cargo xtask planted` makes, and nowhere else. Deliberately
//! absent: a bug that is known not to be found; there is none.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};

mod bug;

pub use self::bug::Bug;
use crate::backup_weeks;
use crate::ground::Ground;
use crate::hostile;
use crate::matrix::case::{Case, HOWS, Outcome, TASK_ENDS, run};
use crate::outside::{self, Outside};
use crate::power::{files, suite};
use crate::schedule::plot::{self, Plot};
use crate::schedule::run_script;
use crate::story::{self, Story};
use crate::world_template::Template;

/// This many seeds of a plot are tried.
pub const SEEDS_MAX: u64 = 20;

/// This many stolen hubs are tried; each takes seconds.
const THIEVES_MAX: u64 = 4;

/// A bug, and where it is planted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Plant {
    /// Within the agent.
    Inside(Bug),
    /// Around it, in the harness's wrappers.
    Around(Outside),
}

impl Plant {
    /// All that this build has.
    pub fn all() -> impl Iterator<Item = Self> {
        let inside = Bug::ALL.iter().filter(|_| planted::IN_COPY).map(|bug| Self::Inside(*bug));
        inside.chain(Outside::ALL.map(Self::Around))
    }

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Inside(bug) => bug.name(),
            Self::Around(bug) => bug.name(),
        }
    }

    /// What it does.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Inside(bug) => bug.text(),
            Self::Around(bug) => bug.text(),
        }
    }

    const fn hunt(self) -> Hunt {
        match self {
            Self::Inside(bug) => hunt(bug),
            Self::Around(Outside::ForgetStandstill | Outside::SettlePoints) => Hunt::Stolen(3),
            Self::Around(Outside::MoreMemory) => Hunt::StolenAndJudged { first: 1, days: 6, judge: "growth" },
            // With the first seed no job waits for long.
            Self::Around(Outside::StopJobs) => Hunt::StolenAndJudged { first: 2, days: 6, judge: "text" },
            Self::Around(Outside::OtherSnapshot) => {
                Hunt::StolenAndJudged { first: 1, days: 6, judge: "text" }
            }
        }
    }
}

/// Where a bug was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Find {
    pub bug: Plant,
    /// The case or the seed.
    pub at: String,
    /// After how many cases.
    pub cases: u64,
    /// The first thing that did not hold.
    pub what: String,
}

/// Takes the bug out again, whatever happens.
struct Planted;

impl Planted {
    fn bug(bug: Plant) -> Self {
        match bug {
            Plant::Inside(bug) => planted::plant(Some(bug.name())),
            Plant::Around(bug) => outside::plant(Some(bug)),
        }
        Self
    }
}

impl Drop for Planted {
    fn drop(&mut self) {
        planted::plant(None);
        outside::plant(None);
    }
}

/// The undisturbed course of a story without bugs.
fn sound(story: &Story) -> Arc<Outcome> {
    static REPORTED: OnceLock<Mutex<BTreeMap<&'static str, Arc<Outcome>>>> = OnceLock::new();
    let known = REPORTED.get_or_init(Mutex::default).lock().unwrap().get(story.name).cloned();
    known.unwrap_or_else(|| {
        let outcome = Arc::new(run(story, &Case::Undisturbed, None));
        assert!(outcome.violations.is_empty(), "{}: {:?}", story.name, outcome.violations);
        REPORTED.get().unwrap().lock().unwrap().insert(story.name, Arc::clone(&outcome));
        outcome
    })
}

/// Where a bug is searched for.
enum Hunt {
    /// In the matrix, in cases of this family of these stories.
    Matrix(Family, &'static [&'static str]),
    /// In a plot, seed by seed.
    Plot(Plot),
    /// By a stolen hub, seed by seed, this many days each.
    Stolen(u64),
    /// A stolen hub from this seed on; the judge of this name must be the one that finds it.
    StolenAndJudged { first: u64, days: u64, judge: &'static str },
    /// In nights of backups.
    Nights,
    /// In small files whose disk loses its power.
    Files,
}

/// A family of the matrix's cases.
#[derive(Clone, Copy)]
enum Family {
    /// No fault.
    Undisturbed,
    /// Tasks end otherwise than they should.
    Tasks,
    /// Each step failing in each way.
    Failing,
    /// A kill at each point.
    Killed,
    /// A loss of power before each change of a file.
    PowerLost,
}

const fn hunt(bug: Bug) -> Hunt {
    match bug {
        Bug::SkipFsync => Hunt::Matrix(Family::Killed, &["start"]),
        Bug::EffectBeforeIntent | Bug::DropAuditLine => Hunt::Matrix(Family::Undisturbed, &["start"]),
        Bug::SkipAdoption => Hunt::Matrix(Family::Killed, &["provision"]),
        Bug::RepostBlindly => Hunt::Matrix(Family::Failing, &["backup"]),
        Bug::UnknownIsFailed | Bug::WarningsAreFailed => Hunt::Matrix(Family::Tasks, &["snapshot"]),
        Bug::TrustTaskOk => Hunt::Matrix(Family::Tasks, &["grow"]),
        Bug::LeaveBootstrapToken => Hunt::Matrix(Family::Undisturbed, &["provision"]),
        Bug::ForgetProtection => Hunt::Matrix(Family::Undisturbed, &["attach_volume"]),
        Bug::EndlessTries => Hunt::Matrix(Family::Tasks, &["start"]),
        Bug::PruneProved | Bug::CountMissing => Hunt::Nights,
        Bug::TrustTagAlone => Hunt::Plot(plot::IMPOSTOR),
        Bug::TrustNumberAlone => Hunt::Plot(plot::REUSE),
        Bug::DestroyUnknownVolumes => Hunt::Plot(plot::ATTACHED),
        Bug::HiddenIsGone => Hunt::Plot(plot::HIDDEN),
        Bug::ReuseNumber => Hunt::Plot(plot::ANOTHER),
        Bug::StaleDocument => Hunt::Plot(plot::OLDER),
        Bug::NoLock => Hunt::Plot(plot::SECOND),
        Bug::ForgetJobs | Bug::RenewAsAnother => Hunt::Stolen(6),
        Bug::LateCapture => Hunt::Matrix(Family::Undisturbed, &["quiesced_backup, too slow"]),
        Bug::EarlyGrant => Hunt::Matrix(Family::Undisturbed, &["whole: a window waits"]),
        Bug::LooseBrake | Bug::EndlessRefusals => Hunt::Stolen(4),
        Bug::StoreNotSynced => Hunt::Matrix(Family::PowerLost, &["start"]),
        Bug::FileNotSynced | Bug::FolderNotSynced => Hunt::Files,
        Bug::GiveTakenAddress | Bug::PassOverWithdrawal => Hunt::Stolen(3),
    }
}

/// Searches for a bug until it is found.
#[must_use]
pub fn find(bug: Plant) -> Option<Find> {
    match bug.hunt() {
        Hunt::Matrix(family, stories) => in_the_matrix(bug, family, stories),
        Hunt::Plot(plot) => in_a_plot(bug, plot),
        Hunt::Stolen(days) => by_a_thief(bug, 1, days, |_| true),
        Hunt::StolenAndJudged { first, days, judge } => by_a_thief(bug, first, days, |name| name == judge),
        Hunt::Nights => in_the_nights(bug),
        Hunt::Files => in_files(bug),
    }
}

fn in_the_matrix(bug: Plant, family: Family, names: &[&str]) -> Option<Find> {
    let stories: Vec<_> = story::all().into_iter().filter(|story| names.contains(&story.name)).collect();
    assert_eq!(stories.len(), names.len(), "there is no story of that name");
    // Grounds and references are made by an agent without bugs.
    let sound: Vec<_> = stories.iter().map(|story| (story, sound(story))).collect();
    let _planted = Planted::bug(bug);
    let mut cases = 0;
    for (story, reported) in &sound {
        for case in family.cases(story, reported) {
            cases += 1;
            let outcome = run(story, &case, Some(&reported.reference));
            if let Some(first) = outcome.violations.first() {
                let (at, what) =
                    (format!("{}/{case}", story.name), format!("{}: {}", first.name, first.what));
                return Some(Find { bug, at, cases, what });
            }
        }
    }
    None
}

fn in_a_plot(bug: Plant, plot: Plot) -> Option<Find> {
    for ground in (1..=SEEDS_MAX).map(|seed| (plot.script)(seed).ground) {
        drop(Template::of(ground));
    }
    let _planted = Planted::bug(bug);
    (1..=SEEDS_MAX).find_map(|seed| {
        let verdict = run_script(seed, &(plot.script)(seed));
        let first = verdict.violations.first()?;
        let what = format!("{}: {}", first.name, first.what);
        Some(Find { bug, at: format!("plot {}, seed {seed}", plot.name), cases: seed, what })
    })
}

fn by_a_thief(bug: Plant, first: u64, days: u64, is_its_judge: impl Fn(&str) -> bool) -> Option<Find> {
    drop(Template::of(Ground::TwoGuests));
    let _planted = Planted::bug(bug);
    (first..first + THIEVES_MAX).find_map(|seed| {
        let verdict = hostile::run(seed, hostile::Length::days(days));
        let first = verdict.violations.iter().find(|violation| is_its_judge(violation.name))?;
        let what = format!("{}: {}", first.name, first.what);
        let at = format!("stolen hub, seed {seed}, day {}", verdict.day);
        Some(Find { bug, at, cases: seed, what })
    })
}

fn in_the_nights(bug: Plant) -> Option<Find> {
    drop(Template::of(Ground::GuestRuns));
    let _planted = Planted::bug(bug);
    let what = backup_weeks::run().into_iter().next()?;
    Some(Find { bug, at: "nights of backups".to_owned(), cases: 1, what })
}

fn in_files(bug: Plant) -> Option<Find> {
    let _planted = Planted::bug(bug);
    let what = files::run().into_iter().next()?;
    Some(Find { bug, at: "small files that lose their power".to_owned(), cases: 1, what })
}

impl Family {
    fn cases(self, story: &Story, reported: &Outcome) -> Vec<Case> {
        match self {
            Self::PowerLost => suite::cases(suite::changes(&suite::undisturbed(story))).collect(),
            Self::Undisturbed => vec![Case::Undisturbed],
            Self::Tasks => TASK_ENDS.map(|(end, _)| Case::Tasks(end)).to_vec(),
            Self::Failing => {
                let mut steps: Vec<&str> = reported
                    .places
                    .iter()
                    .map(|place| place.step)
                    .filter(|step| *step != "operation")
                    .collect();
                steps.sort_unstable();
                steps.dedup();
                let each = |step: &str| HOWS.map(|(how, _)| Case::Failing { step: step.to_owned(), how });
                steps.into_iter().flat_map(each).collect()
            }
            Self::Killed => (0..reported.places.len()).map(|at| Case::killed(&[at])).collect(),
        }
    }
}

/// What was found, as a table.
#[must_use]
pub fn table(finds: &[Find]) -> String {
    let mut table = comfy_table::Table::new();
    table.load_preset(comfy_table::presets::UTF8_BORDERS_ONLY).set_header([
        "planted bug",
        "found at",
        "cases",
        "by",
    ]);
    for find in finds {
        let what: String = find.what.chars().take(90).collect();
        table.add_row([find.bug.name(), &find.at, &find.cases.to_string(), &what]);
    }
    table.to_string()
}
