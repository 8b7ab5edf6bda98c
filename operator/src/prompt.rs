//! Prompts on standard error, so that results can be piped.

use std::io::{self, BufRead as _, IsTerminal as _, Read as _, Write as _};
use std::path::{Path, PathBuf};

use holdfast_protocol::secret::Secret;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use zeroize::Zeroizing;

use crate::args::AssumeYes;

/// A token is far shorter.
const SECRET_BYTES_MAX: u64 = 4096;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum PromptError {
    /// The person said no.
    #[error("nothing was changed: the answer was no")]
    Declined,
    /// Another name than that of what it is about.
    #[error("nothing was signed: the name does not match {wanted}")]
    WrongName {
        /// What was to be typed.
        wanted: String,
    },
    /// There is no terminal to ask on.
    #[error("there is no terminal to prompt on: give {instead}")]
    NoTerminal {
        /// What to give instead.
        instead: &'static str,
    },
    /// The terminal, standard input or a file.
    #[error("the answer cannot be read from {}", from.display())]
    Read {
        from: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("no password was given: type it at the prompt, or pipe it to standard input")]
    NoPassword,
    #[error("no token was given: `hubd operator add NAME` prints one, once")]
    Empty,
}

fn read_error(from: &Path) -> impl FnOnce(io::Error) -> PromptError {
    move |source| PromptError::Read { from: from.to_owned(), source }
}

/// Prompts for a yes; `--yes` answers beforehand.
pub fn confirm(question: &str, assume_yes: AssumeYes) -> Result<(), PromptError> {
    if assume_yes.yes { Ok(()) } else { confirm_at_terminal(question, "--yes") }
}

/// Prompts whether a value is the same as one that the person must look up elsewhere. It cannot be answered beforehand.
pub fn confirm_comparison(question: &str, instead: &'static str) -> Result<(), PromptError> {
    confirm_at_terminal(question, instead)
}

fn confirm_at_terminal(question: &str, instead: &'static str) -> Result<(), PromptError> {
    if !io::stdin().is_terminal() {
        return Err(PromptError::NoTerminal { instead });
    }
    let terminal = Path::new("the terminal");
    write!(io::stderr(), "{question} [y/N] ").map_err(read_error(terminal))?;
    let mut line = String::new();
    io::stdin().lock().take(64).read_line(&mut line).map_err(read_error(terminal))?;
    match line.trim() {
        "y" | "Y" | "yes" => Ok(()),
        _ => Err(PromptError::Declined),
    }
}

/// Prompts for the name of the affected host or guest; `given` answers beforehand. Any other text is a no.
pub fn name(wanted: &str, question: &str, given: Option<&str>) -> Result<(), PromptError> {
    let answer = match given {
        Some(given) => given.to_owned(),
        None if !io::stdin().is_terminal() => {
            return Err(PromptError::NoTerminal { instead: "--confirm NAME" });
        }
        None => {
            let terminal = Path::new("the terminal");
            write!(io::stderr(), "{question} ").map_err(read_error(terminal))?;
            let mut line = String::new();
            io::stdin().lock().take(512).read_line(&mut line).map_err(read_error(terminal))?;
            line.trim_end_matches(['\r', '\n']).to_owned()
        }
    };
    if answer == wanted { Ok(()) } else { Err(PromptError::WrongName { wanted: wanted.to_owned() }) }
}

/// Takes a token from a file, from standard input, or from the terminal without showing it.
pub fn token(file: Option<&Path>) -> Result<Secret, PromptError> {
    let text = match file {
        Some(path) if path != Path::new("-") => {
            let opened = std::fs::File::open(path).map_err(read_error(path))?;
            line(io::BufReader::new(opened), path)?
        }
        None if io::stdin().is_terminal() => read_hidden("Token")?,
        _ => line(io::stdin().lock(), Path::new("standard input"))?,
    };
    let trimmed = text.trim();
    if trimmed.is_empty() { Err(PromptError::Empty) } else { Ok(Secret::new(trimmed.to_owned())) }
}

/// Takes a password from standard input, or from the terminal without showing it: one line, its white space kept.
pub fn password() -> Result<Secret, PromptError> {
    let text = if io::stdin().is_terminal() {
        read_hidden("Password")?
    } else {
        line(io::stdin().lock(), Path::new("standard input"))?
    };
    let word = text.trim_end_matches(['\r', '\n']);
    if word.is_empty() { Err(PromptError::NoPassword) } else { Ok(Secret::new(word.to_owned())) }
}

/// Takes the token of a tunnel, as a password is taken.
pub fn token_of_tunnel() -> Result<Secret, PromptError> {
    let text = if io::stdin().is_terminal() {
        read_hidden("Token")?
    } else {
        line(io::stdin().lock(), Path::new("standard input"))?
    };
    let word = text.trim();
    if word.is_empty() { Err(PromptError::NoPassword) } else { Ok(Secret::new(word.to_owned())) }
}

fn line(from: impl io::BufRead, name: &Path) -> Result<Zeroizing<String>, PromptError> {
    let mut text = Zeroizing::new(String::with_capacity(512));
    from.take(SECRET_BYTES_MAX).read_line(&mut text).map_err(read_error(name))?;
    Ok(text)
}

fn read_hidden(what: &str) -> Result<Zeroizing<String>, PromptError> {
    let terminal = Path::new("the terminal");
    // Hidden first: what is typed the moment the question shows is neither shown nor thrown away.
    let hidden = EchoOff::begin().map_err(read_error(terminal))?;
    write!(io::stderr(), "{what} (not shown): ").map_err(read_error(terminal))?;
    let text = line(io::stdin().lock(), terminal);
    drop(hidden);
    writeln!(io::stderr()).map_err(read_error(terminal))?;
    text
}

/// Typing is not shown as long as this lives.
struct EchoOff {
    before: Termios,
}

impl EchoOff {
    fn begin() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut hidden = before.clone();
        hidden.local_modes.remove(LocalModes::ECHO);
        tcsetattr(io::stdin(), OptionalActions::Flush, &hidden)?;
        Ok(Self { before })
    }
}

impl Drop for EchoOff {
    fn drop(&mut self) {
        // A terminal that went away needs no echo.
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
    }
}
