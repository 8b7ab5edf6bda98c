//! The suites under virtual time, as one program.
#![forbid(unsafe_code)]

mod hostile;
mod matrix;
mod planted;
mod power;
mod schedules;

use std::process::ExitCode;

use clap::Parser;

/// Hub, agent, simulator and controllers in one process.
#[derive(Debug, Parser)]
#[command(version)]
enum Command {
    /// Every operation killed at every point.
    Matrix(matrix::Arguments),
    /// Random fault schedules by seed.
    Schedules(schedules::Arguments),
    /// A stolen hub, by seed.
    Hostile(hostile::Arguments),
    /// Planted bugs, each of which must be found.
    Planted(planted::Arguments),
    /// Serves a disk to the program that started this one.
    #[command(hide = true, name = "power-disk")]
    PowerDisk {
        /// The folder that shows it.
        folder: std::path::PathBuf,
        /// The power is lost before this change.
        cut_at: u64,
    },
    /// A disk that loses its power.
    Power(power::Arguments),
}

fn main() -> ExitCode {
    let ended = match Command::parse() {
        Command::PowerDisk { folder, cut_at } => return power::serve(&folder, cut_at),
        Command::Matrix(arguments) => matrix::command(&arguments),
        Command::Schedules(arguments) => schedules::command(&arguments),
        Command::Hostile(arguments) => hostile::command(&arguments),
        Command::Planted(arguments) => planted::command(&arguments),
        Command::Power(arguments) => power::command(&arguments),
    };
    harness::world::clean_up();
    ended
}
