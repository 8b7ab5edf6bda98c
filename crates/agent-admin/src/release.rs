//! `agentd release import|list`: builds of the guest agent.
//!
//! Exit code 0: done. 65: the file is no controller, or there are too many. 74: a disk error. Importing bytes gives no
//! rights: a guest gets them when the document asks for them and an operator signed exactly these. `import` writes only
//! the text to be signed to its standard output, so that it can be redirected into a file.

use std::path::PathBuf;

use holdfast_protocol::job::act::{Act, ReleaseKind, ReleaseVersion, args};
use holdfast_protocol::job::{Draft, Target};

use super::Output;
use super::drop_privileges::{self, StepDownError};
use crate::port::artifacts::{ArtifactError, Artifacts};
use crate::settings::{ConfigPath, Settings, SettingsError};

/// The arguments.
#[derive(Debug, clap::Args)]
pub struct ReleaseArguments {
    #[command(subcommand)]
    command: ReleaseCommand,
}

#[derive(Debug, clap::Subcommand)]
enum ReleaseCommand {
    /// Import a guest agent program, and write the draft that an operator signs for it
    /// (`holdfast sign HOST --draft FILE`).
    Import(ImportArguments),
    /// Show the guest agent programs that are stored on this host, by their digests.
    List(ListArguments),
}

#[derive(Debug, clap::Args)]
struct ImportArguments {
    #[command(flatten)]
    config: ConfigPath,
    /// The program, readable by the agent's user.
    file: PathBuf,
    /// Its version, as `guestd --version` prints it.
    #[arg(long, value_name = "VERSION", value_parser = version)]
    version: ReleaseVersion,
}

#[derive(Debug, clap::Args)]
struct ListArguments {
    #[command(flatten)]
    config: ConfigPath,
    /// Text for people, or JSON (`holdfast.controllers/v1`) for programs.
    #[arg(long, value_enum, default_value_t = Output::Table)]
    output: Output,
}

fn version(text: &str) -> Result<ReleaseVersion, &'static str> {
    text.to_owned().try_into()
}

/// Why nothing was done.
#[derive(Debug, thiserror::Error)]
pub enum ReleaseError {
    /// The configuration.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// Root.
    #[error(transparent)]
    StepDown(#[from] StepDownError),
    /// The bytes.
    #[error(transparent)]
    Artifact(#[from] ArtifactError),
    /// Cannot happen for a version and a digest.
    #[error("the request cannot be written: {0}")]
    Unwritable(String),
}

impl ReleaseError {
    /// The exit code, by sysexits.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Settings(_) => 78,
            Self::Artifact(ArtifactError::Read { .. } | ArtifactError::Keep(_)) => 74,
            Self::Artifact(_) => 65,
            Self::StepDown(_) => 77,
            Self::Unwritable(_) => 70,
        }
    }
}

#[derive(serde::Serialize)]
struct StoredRelease {
    sha256: String,
    bytes: u64,
}

#[derive(serde::Serialize)]
struct Document {
    schema: &'static str,
    controllers: Vec<StoredRelease>,
}

/// Runs the command.
///
/// # Errors
/// [`ReleaseError`].
pub fn run(arguments: &ReleaseArguments) -> Result<(), ReleaseError> {
    match &arguments.command {
        ReleaseCommand::Import(arguments) => import(arguments),
        ReleaseCommand::List(arguments) => list(arguments),
    }
}

fn import(arguments: &ImportArguments) -> Result<(), ReleaseError> {
    let settings = Settings::load(&arguments.config)?;
    drop_privileges::to_owner_of(&settings.state.dir)?;
    let (sha256, bytes) = Artifacts::of(&settings.state.dir).take_in(&arguments.file)?;
    let version = arguments.version.clone();
    eprintln!("controller {}, sha256 {}, {bytes} bytes, lies here", version.as_str(), sha256.as_str());
    println!("{}", request(version, sha256.as_str())?);
    Ok(())
}

/// The draft that an operator signs so that these bytes may run in guests.
fn request(version: ReleaseVersion, sha256: &str) -> Result<String, ReleaseError> {
    let unwritable = |error: &dyn std::fmt::Display| ReleaseError::Unwritable(error.to_string());
    let sha256 = sha256.to_owned().try_into().map_err(|error| unwritable(&error))?;
    let act = Act::ApproveRelease(args::ApproveRelease { kind: ReleaseKind::Controller, version, sha256 });
    Draft { target: Target::Host {}, act }.to_json().map_err(|error| unwritable(&error))
}

fn list(arguments: &ListArguments) -> Result<(), ReleaseError> {
    let settings = Settings::load(&arguments.config)?;
    drop_privileges::to_owner_of(&settings.state.dir)?;
    let stored = Artifacts::of(&settings.state.dir).stored().into_iter();
    let controllers: Vec<StoredRelease> =
        stored.map(|(sha256, bytes)| StoredRelease { sha256: sha256.as_str().to_owned(), bytes }).collect();
    match arguments.output {
        Output::Json => {
            super::print_json(&Document { schema: "holdfast.controllers/v1", controllers });
        }
        Output::Table => {
            for StoredRelease { sha256, bytes } in controllers {
                println!("{sha256}  {bytes} bytes");
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_request_names_exactly_these_bytes() {
        let draft = request("0.2.0".to_owned().try_into().unwrap(), &"ab".repeat(32)).unwrap();
        let draft = Draft::parse(draft.as_bytes()).unwrap();
        let Act::ApproveRelease(release) = &draft.act else { panic!("{draft:?}") };
        assert_eq!((release.kind, release.version.as_str()), (ReleaseKind::Controller, "0.2.0"));
        assert_eq!(release.sha256.as_str(), "ab".repeat(32));
    }
}
