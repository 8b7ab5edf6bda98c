//! `agentd escrow create` and `rotate`: a new recovery code.
//!
//! The code is made, the key is wrapped under it and opened again as a proof, the words are shown once and typed back.
//! Only then is the wrapped key kept.
//!
//! The agent records each step before the next one begins, and no step removes anything. Whenever this process dies,
//! earlier codes still open the key, and an abandoned code leaves its number to the next one.

use std::path::{Path, PathBuf};

use holdfast_protocol::escrow::by_hand::OffSite;
use holdfast_protocol::id::{CustomerId, TargetName};
use holdfast_recovery::RecoveryCode;
use holdfast_recovery::escrow::{Escrow, EscrowFile};
use holdfast_recovery::sheet::{Naming, Sheet};
use holdfast_seal::backup_key::BackupKey;
use holdfast_seal::{Creds, HostKey, SealContext};
use serde::Serialize;

use super::paper::{self, Paper};
use super::screen::Screen;
use super::{EscrowCommandError, back, signals};
use crate::code_prompt::TypingFailed;
use crate::plan::escrow::Purpose;
use crate::port::admin_socket::{Begun, EscrowAnswer, EscrowQuestion, StatusError, put_escrow};
use crate::port::host_key;
use crate::settings::{ConfigPath, Settings};
use crate::terminal::Terminal;
use crate::{Output, print_json};

/// The arguments.
#[derive(Debug, clap::Args)]
pub struct CreateArguments {
    #[command(flatten)]
    config: ConfigPath,
    /// The target of the key, where there are several off-site targets.
    #[arg(long, value_name = "TARGET")]
    target: Option<TargetName>,
    /// The customer who owns the data, where the guests on this host do not all belong to one customer.
    #[arg(long, value_name = "CUSTOMER")]
    customer: Option<CustomerId>,
    /// Write a sheet to print, instead of showing the words: a PDF, or plain text where the name ends in .txt. It must
    /// be stored in memory, and is removed once the words were typed back, and whenever this command ends.
    #[arg(long, value_name = "FILE")]
    sheet: Option<PathBuf>,
    /// Leave host and customer out of the sheet, so that a finder learns nothing from it.
    #[arg(long)]
    anonymous: bool,
    /// Add a page with the wrapped key, to be kept apart from the words: it opens nothing without them.
    #[arg(long, requires = "sheet")]
    wrapped_page: bool,
    /// Add a page with the bare key. It opens every backup without any code, and cannot be revoked.
    #[arg(long, requires = "sheet")]
    paper_key: bool,
    /// Ask for all eleven words instead of three.
    #[arg(long)]
    strict: bool,
    /// Text for people, or JSON for programs. The dialogue at the terminal is the same.
    #[arg(long, value_enum, default_value_t = Output::Table)]
    output: Output,
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    #[serde(flatten)]
    record: &'a holdfast_recovery::escrow::Record,
    target: &'a TargetName,
}

/// Makes a code.
///
/// # Errors
/// [`EscrowCommandError`]; earlier codes still open the key.
pub fn run(arguments: &CreateArguments, purpose: Purpose) -> Result<(), EscrowCommandError> {
    let settings = Settings::load(&arguments.config)?;
    let begun = made(arguments, purpose, &settings.state.dir)?;
    report(arguments.output, &begun);
    Ok(())
}

/// The whole dialogue at the terminal. Code and key are wiped at the end.
fn made(arguments: &CreateArguments, purpose: Purpose, state: &Path) -> Result<Begun, EscrowCommandError> {
    // All that can be refused is refused before a number is given.
    let host_key = host_key::read(state)?.ok_or(EscrowCommandError::NoHostKey)?;
    paper::clear_left()?;
    let paper = arguments.sheet.as_deref().map(Paper::place).transpose()?;
    let mut terminal = Terminal::open().map_err(TypingFailed::Terminal)?;
    if paper.is_none() {
        Screen::possible()?;
    }
    signals::clean_up(paper.as_ref().map(Paper::sheet), &terminal)?;
    let question = EscrowQuestion::Begin {
        target: arguments.target.clone(),
        customer: arguments.customer.clone(),
        purpose,
    };
    let begun = match put_escrow(state, question)? {
        EscrowAnswer::Begun(begun) => begun,
        _ => return Err(StatusError::Other.into()),
    };
    let code_number = begun.record.context.code;
    let escrow = Escrow::new(begun.record.context.clone(), key(&begun, &host_key)?);
    let code = RecoveryCode::generate()?;
    // The wrapped key is opened and compared before it becomes a file.
    let file = escrow.wrap(&code)?;
    note(put_escrow(state, EscrowQuestion::Shown { code: code_number, attempt: begun.attempt })?)?;
    let naming = if arguments.anonymous { Naming::Anonymous } else { Naming::Named };
    let (approval, customer) = (&begun.approval, &begun.record.context.customer);
    let off_site = OffSite::of(&approval.name, &approval.backend, customer);
    let sheet = Sheet {
        record: &begun.record,
        code: &code,
        naming,
        off_site: off_site.as_ref(),
        guests: &begun.guests,
        wrapped: arguments.wrapped_page.then_some(&file),
        bare: arguments.paper_key.then_some(escrow.key()),
    };
    let printed = match paper {
        Some(paper) => Some(paper.print(&sheet, &mut terminal)?),
        None => {
            Screen::show(&sheet, &mut terminal)?;
            None
        }
    };
    let asked = if arguments.strict { back::AskedWords::All } else { back::AskedWords::Three };
    back::typed(&code, asked, &mut terminal)?;
    drop(printed);
    drop((code, escrow));
    keep(state, &begun, &file)?;
    terminal.say("The words are right, and the code is kept.\n").map_err(TypingFailed::Terminal)?;
    Ok(*begun)
}

/// The key, as it was sealed for this target. It was checked against the signed fingerprint.
fn key(begun: &Begun, host_key: &HostKey) -> Result<BackupKey, EscrowCommandError> {
    let approval = &begun.approval;
    let meant = SealContext { target: &approval.name, backend: &approval.backend };
    let creds = Creds::open(&begun.sealed, host_key, meant)?;
    creds.key().cloned().ok_or(EscrowCommandError::NoKey)
}

fn keep(state: &Path, begun: &Begun, file: &EscrowFile) -> Result<(), EscrowCommandError> {
    let code = begun.record.context.code;
    let question = EscrowQuestion::Keep { code, attempt: begun.attempt, file: file.to_text() };
    match put_escrow(state, question) {
        // It may have been written down before the agent fell silent.
        Err(error @ (StatusError::Silent { .. } | StatusError::NotRunning { .. })) => {
            Err(EscrowCommandError::Unsure { code, source: error })
        }
        answered => note(answered?),
    }
}

pub(super) fn note(answer: EscrowAnswer) -> Result<(), EscrowCommandError> {
    match answer {
        EscrowAnswer::Noted => Ok(()),
        _ => Err(StatusError::Other.into()),
    }
}

fn report(output: Output, begun: &Begun) {
    let (record, target) = (&begun.record, &begun.approval.name);
    match output {
        Output::Json => print_json(&Document { schema: "holdfast.escrow-made/v1", record, target }),
        Output::Table => {
            let code = record.context.code;
            println!("Recovery code {code} opens the off-site backups at {target} from now on.");
            println!("fingerprint  {}", record.fingerprint);
            println!("The wrapped key is kept by the agent, which copies it to the backup disks.");
            println!(
                "Put the paper away from this box, and type it again within 180 days: `agentd escrow drill`."
            );
        }
    }
}
