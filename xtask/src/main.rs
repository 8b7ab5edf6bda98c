//! The workspace's own tasks, one file or folder per subcommand; run as `cargo xtask NAME`.
//!
//! In: command-line arguments. Out: files under `target/`, a report on standard output, an exit code.
//! Deliberately absent: anything a shipped program needs at run time.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod golden;

/// Checks, demo and goldens of the Holdfast workspace.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", version)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Golden archives: the images that guests are restored from.
    #[command(subcommand)]
    Golden(golden::GoldenTask),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().task {
        Task::Golden(task) => golden::run(task),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
