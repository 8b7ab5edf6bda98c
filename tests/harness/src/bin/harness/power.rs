//! The power loss suite: `cargo xtask power`.

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use clap::Args;
use harness::matrix::plan::{Share, parse_share};
use harness::power::hub::HubReport;
use harness::power::suite::run_all;

/// Cuts the power of the agent's disk before each change of a file, and checks what is found against the invariants.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Only a share of all, such as `1/4`.
    #[arg(long, value_parser = parse_share)]
    shard: Option<Share>,
    /// Only this story, such as `provision` or `hub`.
    #[arg(long)]
    story: Option<String>,
    /// Threads; as many as there are cores by default.
    #[arg(long)]
    threads: Option<usize>,
}

/// Serves a disk until standard input ends.
pub fn serve(folder: &Path, cut_at: u64) -> ExitCode {
    match harness::power::server::serve(folder, cut_at) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("no disk could be mounted at {}: {error}", folder.display());
            ExitCode::FAILURE
        }
    }
}

pub fn command(arguments: &Arguments) -> ExitCode {
    let began = Instant::now();
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let (share, threads) = (arguments.shard.unwrap_or(Share::WHOLE), arguments.threads.unwrap_or(cores));
    let story = arguments.story.as_deref();
    let report = run_all(story, share, threads);
    let hub = match story {
        None | Some("hub") => harness::power::hub::run(share, threads),
        Some(_) => HubReport::default(),
    };
    let mut table = comfy_table::Table::new();
    table.load_preset(comfy_table::presets::UTF8_BORDERS_ONLY).set_header([
        "story",
        "changes",
        "losses tried",
    ]);
    for (name, changes, tried) in &report.stories {
        table.add_row([(*name).to_owned(), changes.to_string(), tried.to_string()]);
    }
    table.add_row(["a hub's first day".to_owned(), hub.changes.to_string(), hub.tried.to_string()]);
    println!("{table}");
    let wrong: Vec<&String> = report.wrong.iter().chain(&hub.wrong).collect();
    for what in &wrong {
        println!("VIOLATION {what}");
    }
    println!(
        "{} losses of power, {} of them again during recovery, in {:.1} s, {} violations; one again: `cargo xtask matrix --case STORY/CASE`",
        report.stories.iter().map(|(_, _, tried)| tried).sum::<usize>() + hub.tried,
        report.twice + hub.twice,
        began.elapsed().as_secs_f64(),
        wrong.len()
    );
    if wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
