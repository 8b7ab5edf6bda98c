//! `agentd escrow drill` and `retire`: recovery codes typed from the paper.
//!
//! A drill answers whether the words open the key in use, and shows nothing. `retire` removes an older code after the one that
//! replaced it was typed.

use holdfast_recovery::escrow::{CodeNumber, EscrowFile, Expected};
use serde::Serialize;

use super::EscrowCommandError;
use super::create::note;
use crate::code_prompt::{self, TypingFailed};
use crate::port::admin_socket::{EscrowAnswer, EscrowQuestion, StatusError, put_escrow};
use crate::settings::{ConfigPath, Settings};
use crate::terminal::Terminal;
use crate::{Output, print_json};

/// The arguments of `drill`.
#[derive(Debug, clap::Args)]
pub struct DrillArguments {
    #[command(flatten)]
    config: ConfigPath,
    /// The code's number, where there are several codes; it is on the sheet.
    #[arg(long, value_name = "NUMBER", value_parser = number)]
    code: Option<CodeNumber>,
    /// Text for people, or JSON for programs.
    #[arg(long, value_enum, default_value_t = Output::Table)]
    output: Output,
}

/// The arguments of `retire`.
#[derive(Debug, clap::Args)]
pub struct RetireArguments {
    #[command(flatten)]
    config: ConfigPath,
    /// The code to retire; its number is on the sheet.
    #[arg(value_name = "NUMBER", value_parser = number)]
    code: CodeNumber,
    /// The number of the code that replaced it; by default the newest of the same key.
    #[arg(long, value_name = "NUMBER", value_parser = number)]
    by: Option<CodeNumber>,
}

fn number(text: &str) -> Result<CodeNumber, String> {
    let number: u32 = text.parse().map_err(|_| "it is no number".to_owned())?;
    CodeNumber::try_from(number).map_err(str::to_owned)
}

#[derive(Serialize)]
struct Document {
    schema: &'static str,
    code: CodeNumber,
    opens: bool,
}

/// Tries a code.
///
/// # Errors
/// [`EscrowCommandError`].
pub fn run(arguments: &DrillArguments) -> Result<(), EscrowCommandError> {
    let settings = Settings::load(&arguments.config)?;
    let code = try_code(&settings, EscrowQuestion::File { code: arguments.code, replaces: None }, "")?;
    match arguments.output {
        Output::Json => {
            print_json(&Document { schema: "holdfast.escrow-drill/v1", code, opens: true });
        }
        Output::Table => {
            println!("Yes: recovery code {code} opens the off-site backups. It is written down for today.")
        }
    }
    Ok(())
}

/// Retires an older code.
///
/// # Errors
/// [`EscrowCommandError`]; it stays then.
pub fn retire(arguments: &RetireArguments) -> Result<(), EscrowCommandError> {
    let settings = Settings::load(&arguments.config)?;
    let of = EscrowQuestion::File { code: arguments.by, replaces: Some(arguments.code) };
    let first = format!("Type the code that replaced code {}.\n", arguments.code);
    let newer = try_code(&settings, of, &first)?;
    note(put_escrow(&settings.state.dir, EscrowQuestion::Retire { code: arguments.code })?)?;
    println!(
        "Code {} is given up: its words open nothing any more that this box keeps. Code {newer} does.",
        arguments.code
    );
    println!("Destroy its paper. A wrapped key that somebody copied before still opens with it.");
    Ok(())
}

/// Asks for the words of a code until they open the expected file, and has the agent record it.
fn try_code(settings: &Settings, of: EscrowQuestion, first: &str) -> Result<CodeNumber, EscrowCommandError> {
    let state = &settings.state.dir;
    let wrapped = match put_escrow(state, of)? {
        EscrowAnswer::File(wrapped) => wrapped,
        _ => return Err(StatusError::Other.into()),
    };
    let code = wrapped.record.context.code;
    let file = EscrowFile::parse(wrapped.file.as_bytes())?;
    let mut terminal = Terminal::open().map_err(TypingFailed::Terminal)?;
    let context = &wrapped.record.context;
    let says = format!("{first}Recovery code of sheet {code}, made {}.\n", context.made_at);
    terminal.say(&says).map_err(TypingFailed::Terminal)?;
    let opened = code_prompt::open(&file, Expected::Exactly(&wrapped.record), &mut terminal)?;
    drop(opened?);
    note(put_escrow(state, EscrowQuestion::Drilled { code })?)?;
    Ok(code)
}
