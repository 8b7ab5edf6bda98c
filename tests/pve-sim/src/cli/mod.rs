//! The command line: which subcommand, and its exit code.
mod derive;
mod fault;
mod replay;
mod serve;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// A Proxmox VE that remembers, for tests and for trying things without one.
#[derive(Debug, Parser)]
#[command(name = "pve-sim", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve an instance until SIGTERM or Ctrl-C; prints one JSON line with URL, pins and token secrets.
    Serve(serve::Arguments),
    /// Play recordings against a fresh instance each; exit 1 on a difference that is not understood.
    Replay(replay::Arguments),
    /// Arm faults in a running instance, or edit its guests by hand.
    Fault(fault::Arguments),
    /// Derive the table of calls from a published schema (one method a line).
    DeriveCalls {
        /// The schema.
        schema: PathBuf,
        /// The folder for calls.toml and params.toml.
        out: PathBuf,
    },
}

/// Runs the command.
pub fn run() -> ExitCode {
    let filter = tracing_subscriber::EnvFilter::try_from_env("PVE_SIM_LOG").unwrap_or_else(|_| "warn".into());
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    let result = match Arguments::parse().command {
        Command::Serve(arguments) => serve::run(arguments).map(|()| ExitCode::SUCCESS),
        Command::Fault(arguments) => fault::run(arguments),
        Command::Replay(arguments) => replay::run(&arguments),
        Command::DeriveCalls { schema, out } => derive::run(&schema, &out).map(|()| ExitCode::SUCCESS),
    };
    result.unwrap_or_else(|error| {
        eprintln!("pve-sim: {error:#}");
        ExitCode::from(2)
    })
}
