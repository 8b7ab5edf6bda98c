//! `agentd audit`: shows, verifies and exports the audit.
//!
//! It is read from the agent's own file, whether the agent runs or not. Exit code 0: done, and the chain holds. 65: it
//! does not hold. 74: it cannot be read. Off the host an export is checked by `holdfast audit verify`.

use std::collections::VecDeque;
use std::io::{self, Write as _};

use holdfast_protocol::audit::{AuditLine, ChainError, ExportHeader, ExportSchema, Verifier};
use holdfast_protocol::id::GuestUid;
use jiff::Timestamp;

use super::Output;
use super::drop_privileges::{self, StepDownError};
use crate::port::store::StoreError;
use crate::port::store::audit_file::each_line;
use crate::settings::{ConfigPath, Settings, SettingsError};

/// The arguments.
#[derive(Debug, clap::Args)]
pub struct AuditArguments {
    #[command(subcommand)]
    command: AuditCommand,
}

#[derive(Debug, clap::Subcommand)]
enum AuditCommand {
    /// Check the hashes of the whole chain, and print its head.
    Verify(VerifyArguments),
    /// Show the last lines.
    Show(ShowArguments),
    /// Write the whole chain to standard output: a header and one JSON object a line (`holdfast.audit/v1`).
    Export(ExportArguments),
}

#[derive(Debug, clap::Args)]
struct VerifyArguments {
    #[command(flatten)]
    config: ConfigPath,
    /// Text for people, or JSON for programs.
    #[arg(long, value_enum, default_value_t = Output::Table)]
    output: Output,
}

#[derive(Debug, clap::Args)]
struct ShowArguments {
    #[command(flatten)]
    config: ConfigPath,
    /// How many lines to show.
    #[arg(long, default_value_t = 50, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    last: u32,
    /// Show only lines about this guest.
    #[arg(long, value_name = "UID")]
    guest: Option<GuestUid>,
    /// Text for people, or JSON for programs.
    #[arg(long, value_enum, default_value_t = Output::Table)]
    output: Output,
}

#[derive(Debug, clap::Args)]
struct ExportArguments {
    #[command(flatten)]
    config: ConfigPath,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// The configuration.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The command runs as root. The database's own files are in the agent's folder: SQLite would make and follow them
    /// there as root.
    #[error(transparent)]
    StepDown(#[from] StepDownError),
    /// The file.
    #[error("the audit cannot be read: run this as root or as the agent's user")]
    Store(#[from] StoreError),
    /// The chain.
    #[error(transparent)]
    Chain(#[from] ChainError),
    /// The reader of our output is gone.
    #[error("the audit cannot be written out")]
    Write(#[from] io::Error),
    /// Cannot happen for lines of text.
    #[error("a line cannot be written as JSON")]
    Json(#[from] serde_json::Error),
}

impl AuditError {
    /// The exit code, by sysexits.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Settings(_) => 78,
            Self::StepDown(_) => 77,
            Self::Chain(_) => 65,
            Self::Store(_) | Self::Write(_) => 74,
            Self::Json(_) => 70,
        }
    }
}

/// The head of a chain that holds.
#[derive(serde::Serialize)]
struct Head {
    schema: &'static str,
    /// The number of the last line.
    lines: u64,
    /// The number of lines removed at the beginning.
    removed: u64,
    head: String,
}

/// Runs the command.
///
/// # Errors
/// [`AuditError`].
pub fn run(arguments: &AuditArguments) -> Result<(), AuditError> {
    match &arguments.command {
        AuditCommand::Verify(arguments) => verify(arguments),
        AuditCommand::Show(arguments) => show(arguments),
        AuditCommand::Export(arguments) => export(arguments),
    }
}

fn verify(arguments: &VerifyArguments) -> Result<(), AuditError> {
    let settings = Settings::load(&arguments.config)?;
    drop_privileges::to_reader_of(&settings.state.dir)?;
    let verifier = std::cell::RefCell::new(Verifier::default());
    let mut removed = 0;
    each_line(
        &settings.state.dir,
        |extent| {
            removed = extent.after.as_ref().map_or(0, |link| link.number);
            let begun = extent.after.iter().try_for_each(|link| verifier.borrow_mut().begin_after(link));
            Ok::<_, AuditError>(begun?)
        },
        |line| Ok(verifier.borrow_mut().line(&line)?),
    )?;
    let (lines, head) = verifier.into_inner().end()?;
    match (arguments.output, removed) {
        (Output::Json, _) => {
            super::print_json(&Head { schema: "holdfast.audit-head/v1", lines, removed, head });
        }
        (Output::Table, 0) => println!("the audit holds: {lines} lines, the last one's hash is {head}"),
        (Output::Table, _) => println!(
            "the audit holds: lines {} to {lines}, the last one's hash is {head}; the {removed} lines before were removed, \
             as `keep_months` in agent.toml says",
            removed + 1
        ),
    }
    Ok(())
}

fn show(arguments: &ShowArguments) -> Result<(), AuditError> {
    let settings = Settings::load(&arguments.config)?;
    drop_privileges::to_reader_of(&settings.state.dir)?;
    let (most, about) = (arguments.last as usize, arguments.guest.map(|guest| guest.to_string()));
    let mut last: VecDeque<AuditLine> = VecDeque::new();
    each_line(
        &settings.state.dir,
        |_| Ok::<_, AuditError>(()),
        |line| {
            if about.is_none() || line.guest == about {
                last.push_back(line);
            }
            if last.len() > most {
                last.pop_front();
            }
            Ok(())
        },
    )?;
    match arguments.output {
        Output::Json => super::print_json(&last),
        Output::Table => last.iter().for_each(|line| println!("{}", words(line))),
    }
    Ok(())
}

/// One line for people. Text from outside must not move the cursor.
fn words(line: &AuditLine) -> String {
    let at = Timestamp::from_microsecond(line.at_us).unwrap_or(Timestamp::UNIX_EPOCH);
    let about = [("guest", &line.guest), ("operation", &line.operation)];
    let about: String =
        about.iter().filter_map(|(what, id)| id.as_ref().map(|id| format!(" {what} {id}"))).collect();
    let at = at.strftime("%Y-%m-%d %H:%M:%S UTC");
    let text = format!("{:>6}  {at}  {}{about}  {}", line.number, line.action, line.detail);
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<String>().trim_end().to_owned()
}

fn export(arguments: &ExportArguments) -> Result<(), AuditError> {
    let settings = Settings::load(&arguments.config)?;
    drop_privileges::to_reader_of(&settings.state.dir)?;
    let out = std::cell::RefCell::new(io::BufWriter::new(io::stdout().lock()));
    each_line(
        &settings.state.dir,
        |extent| {
            let (lines, after) = (extent.lines, extent.after.clone());
            let header = serde_json::to_string(&ExportHeader { schema: ExportSchema::V1, lines, after })?;
            Ok::<_, AuditError>(writeln!(out.borrow_mut(), "{header}")?)
        },
        |line| Ok(writeln!(out.borrow_mut(), "{}", serde_json::to_string(&line)?)?),
    )?;
    Ok(out.into_inner().flush()?)
}
