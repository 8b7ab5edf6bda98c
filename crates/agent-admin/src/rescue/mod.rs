//! `agentd rescue`: the records of this host without a running agent.
//!
//! For a person at the console: what is open, what is parked, where backups are, whether the audit holds, and what is safe to
//! do. Exit code 0: shown, and everything could be read. 65: shown, and a part could not be read, or the audit does not hold.
//! 66: there is no file. 74: it cannot be read at all. Nothing in the state folder is written, and no secret is shown.
//!
//! | module | contents |
//! | --- | --- |
//! | `judgement` | the rules that hold for what was read |
//! | `page` | the page for people |
//! | `export` | audit, journal and state as files |

mod export;
mod judgement;
mod page;

use std::path::PathBuf;

pub use export::ExportError;

use super::Output;
use super::drop_privileges::{self, StepDownError};
use crate::plan::rescue_advice::Advice;
use crate::port::store::rescue::{self, RescueFile, RescueOpenError, RescueState};
use crate::settings::{ConfigPath, Settings, SettingsError};

/// The arguments.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
It needs no agent, no Proxmox and no network, and works on a disk that takes no writes. The settings are read only where \
--state does not name the folder.

With --export the lines of the audit have the form of `agentd audit export`: `holdfast audit verify FILE` checks them \
elsewhere. As root it continues as the user who owns the state folder; that user must be able to make the folder of the \
export (`/tmp/rescue` for example).")]
pub struct RescueArguments {
    #[command(flatten)]
    config: ConfigPath,
    /// The state folder, or a copy of it; by default the one of the settings.
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Also write audit, journal and state into this new folder.
    #[arg(long, value_name = "DIR")]
    export: Option<PathBuf>,
    /// Text for people, or JSON (`holdfast.rescue/v1`) for programs.
    #[arg(long, value_enum, default_value_t = Output::Table)]
    output: Output,
}

/// Why nothing, or not everything, was shown.
#[derive(Debug, thiserror::Error)]
pub enum RescueError {
    /// The settings.
    #[error(
        "the settings cannot be used: name the state folder with --state, such as --state /var/lib/holdfast"
    )]
    Settings(#[from] SettingsError),
    /// Another user.
    #[error(transparent)]
    StepDown(#[from] StepDownError),
    /// The file.
    #[error(transparent)]
    Open(#[from] RescueOpenError),
    /// The export.
    #[error("the export could not be written to {}: name a new folder that the user of the state folder can make", folder.display())]
    Export {
        folder: PathBuf,
        #[source]
        source: export::ExportError,
    },
    /// It was shown.
    #[error("not everything could be read, or the audit does not hold: what is shown above says where")]
    Incomplete,
}

impl RescueError {
    /// The exit code, by sysexits.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Settings(_) => 78,
            Self::StepDown(_) => 77,
            Self::Open(RescueOpenError::NoFile { .. }) => 66,
            Self::Open(
                RescueOpenError::File { .. }
                | RescueOpenError::NotADatabase { .. }
                | RescueOpenError::Sqlite { .. },
            ) => 74,
            Self::Export { .. } => 73,
            Self::Incomplete => 65,
        }
    }
}

#[derive(serde::Serialize)]
struct Document<'a> {
    schema: &'static str,
    state_folder: String,
    #[serde(flatten)]
    state: &'a RescueState,
    advice: &'a [Advice],
}

/// Runs the command.
///
/// # Errors
/// [`RescueError`].
pub fn run(arguments: &RescueArguments) -> Result<(), RescueError> {
    let folder = match &arguments.state {
        Some(folder) => folder.clone(),
        None => Settings::load(&arguments.config)?.state.dir,
    };
    drop_privileges::to_reader_of(&folder)?;
    let file = RescueFile::open(&folder)?;
    let now = super::now();
    let state = rescue::read(&file, &folder, now);
    let advice = judgement::advice(&state);
    let document = Document {
        schema: "holdfast.rescue/v1",
        state_folder: folder.display().to_string(),
        state: &state,
        advice: &advice,
    };
    if let Some(into) = &arguments.export {
        export::write(&file, (&folder, into), &document)
            .map_err(|source| RescueError::Export { folder: into.clone(), source })?;
    }
    match arguments.output {
        Output::Json => super::print_json(&document),
        Output::Table => {
            print!("{}", page::page(&folder, &state, &advice, now));
            if let Some(into) = &arguments.export {
                println!("\nexported to {}: audit.jsonl, journal.jsonl, state.json", into.display());
            }
        }
    }
    if judgement::is_complete(&state) { Ok(()) } else { Err(RescueError::Incomplete) }
}
