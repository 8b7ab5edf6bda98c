//! The hunt for planted bugs.
//!
//! Those within the agent are in the copy of the tree that `cargo xtask planted` makes.

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use clap::Args;
use harness::matrix::plan::{Share, parse_share};
use harness::planted::{Find, Plant, find, table};

/// Plants each bug and searches for it.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Only this one, by its name.
    #[arg(long)]
    bug: Option<String>,
    /// Only a share of them, such as `1/4`.
    #[arg(long, value_parser = parse_share)]
    shard: Option<Share>,
    /// Threads; as many as there are cores by default.
    #[arg(long)]
    threads: Option<usize>,
}

pub fn command(arguments: &Arguments) -> ExitCode {
    let chosen = |bug: &Plant| arguments.bug.as_deref().is_none_or(|name| name == bug.name());
    let share = arguments.shard.unwrap_or(Share::WHOLE);
    let all = Plant::all().filter(chosen).enumerate();
    let bugs: Vec<Plant> =
        all.filter(|(nth, _)| nth % share.of == share.number).map(|(_, bug)| bug).collect();
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let (began, next, found) = (Instant::now(), AtomicUsize::new(0), Mutex::<Vec<Find>>::default());
    std::thread::scope(|scope| {
        for _ in 0..arguments.threads.unwrap_or(cores).max(1) {
            scope.spawn(|| {
                while let Some(bug) = bugs.get(next.fetch_add(1, Ordering::SeqCst)) {
                    if let (Some(find), Ok(mut found)) = (find(*bug), found.lock()) {
                        found.push(find);
                    }
                }
            });
        }
    });
    let mut found = found.into_inner().unwrap_or_default();
    found.sort_by_key(|find| find.bug);
    println!("{}", table(&found));
    for bug in bugs.iter().filter(|bug| !found.iter().any(|find| find.bug == **bug)) {
        println!("NOT FOUND: {}, {}", bug.name(), bug.text());
    }
    let took = began.elapsed().as_secs_f64();
    println!("{} of {} planted bugs found in {took:.1} s", found.len(), bugs.len());
    if !planted::IN_COPY {
        println!("bugs within the agent are not in this build: `cargo xtask planted` has them");
    }
    if found.len() == bugs.len() && !bugs.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
