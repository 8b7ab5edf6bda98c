//! `cargo ci`: five suites of parallel parts.
//!
//! | suite | parts |
//! | --- | --- |
//! | `check` | format, tidy, schemas, deny, lint |
//! | `test` | tests |
//! | `sim` | matrix, schedules, planted, power, hostile |
//! | `e2e` | replicas, browser, process, demo-user |
//! | `system` | package, host, demo-root, stacks, golden |
//!
//! As root everything runs, and a part that cannot run is a failure. As an ordinary user the parts that need root are
//! left out and named at the end. A failure ends only the parts that need what failed. `cargo ci check test` runs two
//! suites, `cargo ci stacks` one part, each with what it needs; what was not asked for counts as skipped.

mod built;
mod cpu;
mod deep;
mod lint;
mod part;
mod pick;
mod profile;
mod rotation;
mod runner;
mod work;

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use clap::builder::PossibleValuesParser;

pub use built::{build, in_memory, is_built, run_tests};
pub use lint::WRAPPER;
pub use rotation::turn;
pub use work::{browser_tests, guest_power};

use crate::packages;
use part::{ALL, Part, Root, Suite};
use pick::State;
use runner::Ended;

/// Which suites.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// These suites or parts alone, with what they need; all of them when none is named.
    #[arg(value_name = "SUITE", value_parser = PossibleValuesParser::new(names()))]
    suites: Vec<String>,
    /// Everything at full depth, for hours; says first what it will cost.
    #[command(flatten)]
    deep: deep::Options,
    /// Write docs/ci.md: where the time goes, by build and suite and test.
    #[arg(long)]
    profile: bool,
}

/// The part that the runner starts this program for.
#[derive(Debug, clap::Args)]
pub struct PartOptions {
    #[arg(value_parser = PossibleValuesParser::new(ALL.iter().map(|part| part.name)))]
    name: String,
}

fn names() -> Vec<&'static str> {
    let parts = ALL.iter().filter(|part| part.suite != Suite::Build).map(|part| part.name);
    Suite::NAMED.iter().map(|suite| suite.name()).chain(parts).collect()
}

/// Runs one part in this process.
pub fn run_part(options: &PartOptions) -> Result<()> {
    match part::named(&options.name) {
        Some(part) => (part.run)(),
        None => bail!("there is no part {}", options.name),
    }
}

/// Runs the suites.
pub fn run(options: &Options) -> Result<()> {
    let began = Instant::now();
    if options.deep.is_wanted() {
        return deep::run(&options.deep);
    }
    packages::prepare(packages::Purpose::Ci)?;
    let (wanted, left_out) = choose(&options.suites, packages::is_root());
    let prepared = began.elapsed();
    let ended = runner::run_all(&wanted, began)?;
    report(&ended, &left_out, prepared, began.elapsed());
    let failed: Vec<&str> =
        ended.iter().filter(|one| one.state != State::Passed).map(|one| one.part.name).collect();
    if options.profile {
        profile::write(&ended, prepared, began.elapsed())?;
    }
    if failed.is_empty() { Ok(()) } else { bail!("failed or not reached: {}", failed.join(", ")) }
}

/// A part that is not run, and why.
struct LeftOut {
    part: &'static Part,
    why: &'static str,
}

/// What is run, in the table's order, and what is left out.
fn choose(asked: &[String], is_root: bool) -> (Vec<&'static Part>, Vec<LeftOut>) {
    let is_asked = |part: &Part| {
        part.suite != Suite::Build
            && (asked.is_empty() || asked.iter().any(|name| name == part.name || name == part.suite.name()))
    };
    let can_run = |part: &Part| part.root == Root::NotNeeded || is_root;
    let mut wanted: Vec<&str> =
        ALL.iter().filter(|part| is_asked(part) && can_run(part)).map(|part| part.name).collect();
    // A part comes after the parts it needs: one walk from the end finds all of them.
    for part in ALL.iter().rev() {
        if wanted.contains(&part.name) {
            wanted
                .extend(part.after.iter().filter(|name| !wanted.contains(name)).copied().collect::<Vec<_>>());
        }
    }
    let (run, rest): (Vec<_>, Vec<_>) = ALL.iter().partition(|part| wanted.contains(&part.name));
    let left_out = rest
        .into_iter()
        .filter(|part| part.suite != Suite::Build)
        .map(|part| LeftOut { part, why: if is_asked(part) { "needs root" } else { "not asked for" } })
        .collect();
    (run, left_out)
}

/// The table at the end, and the line that others read.
fn report(ended: &[Ended], left_out: &[LeftOut], prepared: Duration, whole: Duration) {
    println!("\n=== all suites");
    println!("{:<8} {:<10} {:<9} {:>7.1} s", "build", "packages", "ready", prepared.as_secs_f32());
    let mut rows: Vec<&Ended> = ended.iter().collect();
    rows.sort_by_key(|one| (one.part.suite, std::cmp::Reverse(one.took)));
    for one in &rows {
        let verdict = match one.state {
            State::Passed => "passed",
            State::Failed => "FAILED",
            State::NotReached | State::Waiting | State::Running => "NOT REACHED",
        };
        let (suite, name, seconds) = (one.part.suite.name(), one.part.name, one.took.as_secs_f32());
        let why = one.why.as_deref().unwrap_or_default();
        let cpu = one.cpu.as_secs_f32();
        println!("{suite:<8} {name:<10} {verdict:<9} {seconds:>7.1} s {cpu:>7.1} s of a core {why}");
    }
    for LeftOut { part, why } in left_out {
        println!("{:<8} {:<10} LEFT OUT  ({why})", part.suite.name(), part.name);
    }
    println!("took {:.1} minutes", whole.as_secs_f32() / 60.0);
    let counted: Vec<&&Ended> = rows.iter().filter(|one| one.part.suite != Suite::Build).collect();
    let passed = counted.iter().filter(|one| one.state == State::Passed).count();
    println!("{passed} passed, {} failed, {} skipped", counted.len() - passed, left_out.len());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(asked: &[&str], is_root: bool) -> Vec<&'static str> {
        let asked: Vec<String> = asked.iter().map(|name| (*name).to_owned()).collect();
        choose(&asked, is_root).0.iter().map(|part| part.name).collect()
    }

    #[test]
    fn a_suite_brings_what_its_parts_need() {
        assert_eq!(
            chosen(&["sim"], true),
            ["programs", "matrix", "schedules", "planted", "power", "hostile"]
        );
        assert_eq!(chosen(&["host"], true), ["programs", "tools", "images", "package", "host"]);
        assert_eq!(chosen(&["format"], false), ["format"]);
    }

    #[test]
    fn everything_is_run_when_nothing_is_named_and_root_alone_runs_what_needs_root() {
        assert_eq!(chosen(&[], true).len(), ALL.len());
        let as_user = chosen(&[], false);
        assert!(!as_user.contains(&"stacks") && as_user.contains(&"process"));
        let (_, left_out) = choose(&["stacks".to_owned()], false);
        assert!(left_out.iter().any(|one| one.part.name == "stacks" && one.why == "needs root"));
    }
}
