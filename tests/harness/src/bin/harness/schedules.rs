//! Random fault schedules: `cargo xtask schedules`.

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use harness::schedule::{Verdict, kept, plot, run, run_script};

/// A seed chooses operations, faults, kills, hand edits and documents; when the faults stop, all must hold.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Only this seed, printed in full. `HARNESS_SEED` does the same.
    #[arg(long)]
    seed: Option<u64>,
    /// The first seed.
    #[arg(long, default_value_t = 1)]
    from: u64,
    /// How many fresh seeds, however long they take; without it, as many as the time allows.
    #[arg(long)]
    count: Option<u64>,
    /// How long, in seconds.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Threads; as many as there are cores by default.
    #[arg(long)]
    threads: Option<usize>,
}

/// Each plot is played with this many seeds.
const SEEDS_OF_PLOTS: u64 = 5;

type Play = Box<dyn Fn() -> Verdict + Send + Sync>;

/// The plays that always run, whatever the time limit.
fn certain(arguments: &Arguments) -> Vec<Play> {
    let mut all: Vec<Play> = Vec::new();
    for plot in plot::ALL {
        all.extend(
            (1..=SEEDS_OF_PLOTS)
                .map(|seed| -> Play { Box::new(move || run_script(seed, &(plot.script)(seed))) }),
        );
    }
    let counted = arguments.from..arguments.from + arguments.count.unwrap_or_default();
    all.extend(kept().into_iter().chain(counted).map(|seed| -> Play { Box::new(move || run(seed)) }));
    all
}

pub fn command(arguments: &Arguments) -> ExitCode {
    let named = std::env::var("HARNESS_SEED").ok().and_then(|text| text.parse().ok());
    if let Some(seed) = arguments.seed.or(named) {
        let verdict = run(seed);
        report(&verdict);
        return if verdict.violations.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let (certain, began) = (certain(arguments), Instant::now());
    let seconds = if arguments.count.is_some() { 0 } else { arguments.seconds };
    let (place, fresh) = (AtomicUsize::new(0), AtomicU64::new(arguments.from));
    let (played, bad) = (AtomicU64::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..arguments.threads.unwrap_or(cores).max(1) {
            scope.spawn(|| {
                loop {
                    let verdict = match certain.get(place.fetch_add(1, Ordering::SeqCst)) {
                        Some(play) => play(),
                        None if began.elapsed() < Duration::from_secs(seconds) => {
                            run(fresh.fetch_add(1, Ordering::SeqCst))
                        }
                        None => break,
                    };
                    played.fetch_add(1, Ordering::SeqCst);
                    if let (false, Ok(mut bad)) = (verdict.violations.is_empty(), bad.lock()) {
                        bad.push(verdict);
                    }
                }
            });
        }
    });
    let (played, bad) = (played.into_inner(), bad.into_inner().unwrap_or_default());
    bad.iter().for_each(report);
    let a_second = played as f64 / began.elapsed().as_secs_f64();
    println!("{played} schedules, {a_second:.1} a second, {} with violations", bad.len());
    if bad.is_empty() && played > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn report(verdict: &Verdict) {
    println!("── seed {} (hash {:016x}); again: HARNESS_SEED={}", verdict.seed, verdict.hash, verdict.seed);
    verdict.story.iter().for_each(|line| println!("   {line}"));
    verdict
        .violations
        .iter()
        .for_each(|violation| println!("   VIOLATION {}: {}", violation.name, violation.what));
}
