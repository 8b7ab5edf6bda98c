//! What each part of CI does.

use std::ffi::OsStr;
use std::path::PathBuf;

use anyhow::{Context, Result};
use e2e::stage::Runtime;

use super::{built, rotation};
use crate::matrix::Build;
use crate::package::PackageOptions;
use crate::schemas::{self, Mode};
use crate::tools::{DEB, DENY, RAGE};
use crate::workspace::{self, cargo, must, target};
use crate::{demo, e2e_suite, golden, tidy};

pub fn format() -> Result<()> {
    must(cargo().args(["fmt", "--all", "--check"]))?;
    must(cargo().args(["fmt", "--manifest-path", "fuzz/Cargo.toml", "--check"]))
}

pub fn tidy_all() -> Result<()> {
    tidy::run(&workspace::root())
}

pub fn schemas_fresh() -> Result<()> {
    schemas::run(&workspace::root(), Mode::Check)
}

/// Programs, tests, the list of the tests, and the small golden that several parts read.
pub fn build_everything() -> Result<()> {
    let programs = crate::test_programs::for_tests()?;
    built::list()?;
    demo::build::golden(&programs, Runtime::Process).map(drop)
}

pub fn fetch_tools() -> Result<()> {
    DEB.ready()?;
    crate::axe::ready().map(drop)
}

pub fn fetch_images() -> Result<()> {
    crate::host::debian().map(drop)?;
    golden::fetch(golden::Image::Small)?;
    golden::fetch(golden::Image::Stacks)
}

/// Two checks: cargo-deny on the dependency graph, and the known faults of its crates, which needs no network here.
pub fn deny() -> Result<()> {
    crate::advisories::check(&workspace::root())?;
    must(workspace::program(DENY.ready()?).current_dir(workspace::root()).args([
        "--all-features",
        "check",
        "bans",
        "licenses",
        "sources",
    ]))
}

/// What nextest reported of the part `tests`.
pub const REPORT: &str = "tests.xml";

/// All but what needs a part of its own. The crash matrix and the seeds of schedules and hubs belong to the suite
/// `sim`. They are tests too, for a developer who runs `cargo test -p harness`.
const TESTS: &str = "not package(e2e) and not binary(replicas) and not binary(browser) and not (package(harness) and test(/^(matrix|schedules::the_first|\
                     schedules::the_plots|schedules::seeds|hostile)/)) and not test(/^debian::/)";

pub fn tests() -> Result<()> {
    let memory = built::in_memory()?;
    let turn = rotation::turn()?.to_string();
    println!(
        "turn {turn} of the inputs that rotate; again: HOLDFAST_CI_TURN={turn} cargo nextest run --workspace -E 'test(NAME)'"
    );
    let postgres = crate::postgres::unpacked_programs()?;
    let mut env = vec![("TMPDIR", memory.path().as_os_str()), ("HOLDFAST_CI_TURN", OsStr::new(&turn))];
    env.extend(postgres.as_ref().map(|programs| ("HOLDFAST_POSTGRES", programs.as_os_str())));
    let ran = built::run_tests(TESTS, &[], env);
    // Other parts of this run write a report of the same name.
    std::fs::copy(target().join("nextest/ci/junit.xml"), target().join("ci").join(REPORT))?;
    ran
}

/// The stories of the store, and what is PostgreSQL's own. The part `tests` has run them on the machine's version.
const POSTGRES_TESTS: &str =
    "package(hubd) and (test(/^store::postgres/) or test(/^postgres::/) or test(/^transfer::/))";

pub fn newer_postgres() -> Result<()> {
    let memory = built::in_memory()?;
    let programs = crate::newer_postgres::unpack(&memory.path().join("postgresql-17"))?;
    let env = [("TMPDIR", memory.path().as_os_str()), ("HOLDFAST_POSTGRES", programs.as_os_str())];
    built::run_tests(POSTGRES_TESTS, &[], env)
}

/// Agents of the replica suite in each run, and at full depth.
pub const REPLICA_AGENTS: u32 = 100;
pub const REPLICA_AGENTS_DEEP: u32 = 1_000;

/// Several hubs on one PostgreSQL server under so many agents. What it prints is its table.
pub fn replicas_under(agents: u32) -> Result<()> {
    let memory = built::in_memory()?;
    let (agents, postgres) = (agents.to_string(), crate::postgres::unpacked_programs()?);
    let mut env =
        vec![("TMPDIR", memory.path().as_os_str()), ("HOLDFAST_REPLICA_AGENTS", OsStr::new(&agents))];
    env.extend(postgres.as_ref().map(|programs| ("HOLDFAST_POSTGRES", programs.as_os_str())));
    let words = ["--success-output", "immediate"].map(str::to_owned);
    built::run_tests("package(hubd) and binary(replicas)", &words, env)
}

pub fn replicas() -> Result<()> {
    replicas_under(REPLICA_AGENTS)
}

/// The tests in a browser, or those that a filter of nextest leaves of them.
pub fn browser_tests(filter: &str, more: &[(&str, &OsStr)]) -> Result<()> {
    let (memory, axe) = (built::in_memory()?, crate::axe::ready()?);
    let env = [("TMPDIR", memory.path().as_os_str()), ("HOLDFAST_AXE", axe.as_os_str())];
    built::run_tests(
        &format!("package(hubd) and binary(browser) {filter}"),
        &[],
        env.into_iter().chain(more.iter().copied()),
    )
}

pub fn browser() -> Result<()> {
    browser_tests("", &[])
}

pub fn package() -> Result<()> {
    crate::package::run(&PackageOptions { quick: true })
}

pub fn process() -> Result<()> {
    e2e_suite::run(&[])
}

/// The beginning of the story; all of it is a unit of `--deep`.
pub fn demo_root() -> Result<()> {
    demo::once(Runtime::Nspawn, demo::Length::Quick)
}

pub fn demo_user() -> Result<()> {
    demo::once_as_user()
}

/// Every single kill; of the second kills this run's part.
pub fn matrix() -> Result<()> {
    let (parts, turn) = (rotation::DOUBLE_KILL_PARTS, rotation::turn()?);
    let part = turn % parts;
    println!(
        "turn {turn}: second kills, part {part} of {parts}; again: HOLDFAST_CI_TURN={turn} cargo ci matrix"
    );
    let words = ["--again-at-one-in", &parts.to_string(), "--again-from", &part.to_string()];
    crate::matrix::run(&words.map(str::to_owned), Build::AsTests)
}

pub fn schedules() -> Result<()> {
    let turn = rotation::turn()?;
    let (first, count) = (rotation::SCHEDULES.first(turn), rotation::SCHEDULES.a_run);
    println!("turn {turn}: {count} seeds from {first} of {}", rotation::SCHEDULES.of);
    let words = ["--from", &first.to_string(), "--count", &count.to_string()];
    crate::schedules::run(&words.map(str::to_owned), Build::AsTests)
}

/// The escrow file opened by rage, which is built for it: two minutes on a machine that has none.
pub fn rage() -> Result<()> {
    let tools = RAGE.ready()?.parent().map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(std::env::split_paths(&path).chain(tools))
        .context("a folder of PATH has a colon")?;
    built::run_tests(
        "package(holdfast-recovery) and test(/stock_rage/)",
        &["--run-ignored".to_owned(), "only".to_owned()],
        [("PATH", path.as_os_str())],
    )
}

/// This run's part of the bugs that are planted around the agent; those within it need a build of their own, at full depth.
pub fn planted() -> Result<()> {
    let (parts, turn) = (rotation::PLANTED_PARTS, rotation::turn()?);
    let part = 1 + turn % parts;
    println!("turn {turn}: bugs around the agent, part {part} of {parts}");
    crate::schedules::planted(&["--shard".to_owned(), format!("{part}/{parts}")], Build::AsTests)
}

/// This run's part of the losses of power.
pub fn power() -> Result<()> {
    let (parts, turn) = (rotation::POWER_PARTS, rotation::turn()?);
    let part = 1 + turn % parts;
    println!("turn {turn}: losses of power, part {part} of {parts}");
    crate::schedules::power(&["--shard".to_owned(), format!("{part}/{parts}")], Build::AsTests)?;
    let parts = rotation::GUEST_POWER_PARTS;
    guest_power(&format!("{}/{parts}", 1 + turn % parts))
}

/// A share of a guest's losses of power in a window.
pub fn guest_power(share: &str) -> Result<()> {
    built::run_tests(
        "package(guestd) and test(/^power_loss/)",
        &["--run-ignored".to_owned(), "only".to_owned()],
        [("GUESTD_POWER_SHARE", OsStr::new(share))],
    )
}

/// Those that once found something, and this run's, for some days.
pub fn hostile() -> Result<()> {
    let turn = rotation::turn()?;
    let (first, count) = (rotation::HOSTILE.first(turn), rotation::HOSTILE.a_run);
    println!("turn {turn}: {count} seeds from {first} of {}", rotation::HOSTILE.of);
    let words = [
        "--from",
        &first.to_string(),
        "--count",
        &count.to_string(),
        "--days",
        &rotation::HOSTILE_DAYS.to_string(),
    ];
    crate::schedules::hostile(&words.map(str::to_owned), Build::AsTests)
}
