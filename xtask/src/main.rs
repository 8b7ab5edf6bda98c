//! The tasks of this workspace: `cargo xtask NAME`.
//!
//! In: command-line arguments. Out: files under `target/`, a report on standard output, an exit code.
//! Deliberately absent: anything a shipped program needs at run time.
#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod advisories;
mod authorization;
mod axe;
mod bench;
mod bench_goals;
mod book;
mod ci;
mod conditions;
mod demo;
mod e2e_suite;
mod fuzz;
mod golden;
mod host;
mod limits;
mod matrix;
mod metrics;
mod mutants;
mod newer_postgres;
mod package;
mod packages;
mod page;
mod planted;
mod postgres;
mod release;
mod schedules;
mod schemas;
mod schemathesis;
mod screens;
mod shipped;
mod stacks;
mod test_programs;
mod tidy;
mod tools;
mod workspace;

use matrix::Build;

/// Checks, demo and goldens of the Holdfast workspace.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", version)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Known faults of the crates that the lock files name; or the file of them made anew.
    Advisories {
        /// A clone of <https://github.com/rustsec/advisory-db>.
        #[arg(long, value_name = "CLONE")]
        from: Option<std::path::PathBuf>,
    },
    /// Run every benchmark and write docs/benchmarks.md.
    BenchAll {
        /// Only these, such as `plan`; the page keeps what the others gave last on this machine.
        names: Vec<String>,
    },
    /// The pages of docs/ as static HTML, to be read without a network.
    Book,
    /// Every check and every test; what CI runs.
    Ci(ci::Options),
    /// One part of CI, in this process.
    #[command(hide = true)]
    Part(ci::PartOptions),
    /// A whole Holdfast on this machine: simulator, hub, agent, three guests.
    Demo(demo::Options),
    /// The process-level tests, with what they need; words are handed to the test runner.
    E2e {
        /// Such as the name of one test.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
    /// The fuzz targets, each for a number of runs or for a time.
    Fuzz(fuzz::Options),
    /// Golden archives: the images that guests are restored from.
    #[command(subcommand)]
    Golden(golden::GoldenTask),
    /// A stolen hub for weeks; words are handed on, such as `--from 7 --count 3 --days 30`.
    Hostile {
        /// Such as `--days 7`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
    /// A booted Debian that installs the packages, lives with them and purges them; needs root.
    Host,
    /// The crash matrix, as a table; words are handed on, such as `--case provision/12,5`.
    Matrix {
        /// Such as `--story provision`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
    /// Small changes to the code that decides, each of which a test must notice; needs cargo-mutants.
    Mutants(mutants::Options),
    /// The four Debian packages, made and judged by lintian.
    Package(package::PackageOptions),
    /// Small bugs, planted one by one in a copy of the agent: each must be found. Words are handed on, such as `--bug no_lock`.
    Planted {
        /// Such as `--bug no_lock`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
    /// A disk that loses its power before each change of a file; words are handed on, such as `--shard 1/40`. Needs root.
    Power {
        /// Such as `--shard 1/40`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
    /// A release: programs built twice and compared, packages, bills of materials, manifest, apt repository.
    Release(release::ReleaseOptions),
    /// One of the two builds of a release, into the target folder of its environment.
    #[command(hide = true)]
    OneBuild(release::OneBuildOptions),
    /// Random fault schedules; words are handed on, such as `--seed 17`.
    Schedules {
        /// Such as `--seconds 600`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
    /// Write the JSON Schemas of all wire documents, or check that they are fresh.
    Schemas {
        /// Compare only.
        #[arg(long)]
        check: bool,
    },
    /// Pictures of every page of the hub, in docs/screens.
    Screens,
    /// PostgreSQL and Docker Compose in a booted guest: backed up under load, restored, booted; needs root.
    Stacks,
    /// The graph of imports between files, crate by crate, as a table.
    Imports {
        /// Another checkout, to compare with.
        #[arg(long)]
        of: Option<std::path::PathBuf>,
    },
    /// The house rules that a program can check.
    Tidy,
}

/// `cargo demo -- --once` and `cargo demo --once` mean the same: the alias has its own `--` already, so a second one
/// arrives here as an argument.
fn words(all: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut seen = false;
    all.filter(|word| {
        let extra = word == "--" && !seen;
        seen |= extra;
        !extra
    })
    .collect()
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse_from(words(std::env::args_os())).task {
        Task::Advisories { from: Some(clone) } => advisories::refresh(&workspace::root(), &clone),
        Task::Advisories { from: None } => advisories::check(&workspace::root()),
        Task::Book => book::run(),
        Task::BenchAll { names } => bench::run(&names),
        Task::Ci(options) => ci::run(&options),
        Task::Part(options) => ci::run_part(&options),
        Task::Demo(options) => demo::run(&options),
        Task::E2e { words } => e2e_suite::run(&words),
        Task::Fuzz(options) => fuzz::run(&options),
        Task::Golden(task) => golden::run(task),
        Task::Host => host::both(),
        Task::Hostile { words } => schedules::hostile(&words, Build::AsTests),
        Task::Matrix { words } => matrix::run(&words, Build::AsTests),
        Task::Mutants(options) => mutants::run(&options),
        Task::Package(options) => package::run(&options),
        Task::Power { words } if words.is_empty() => {
            schedules::power(&words, Build::AsTests).and_then(|()| ci::guest_power("1/1"))
        }
        Task::Power { words } => schedules::power(&words, Build::AsTests),
        Task::Planted { words } => planted::run(&words),
        Task::Release(options) => release::run(&options),
        Task::OneBuild(options) => release::one_build(&options),
        Task::Schedules { words } => schedules::run(&words, Build::AsTests),
        Task::Schemas { check } => {
            let mode = if check { schemas::Mode::Check } else { schemas::Mode::Write };
            schemas::run(&workspace::root(), mode)
        }
        Task::Screens => screens::run(),
        Task::Stacks => stacks::run(),
        Task::Imports { of } => tidy::imports(&of.unwrap_or_else(workspace::root)),
        Task::Tidy => tidy::run(&workspace::root()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
