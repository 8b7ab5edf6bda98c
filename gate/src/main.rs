//! The gate of the agent's builds: start check, verdict, way back.
//!
//! In: a verb. `start` runs as root before every start of the agent; `watch` runs beside a build on trial. Out: the link
//! that the agent's unit starts, and the one state file. It is installed by the package alone and is never updated with
//! the agent. Deliberately absent: a network, and any way to install a build that the release keys did not sign.
#![forbid(unsafe_code)]

mod agent;
mod clock;
mod failpoint;
mod install;
mod settings;
mod slots_folder;
mod start;
mod status;
mod store;
mod unit;
mod watch;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use crate::settings::{Settings, SettingsError};

const SETTINGS: &str = "/etc/holdfast/agent-gate.toml";

const USAGE: &str = "\
holdfast-agent-gate: which build of the agent runs on this host

  holdfast-agent-gate status [--output json]     the slots, the trial, the failures
  holdfast-agent-gate install RELEASE PROGRAM    check a signed release and put its agent on trial at the next start
  holdfast-agent-gate end                        end the trial: the build before it is put back
  holdfast-agent-gate start                      the check before a start of the agent (run by agentd.service)
  holdfast-agent-gate watch                      watch a build on trial (run by holdfast-agent-gate.service)

Settings: /etc/holdfast/agent-gate.toml, or --settings FILE before the verb. All but `status` needs root.";

/// What is to be done.
enum Verb {
    Start,
    Watch,
    Status(status::Output),
    Install { release: PathBuf, program: PathBuf },
    End,
    Help,
}

/// Why nothing was done.
#[derive(Debug, thiserror::Error)]
enum GateError {
    #[error("{0:?} is not a command of this program\n\n{USAGE}")]
    Usage(String),
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error(transparent)]
    Store(#[from] store::StoreError),
    #[error(transparent)]
    Start(#[from] start::StartError),
    #[error(transparent)]
    Install(#[from] install::InstallError),
    #[error(transparent)]
    Clock(#[from] clock::ClockError),
    #[error("the trial was not ended: {0}")]
    End(#[from] agent_slots::Refusal),
    #[error(transparent)]
    Unit(#[from] unit::UnitError),
}

impl GateError {
    /// The exit code, by sysexits.
    const fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => 64,
            Self::Settings(_) => 78,
            Self::Store(_) => 74,
            Self::Start(_) => 70,
            Self::Install(error) => error.exit_code(),
            Self::Clock(_) | Self::Unit(_) => 71,
            Self::End(_) => 1,
        }
    }
}

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    match run(arguments) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("holdfast-agent-gate: {}", holdfast_protocol::json::chain(&error));
            ExitCode::from(error.exit_code())
        }
    }
}

fn run(arguments: Vec<OsString>) -> Result<ExitCode, GateError> {
    let (settings, verb) = read(arguments)?;
    if let Verb::Help = verb {
        println!("{USAGE}");
        return Ok(ExitCode::SUCCESS);
    }
    let settings = Settings::load(&settings)?;
    match verb {
        Verb::Start => start::run(&settings)?,
        Verb::Watch => watch::run(&settings)?,
        Verb::Status(output) => status::run(&settings, output)?,
        Verb::Install { release, program } => install::by_hand(&settings, &release, &program)?,
        Verb::End => watch::end(&settings)?,
        Verb::Help => {}
    }
    Ok(ExitCode::SUCCESS)
}

fn read(arguments: Vec<OsString>) -> Result<(PathBuf, Verb), GateError> {
    let mut settings = PathBuf::from(SETTINGS);
    let mut rest = arguments.into_iter().peekable();
    if rest.peek().is_some_and(|first| first == "--settings") {
        rest.next();
        settings = rest.next().ok_or_else(|| GateError::Usage("--settings".to_owned()))?.into();
    }
    let words: Vec<OsString> = rest.collect();
    let texts: Vec<&str> = words.iter().filter_map(|word| word.to_str()).collect();
    let verb = match (texts.as_slice(), words.as_slice()) {
        ([], []) | (["help" | "--help" | "-h"], _) => Verb::Help,
        (["start"], _) => Verb::Start,
        (["watch"], _) => Verb::Watch,
        (["status"], _) => Verb::Status(status::Output::Text),
        (["status", "--output", "json"], _) => Verb::Status(status::Output::Json),
        (["end"], _) => Verb::End,
        (["install", ..], [_, release, program]) => {
            Verb::Install { release: release.into(), program: program.into() }
        }
        (texts, _) => return Err(GateError::Usage(texts.join(" "))),
    };
    Ok((settings, verb))
}
