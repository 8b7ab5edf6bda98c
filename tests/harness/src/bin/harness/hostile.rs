//! The hostile hub suite: `cargo xtask hostile`.

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use clap::Args;
use harness::hostile::{Length, Verdict, kept, run, shortest};

/// A stolen hub sends arbitrary answers for weeks; no data of a customer may be lost.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The first seed.
    #[arg(long, default_value_t = 1)]
    from: u64,
    /// How many seeds.
    #[arg(long, default_value_t = 2)]
    count: u64,
    /// Simulated days of each.
    #[arg(long, default_value_t = 30)]
    days: u64,
    /// No more moves than this: to repeat a run with the shortest failing prefix.
    #[arg(long)]
    moves: Option<u64>,
    /// Threads; as many as there are cores by default.
    #[arg(long)]
    threads: Option<usize>,
    /// Only the fresh seeds, not the pinned ones.
    #[arg(long)]
    fresh: bool,
    /// Print the last events, whatever the result is.
    #[arg(long)]
    report: bool,
}

pub fn command(arguments: &Arguments) -> ExitCode {
    let days = arguments.days;
    let mut runs = if arguments.fresh { Vec::new() } else { kept() };
    let length = Length { days, moves: arguments.moves.unwrap_or(u64::MAX) };
    runs.extend((arguments.from..arguments.from + arguments.count).map(|seed| (seed, length)));
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let (began, next, done) =
        (Instant::now(), AtomicUsize::new(0), Mutex::<Vec<(Length, Verdict)>>::default());
    std::thread::scope(|scope| {
        for _ in 0..arguments.threads.unwrap_or(cores).max(1) {
            scope.spawn(|| {
                while let Some((seed, length)) = runs.get(next.fetch_add(1, Ordering::SeqCst)) {
                    let verdict = run(*seed, *length);
                    if let Ok(mut done) = done.lock() {
                        done.push((*length, verdict));
                    }
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_default();
    done.sort_by_key(|(length, verdict)| (verdict.seed, length.days));
    println!("{}", table(&done));
    let bad: Vec<_> = done.iter().filter(|(_, verdict)| !verdict.violations.is_empty()).collect();
    for (length, verdict) in done.iter().filter(|_| arguments.report) {
        report(*length, verdict);
    }
    for (length, verdict) in bad.iter().filter(|_| !arguments.report) {
        match shortest(verdict.seed, length.days).filter(|_| arguments.moves.is_none()) {
            Some((length, verdict)) => report(length, &verdict),
            None => report(*length, verdict),
        }
    }
    let took = began.elapsed().as_secs_f64();
    println!("{} seeds in {took:.1} s, {} with violations", done.len(), bad.len());
    if bad.is_empty() && !done.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn table(done: &[(Length, Verdict)]) -> String {
    let mut table = comfy_table::Table::new();
    table.load_preset(comfy_table::presets::UTF8_BORDERS_ONLY).set_header([
        "seed",
        "days",
        "moves",
        "check-ins",
        "documents taken",
        "refused",
        "jobs signed",
        "taken",
        "texts refused",
        "operations",
        "audit",
        "violations",
    ]);
    for (length, verdict) in done {
        let figures = &verdict.figures;
        let [signed, taken, refused] = figures.jobs;
        table.add_row([
            verdict.seed.to_string(),
            length.days.to_string(),
            figures.moves.to_string(),
            figures.checkins.to_string(),
            figures.documents[0].to_string(),
            figures.documents[1].to_string(),
            signed.to_string(),
            taken.to_string(),
            refused.to_string(),
            figures.operations.to_string(),
            figures.audit.to_string(),
            verdict.violations.len().to_string(),
        ]);
    }
    table.to_string()
}

fn report(length: Length, verdict: &Verdict) {
    let (seed, days, moves) = (verdict.seed, verdict.day.min(length.days), verdict.figures.moves);
    println!(
        "── seed {seed}; again: cargo xtask hostile --fresh --tell --from {seed} --count 1 --days {days} --moves {moves}"
    );
    verdict.story.iter().for_each(|line| println!("   {line}"));
    for violation in &verdict.violations {
        println!("   VIOLATION {}: {}", violation.name, violation.what);
    }
}
