//! The suites under virtual time, as one program, so that hub, agent and simulator are linked once.
#![forbid(unsafe_code)]

mod hostile;
mod matrix;
mod planted;
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
}

fn main() -> ExitCode {
    let ended = match Command::parse() {
        Command::Matrix(arguments) => matrix::command(&arguments),
        Command::Schedules(arguments) => schedules::command(&arguments),
        Command::Hostile(arguments) => hostile::command(&arguments),
        Command::Planted(arguments) => planted::command(&arguments),
    };
    harness::world::clean_up();
    ended
}
