//! `agentd escrow status`: codes, keys and copies.

use std::fmt::Write as _;

use comfy_table::{ContentArrangement, Table, presets};
use jiff::Timestamp;
use serde::Serialize;

use super::EscrowCommandError;
use crate::ago::ago;
use crate::model::escrow::{CodeRecord, CodeStatus};
use crate::plan::escrow::is_unproved;
use crate::port::admin_socket::{EscrowAnswer, EscrowQuestion, EscrowStatus, StatusError, put_escrow};
use crate::settings::{ConfigPath, Settings};
use crate::{Output, now, print_json};

/// The arguments.
#[derive(Debug, clap::Args)]
pub struct StatusArguments {
    #[command(flatten)]
    config: ConfigPath,
    /// A table for people, or JSON (`holdfast.escrow-status/v1`) for programs.
    #[arg(long, value_enum, default_value_t = Output::Table)]
    output: Output,
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    #[serde(flatten)]
    status: &'a EscrowStatus,
}

/// Prints the state of the recovery codes.
///
/// # Errors
/// [`EscrowCommandError`].
pub fn run(arguments: &StatusArguments) -> Result<(), EscrowCommandError> {
    let settings = Settings::load(&arguments.config)?;
    let status = match put_escrow(&settings.state.dir, EscrowQuestion::Status)? {
        EscrowAnswer::Status(status) => status,
        _ => return Err(StatusError::Other.into()),
    };
    match arguments.output {
        Output::Json => print_json(&Document { schema: "holdfast.escrow-status/v1", status: &status }),
        Output::Table => print!("{}", page(&status, now())),
    }
    Ok(())
}

fn page(status: &EscrowStatus, at: Timestamp) -> String {
    let mut page = String::new();
    if status.known.codes.is_empty() {
        page.push_str("no recovery code was ever made here\n");
    } else {
        let mut table = Table::new();
        let head = ["CODE", "TARGET", "KEY", "STATUS", "LAST TYPED", "COPIES"];
        table
            .load_preset(presets::NOTHING)
            .set_content_arrangement(ContentArrangement::Dynamic)
            .set_header(head);
        for code in &status.known.codes {
            table.add_row([
                code.number().to_string(),
                code.target.to_string(),
                code.key().as_str().chars().take(11).collect(),
                use_of(code, status, at),
                code.kept_at().max(code.drilled_at).map_or("-".to_owned(), |typed| ago(typed, at)),
                copies(code, status),
            ]);
        }
        // Writing into a String cannot fail.
        let _infallible = writeln!(page, "{table}");
    }
    for problem in &status.problems {
        let _infallible = writeln!(page, "  ! {}: {}", problem.code.as_str(), problem.message);
    }
    page
}

fn use_of(code: &CodeRecord, status: &EscrowStatus, at: Timestamp) -> String {
    let newest = status
        .known
        .codes
        .iter()
        .filter(|other| other.key() == code.key() && other.kept_at().is_some())
        .all(|other| other.number() <= code.number());
    match code.status {
        CodeStatus::Begun => "never shown, opens nothing".to_owned(),
        CodeStatus::Shown { .. } => "never typed back, opens nothing: destroy its paper".to_owned(),
        CodeStatus::Kept { .. } if newest && is_unproved(code) => {
            "the lost box's, in use; not typed here yet".to_owned()
        }
        CodeStatus::Kept { at: kept } if newest => format!("in use, made {}", ago(kept, at)),
        CodeStatus::Kept { .. } => "replaced, still opens the key".to_owned(),
        CodeStatus::Retired { at: gone } => format!("retired {}", ago(gone, at)),
    }
}

fn copies(code: &CodeRecord, status: &EscrowStatus) -> String {
    let of = status.known.copies.iter().filter(|copy| copy.code == code.number());
    let reported: Vec<String> = of
        .map(|copy| match copy.problem {
            None => copy.place.to_string(),
            Some(_) => format!("{} (!)", copy.place),
        })
        .collect();
    if reported.is_empty() { "-".to_owned() } else { reported.join(", ") }
}
