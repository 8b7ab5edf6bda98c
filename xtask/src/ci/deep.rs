//! `cargo ci --deep`: runs at full depth, in resumable units.
//!
//! In: the units, and what is known of earlier runs (`target/ci/deep.jsonl`, and the table in `docs/ci.md`). Out: what
//! each unit prints, and its row in the table. A unit that passed on this commit is not run again.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use e2e::stage::Runtime;
use serde::{Deserialize, Serialize};

use super::{rotation, work};
use crate::matrix::Build;
use crate::mutants::{self, Part as Mutated};
use crate::workspace::{self, root, target};
use crate::{demo, fuzz, matrix, package, page, schedules};

/// The table's heading in `docs/ci.md`.
const HEADING: &str = "\n## Runs at full depth\n";

/// The crash matrix with all second kills is run in this many units.
const MATRIX_SHARDS: u64 = 8;

/// Stolen hubs, of thirty days each, are run in this many units, and each unit has this many seeds.
const HOSTILE_SHARDS: u64 = 10;
const HOSTILE_SEEDS: u64 = 5;

/// Inputs of each fuzz target; CI takes two thousand, and without libFuzzer.
const FUZZ_RUNS: u64 = 50_000;

/// Everything, or a share of it.
#[derive(Debug, clap::Args)]
#[group(id = "deep options")]
pub struct Options {
    /// Everything at full depth, for hours; says first what it will cost. Run it again to go on where it was ended.
    #[arg(long, conflicts_with = "suites")]
    deep: bool,
    /// With `--deep`: this share of the units, such as `1/3`.
    #[arg(long, requires = "deep", value_parser = parse_share)]
    shard: Option<Share>,
    /// With `--deep`: only these units.
    #[arg(long, requires = "deep")]
    unit: Vec<String>,
    /// With `--deep`: say what there is and what it will cost, and run nothing.
    #[arg(long, requires = "deep")]
    list: bool,
}

impl Options {
    /// Whether it was requested.
    pub const fn is_wanted(&self) -> bool {
        self.deep
    }
}

/// One share of a number of shares, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Share {
    number: usize,
    of: usize,
}

fn parse_share(text: &str) -> Result<Share, String> {
    let parsed = text
        .split_once('/')
        .and_then(|(number, of)| Some(Share { number: number.parse().ok()?, of: of.parse().ok()? }));
    match parsed {
        Some(share) if (1..=share.of).contains(&share.number) => Ok(share),
        _ => Err(format!("{text} is no share: write 1/3 for the first of three")),
    }
}

/// What is run at a time.
struct Unit {
    name: String,
    shows: &'static str,
    work: Work,
}

/// What a unit does.
enum Work {
    /// A share of the crash matrix with all second kills.
    Matrix {
        shard: u64,
    },
    Schedules,
    /// A share of the stolen hubs.
    Hostile {
        shard: u64,
    },
    Demo,
    Planted,
    Power,
    Fuzz,
    Mutants(Mutated),
    Packages,
    Rage,
    NewerPostgres,
    Replicas,
    Schemathesis,
}

fn units() -> Vec<Unit> {
    let unit = |name: &str, shows, work| Unit { name: name.to_owned(), shows, work };
    let mut all: Vec<Unit> = (0..MATRIX_SHARDS)
        .map(|shard| Unit {
            name: format!("matrix-{}", shard + 1),
            shows: "every operation killed at every point, and again at every point of its recovery",
            work: Work::Matrix { shard },
        })
        .collect();
    all.extend((0..HOSTILE_SHARDS).map(|shard| Unit {
        name: format!("hostile-{}", shard + 1),
        shows: "five stolen hubs, thirty days each",
        work: Work::Hostile { shard },
    }));
    all.extend([
        unit("schedules", "all seeds that CI rotates through", Work::Schedules),
        unit("power", "the power goes before every change of a file", Work::Power),
        unit("demo", "the whole story of the demo with booted guests", Work::Demo),
        unit("planted", "every planted bug is found", Work::Planted),
        unit("fuzz", "every fuzz target under libFuzzer, which looks at what an input reaches", Work::Fuzz),
        unit("packages", "the packages as they are shipped, judged by lintian", Work::Packages),
        unit("replicas", "three hubs on one PostgreSQL under a thousand agents", Work::Replicas),
        unit(
            "schemathesis",
            "the hub's API called by its own description, as an admin and as a customer",
            Work::Schemathesis,
        ),
        unit("rage", "a second program of age opens the escrow file", Work::Rage),
        unit("postgres-17", "the hub's stories on PostgreSQL of Debian 13", Work::NewerPostgres),
        unit("mutants-gate", "mutants of the gate", Work::Mutants(Mutated::Gate)),
        unit("mutants-ledger", "mutants of the ledger of jobs", Work::Mutants(Mutated::Ledger)),
        unit(
            "mutants-protocol",
            "mutants of jobs, ids and the audit's form",
            Work::Mutants(Mutated::Protocol),
        ),
        unit("mutants-trust", "mutants of signatures and policy", Work::Mutants(Mutated::Trust)),
        unit(
            "mutants-admission",
            "mutants of what a listener admits and how often",
            Work::Mutants(Mutated::Admission),
        ),
        unit("mutants-holder", "mutants of who holds a guest's token", Work::Mutants(Mutated::Holder)),
        unit("mutants-local-api", "mutants of the local API's guards", Work::Mutants(Mutated::LocalApi)),
        unit("mutants-schedule", "mutants of due and removed backups", Work::Mutants(Mutated::Schedule)),
        unit("mutants-hub-auth", "mutants of the hub's authorization", Work::Mutants(Mutated::HubAuth)),
    ]);
    all
}

impl Work {
    fn run(&self) -> Result<()> {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        match self {
            Self::Matrix { shard } => {
                matrix::run(&words(&["--shard", &format!("{}/{MATRIX_SHARDS}", shard + 1)]), Build::Deep)
            }
            Self::Schedules => schedules::run(
                &words(&["--from", "1", "--count", &rotation::SCHEDULES.of.to_string()]),
                Build::Deep,
            ),
            Self::Hostile { shard } => {
                let (first, count) = (1 + shard * HOSTILE_SEEDS, HOSTILE_SEEDS);
                let seeds = ["--from", &first.to_string(), "--count", &count.to_string()];
                schedules::hostile(&words(&[&seeds[..], &["--fresh", "--days", "30"]].concat()), Build::Deep)
            }
            Self::Power => schedules::power(&[], Build::Deep).and_then(|()| work::guest_power("1/1")),
            Self::Demo => demo::once(Runtime::Nspawn, demo::Length::Whole),
            Self::Planted => crate::planted::run(&[]),
            Self::Fuzz => fuzz::each(FUZZ_RUNS),
            Self::Mutants(part) => mutants::run(&mutants::Options::all_of(*part)),
            Self::Packages => package::run(&package::PackageOptions { quick: false }),
            Self::Rage => work::rage(),
            Self::Schemathesis => crate::schemathesis::run(),
            Self::NewerPostgres => work::newer_postgres(),
            Self::Replicas => work::replicas_under(work::REPLICA_AGENTS_DEEP),
        }
    }
}

/// One run of a unit.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct Run {
    unit: String,
    commit: String,
    /// Such as `2026-11-23`.
    day: String,
    seconds: u64,
    passed: bool,
}

fn state_file() -> PathBuf {
    target().join("ci/deep.jsonl")
}

/// The last run of each unit: on this machine, else as the page says.
fn known() -> Result<BTreeMap<String, Run>> {
    let page = std::fs::read_to_string(root().join("docs/ci.md")).unwrap_or_default();
    let mut runs: BTreeMap<String, Run> = page::section(&page, HEADING)
        .unwrap_or_default()
        .lines()
        .filter_map(row_of)
        .map(|run| (run.unit.clone(), run))
        .collect();
    let text = std::fs::read_to_string(state_file()).unwrap_or_default();
    for line in text.lines() {
        let run: Run = serde_json::from_str(line).context("target/ci/deep.jsonl: remove it")?;
        runs.insert(run.unit.clone(), run);
    }
    Ok(runs)
}

/// Runs what has not passed on this commit.
pub fn run(options: &Options) -> Result<()> {
    let all = units();
    for name in &options.unit {
        ensure!(all.iter().any(|unit| unit.name == *name), "there is no unit {name}: see --list");
    }
    let commit = commit()?;
    let known = known()?;
    let passed_here = |unit: &Unit| {
        known.get(&unit.name).is_some_and(|run| run.passed && run.commit == commit && !commit.ends_with('+'))
    };
    let is_wanted = |place: usize, unit: &Unit| {
        let in_share = options.shard.is_none_or(|share| place % share.of == share.number - 1);
        in_share && (options.unit.is_empty() || options.unit.contains(&unit.name))
    };
    let wanted: Vec<&Unit> = all
        .iter()
        .enumerate()
        .filter(|(place, unit)| is_wanted(*place, unit))
        .map(|(_, unit)| unit)
        .collect();
    let (passed, todo): (Vec<&Unit>, Vec<&Unit>) = wanted.into_iter().partition(|unit| passed_here(unit));
    cost(&todo, &passed, &known, &commit);
    if options.list {
        return Ok(());
    }
    crate::packages::prepare(crate::packages::Purpose::Ci)?;
    let mut failed = Vec::new();
    for unit in todo {
        println!("\n=== {} — {}", unit.name, unit.shows);
        let began = Instant::now();
        let outcome = unit.work.run();
        let run = Run {
            unit: unit.name.clone(),
            commit: tested(&commit, &self::commit()?),
            day: day()?,
            seconds: began.elapsed().as_secs(),
            passed: outcome.is_ok(),
        };
        if let Err(error) = outcome {
            println!("FAILED {}: {error:#}", unit.name);
            failed.push(unit.name.clone());
        }
        keep(&run)?;
    }
    let reported = if failed.is_empty() { Ok(()) } else { bail!("failed: {}", failed.join(", ")) };
    println!("written: docs/ci.md");
    reported
}

/// The commit that is recorded for a unit: with a `+` where the tree changed while it ran.
fn tested(before: &str, after: &str) -> String {
    if before == after { before.to_owned() } else { format!("{}+", before.trim_end_matches('+')) }
}

/// Says what there is to do and how long it took last.
fn cost(todo: &[&Unit], passed: &[&Unit], known: &BTreeMap<String, Run>, commit: &str) {
    println!("on commit {commit}:");
    let mut whole = Duration::ZERO;
    for unit in todo {
        let last = known.get(&unit.name).map(|run| Duration::from_secs(run.seconds));
        let says =
            last.map_or("not known".to_owned(), |last| format!("{:.1} min", last.as_secs_f32() / 60.0));
        println!("  {:<18} {says:>10}  {}", unit.name, unit.shows);
        whole += last.unwrap_or_default();
    }
    for unit in passed {
        println!("  {:<18} {:>10}  passed on this commit", unit.name, "done");
    }
    println!("{} units, about {:.0} minutes where it is known", todo.len(), whole.as_secs_f32() / 60.0);
}

/// Into the machine's own list, and into the page.
fn keep(run: &Run) -> Result<()> {
    use std::io::Write as _;
    let path = state_file();
    std::fs::create_dir_all(target().join("ci"))?;
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(&path)?;
    writeln!(file, "{}", serde_json::to_string(run)?)?;
    let known = known()?;
    let mut body = "\nWritten by `cargo ci --deep`: the last run of each unit. A `+` means that the tree had changes beside \
                    its commit.\n\n| unit | commit | day | seconds | verdict |\n| --- | --- | --- | --- | --- |\n"
        .to_owned();
    for unit in units() {
        if let Some(run) = known.get(&unit.name) {
            let verdict = if run.passed { "passed" } else { "FAILED" };
            writeln!(body, "| {} | {} | {} | {} | {verdict} |", run.unit, run.commit, run.day, run.seconds)?;
        }
    }
    let page_path = root().join("docs/ci.md");
    let page = std::fs::read_to_string(&page_path).context("cannot read docs/ci.md")?;
    std::fs::write(&page_path, page::with_section(&page, HEADING, &body)).context("cannot write docs/ci.md")
}

fn row_of(line: &str) -> Option<Run> {
    let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
    let [unit, commit, day, seconds, verdict] = cells.as_slice() else { return None };
    Some(Run {
        unit: (*unit).to_owned(),
        commit: (*commit).to_owned(),
        day: (*day).to_owned(),
        seconds: seconds.parse().ok()?,
        passed: *verdict == "passed",
    })
}

/// Short, with a `+` where the tree has changes that are not in it; the page with this table does not count.
fn commit() -> Result<String> {
    let git = |words: &[&str]| -> Result<String> {
        let output = workspace::program("git").current_dir(root()).args(words).output()?;
        ensure!(output.status.success(), "git {} ended with {}", words.join(" "), output.status);
        Ok(String::from_utf8(output.stdout).context("git's words are not text")?.trim().to_owned())
    };
    let short = git(&["rev-parse", "--short", "HEAD"])?;
    let changed = git(&["status", "--porcelain", "--", ".", ":!docs/ci.md"])?;
    Ok(if changed.is_empty() { short } else { format!("{short}+") })
}

/// Today, in UTC.
pub fn day() -> Result<String> {
    let output = workspace::program("date").args(["-u", "+%Y-%m-%d"]).output()?;
    Ok(String::from_utf8(output.stdout).context("a day is text")?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_of_the_page_is_read_back() {
        let run = row_of("| matrix-1 | abc1234+ | 2026-11-23 | 312 | passed |").unwrap();
        assert_eq!(
            (run.unit.as_str(), run.commit.as_str(), run.seconds, run.passed),
            ("matrix-1", "abc1234+", 312, true)
        );
        assert!(row_of("| unit | commit | day | seconds | verdict |").is_none());
    }

    #[test]
    fn a_tree_that_changed_meanwhile_is_marked() {
        assert_eq!(tested("abc", "abc"), "abc");
        assert_eq!(tested("abc", "abc+"), "abc+");
        assert_eq!(tested("abc", "def"), "abc+");
        assert_eq!(tested("abc+", "abc"), "abc+");
    }

    #[test]
    fn a_share_is_one_of_so_many() {
        assert_eq!(parse_share("1/3"), Ok(Share { number: 1, of: 3 }));
        for wrong in ["0/3", "4/3", "3", "x/3", ""] {
            assert!(parse_share(wrong).is_err(), "{wrong}");
        }
    }
}
