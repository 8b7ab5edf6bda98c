//! The crash matrix: `cargo xtask matrix`.

use std::process::ExitCode;

use clap::Args;
use harness::matrix::case::{Case, run};
use harness::matrix::plan::{Depth, Share, parse_share, run_all};
use harness::story;

/// Kills every operation at every point, once and twice, and checks each end against the invariants.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Only stories whose name begins with this text.
    #[arg(long, default_value = "")]
    story: String,
    /// Only once, not again in the recovery.
    #[arg(long)]
    single: bool,
    /// Second kills at one point of the recovery in this many, another one for each first kill.
    #[arg(long, default_value_t = 1, conflicts_with = "single")]
    again_at_one_in: usize,
    /// Which of these points: 0 and up to the number before `--again-at-one-in`.
    #[arg(long, default_value_t = 0)]
    again_from: usize,
    /// Only a share of all, such as `1/4`.
    #[arg(long, value_parser = parse_share)]
    shard: Option<Share>,
    /// Threads; as many as there are cores by default.
    #[arg(long)]
    threads: Option<usize>,
    /// Just one case, as a violation names it: `provision/12,5`.
    #[arg(long)]
    case: Option<String>,
}

pub fn command(arguments: &Arguments) -> ExitCode {
    if let Some(name) = &arguments.case {
        return one(name);
    }
    let stories: Vec<_> =
        story::all().into_iter().filter(|story| story.name.starts_with(&arguments.story)).collect();
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let double = Depth::Double { one_in: arguments.again_at_one_in, from: arguments.again_from };
    let depth = if arguments.single { Depth::Single } else { double };
    let report =
        run_all(&stories, depth, arguments.shard.unwrap_or(Share::WHOLE), arguments.threads.unwrap_or(cores));
    println!("{}\n{}", report.table(), report.summary());
    if report.violations() == 0 && report.cases() > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Prints one case in full.
fn one(name: &str) -> ExitCode {
    let found = name.rsplit_once('/').and_then(|(story, case)| {
        let story = story::all().into_iter().find(|held| held.name == story)?;
        Some((story, Case::parse(case)?))
    });
    let Some((story, case)) = found else {
        eprintln!("there is no case {name}: a case is STORY/CASE, such as `provision/12,5`");
        return ExitCode::FAILURE;
    };
    let reference = run(&story, &Case::Undisturbed, None).reference;
    let outcome = run(&story, &case, Some(&reference));
    for (nth, place) in outcome.places.iter().enumerate() {
        println!("{nth:>4} {place}");
    }
    for place in &outcome.died {
        println!("killed at {place}");
    }
    println!("{}\nended {:?}, hash {:016x}", outcome.reported, outcome.end, outcome.hash);
    for violation in &outcome.violations {
        println!("VIOLATION {}: {}", violation.name, violation.what);
    }
    if outcome.violations.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
