//! Man pages and shell completions of a program, by itself.
//!
//! What comes in: the command line's own description, and the typed arguments. What goes out: the parsed arguments. For
//! `completions SHELL` or `man DIR`: a script on standard output or pages in a folder, and the end of the program. So
//! no page can differ from `--help`. Deliberately absent: any text of its own about what a program is for.
#![forbid(unsafe_code)]

mod closed_output;
mod pages;

use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Arg, ArgMatches, Command, CommandFactory, FromArgMatches, value_parser};
use clap_complete::Shell;

pub use pages::{PagesError, Section, write_pages};

const COMPLETIONS: &str = "completions";
const MAN: &str = "man";

/// Reads the command line, as `Parser::parse` does, with two commands more: `completions` and the hidden `man`. From
/// here on the program ends quietly when the reader of its output is gone.
///
/// # Errors
/// The exit code, when the arguments requested completions or pages; they are written then.
pub fn parse<P: CommandFactory + FromArgMatches>(section: Section) -> Result<P, ExitCode> {
    closed_output::end_quietly();
    let mut command = with_manual(P::command());
    let matches = command.clone().get_matches();
    match matches.subcommand() {
        Some((COMPLETIONS, asked)) => Err(completions(&mut command, asked)),
        Some((MAN, asked)) => Err(man(&mut command, section, asked)),
        _ => P::from_arg_matches(&matches).map_err(|error| error.format(&mut command).exit()),
    }
}

fn with_manual(command: Command) -> Command {
    let shell = Arg::new("shell")
        .value_name("SHELL")
        .help("For which shell")
        .required(true)
        .value_parser(value_parser!(Shell));
    let folder = Arg::new("folder")
        .value_name("DIR")
        .help("Where the pages go")
        .required(true)
        .value_parser(value_parser!(PathBuf));
    command
        .subcommand(
            Command::new(COMPLETIONS)
                .about("Write the completions for a shell to standard output")
                .arg(shell),
        )
        .subcommand(Command::new(MAN).about("Write the man pages into a folder").hide(true).arg(folder))
}

fn completions(command: &mut Command, asked: &ArgMatches) -> ExitCode {
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    if let Some(shell) = asked.get_one::<Shell>("shell") {
        clap_complete::generate(*shell, command, &name, &mut script);
    }
    match std::io::stdout().write_all(&script) {
        // The reader closed the pipe.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{name}: the completions cannot be written: {error}");
            ExitCode::FAILURE
        }
        Ok(()) => ExitCode::SUCCESS,
    }
}

fn man(command: &mut Command, section: Section, asked: &ArgMatches) -> ExitCode {
    let name = command.get_name().to_owned();
    let folder = asked.get_one::<PathBuf>("folder").map_or_else(|| Path::new("."), PathBuf::as_path);
    match write_pages(command, section, folder) {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            let source =
                std::error::Error::source(&error).map(|source| format!(": {source}")).unwrap_or_default();
            eprintln!("{name}: {error}{source}");
            ExitCode::FAILURE
        }
    }
}
