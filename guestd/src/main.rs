//! `guestd`: the guest agent.
//!
//! What comes in: a one-time bootstrap token in the environment of PID 1, then the agent's answers on the bridge. What goes out:
//! `bootstrap.json`, a hello at the pace the agent asks for, and for people `guestd status`, `snapshot`, `rollback`, `backup`, `audit`. Deliberately absent: root
//! on the host, a listening port, any secret on the command line or in the log.
//!
//! ```text
//!        no bootstrap token, a bad one, a bad bootstrap.json
//!   ┌──────────────────────────────────────────────┐
//!   │ set-up (says why) ─bootstrap► claim ──token──► serving ──hello──┐
//!   └───────────▲──────────────────────│               │  ▲───────────┘
//!               └─────claim refused────┘               └─token refused, and a fresh bootstrap token is there─► claim
//! ```
#![forbid(unsafe_code)]

mod metrics_file;
#[macro_use]
mod notes;

mod agent;
mod args;
mod attempt;
mod audit;
mod backoff;
mod backup_loop;
mod bootstrap_env;
mod bootstrap_file;
mod clock;
mod commands;
mod control;
mod decide;
mod driver;
mod failpoint;
mod file;
mod isolation_check;
mod own_program;
mod paths;
mod program;
mod quiesce;
mod restart;
mod restore_test;
mod root_disk;
mod run;
mod stacks;
mod state;
mod status;
mod status_file;
mod status_stacks;
mod update;
mod watch;
mod watchdog;
mod window;
mod work;

use std::process::ExitCode;

use holdfast_manual::Section;
use holdfast_protocol::json::chain;

fn main() -> ExitCode {
    let args = match holdfast_manual::parse::<args::Args>(Section::Administration) {
        Ok(args) => args,
        Err(code) => return code,
    };
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("guestd: the event loop cannot be created: {error}");
            return ExitCode::from(args::EXIT_FAILED);
        }
    };
    let ended = match args.command {
        args::Command::Run(run) => runtime.block_on(run::run(&run)).map_err(|e| (e.exit_code(), chain(&e))),
        args::Command::Status(status) => {
            runtime.block_on(status::status(&status)).map_err(|e| (e.exit_code(), chain(&e)))
        }
        args::Command::Snapshot(asked) => {
            runtime.block_on(work::snapshot(&asked)).map_err(|e| (e.exit_code(), chain(&e)))
        }
        args::Command::Rollback(asked) => {
            runtime.block_on(work::roll_back(&asked)).map_err(|e| (e.exit_code(), chain(&e)))
        }
        args::Command::Backup(asked) => {
            runtime.block_on(commands::backup::backup(&asked)).map_err(|e| (e.exit_code(), chain(&e)))
        }
        args::Command::Try(asked) => runtime
            .block_on(commands::try_command::try_command(&asked))
            .map_err(|e| (e.exit_code(), chain(&e))),
        args::Command::Volumes(asked) => {
            runtime.block_on(commands::volumes::volumes(&asked)).map_err(|e| (e.exit_code(), chain(&e)))
        }
        args::Command::AptHook(asked) => Ok(runtime.block_on(commands::apt::hook(&asked))),
        args::Command::AptJudge(asked) => Ok(runtime.block_on(commands::apt::check(&asked))),
        args::Command::Upgrade(asked) => Ok(runtime.block_on(commands::upgrade::upgrade(&asked))),
        args::Command::Quiesce(asked) => {
            runtime.block_on(commands::dry_run::dry_run(&asked)).map_err(|e| (e.exit_code(), chain(&e)))
        }
        args::Command::Resume(asked) => {
            runtime.block_on(commands::resume::resume(&asked)).map_err(|e| (e.exit_code(), chain(&e)))
        }
        args::Command::TakeBack(asked) => {
            runtime.block_on(update::take_back::run(&asked)).map_err(|e| (e.exit_code(), chain(&e)))
        }
        args::Command::Audit(asked) => {
            runtime.block_on(audit::audit(&asked)).map_err(|e| (e.exit_code(), chain(&e)))
        }
    };
    match ended {
        Ok(code) => ExitCode::from(code),
        Err((code, message)) => {
            eprintln!("guestd: {message}");
            ExitCode::from(code)
        }
    }
}
