//! `holdfast`: the command line of operators.
//!
//! What comes in: arguments, a desired document from a file, the hub's answers. What goes out: tables for people or JSON
//! for programs on standard output, questions and progress on standard error, one exit code per kind of failure (see
//! [`exit`]). Deliberately absent: a decision about a host (the agent's), a secret on the command line.
#![forbid(unsafe_code)]

mod args;
mod certificate_page;
mod certificate_text;
mod clock;
mod cmd;
mod cmd_errors;
mod config;
mod document_file;
mod error;
mod exit_codes;
mod export;
mod hub;
mod job_draft;
mod job_file;
mod keygen;
mod pins;
mod progress;
mod prompt;
mod release_errors;
mod release_file;
mod release_proof;
mod render;
mod screen;
mod state;
mod state_errors;
mod tunnel_errors;

use std::process::ExitCode;

use holdfast_manual::Section;

fn main() -> ExitCode {
    let args = match holdfast_manual::parse::<args::Args>(Section::User) {
        Ok(args) => args,
        Err(code) => return code,
    };
    let screen = screen::Screen::new(&args);
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("holdfast: the kernel gives no event loop: {error}");
            return ExitCode::from(error::FAILED);
        }
    };
    match runtime.block_on(cmd::run(args.command, args.config, &screen)) {
        Ok(()) => ExitCode::from(error::DONE),
        Err(error) => {
            screen.error(&error);
            ExitCode::from(error.exit_code())
        }
    }
}
