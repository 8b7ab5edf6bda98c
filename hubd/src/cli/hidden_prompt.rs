//! Prompts without an echo.
//!
//! In: a terminal, or one line of standard input. Out: the text, wiped when dropped. Prompts go to standard error, so that
//! results can be piped.

use std::io::{self, BufRead as _, IsTerminal as _, Read as _, Write as _};

use holdfast_protocol::id::OperatorName;
use holdfast_protocol::sign_in::{PASSWORD_BYTES_MAX, Password};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use zeroize::Zeroizing;

/// Why there is no password.
#[derive(Debug, thiserror::Error)]
pub(super) enum PromptError {
    #[error("the password cannot be read, and none was set")]
    Read(#[from] io::Error),
    #[error(
        "no password was given, and none was set: type one at the prompt, or pipe one line to standard input"
    )]
    Empty,
    #[error("the password is longer than {PASSWORD_BYTES_MAX} bytes, and none was set")]
    Long,
    #[error("the two passwords differ, and none was set: run the command again")]
    Differ,
}

/// A new password: typed twice at a terminal, or one line of standard input.
pub(super) fn new_password(name: &OperatorName) -> Result<Password, PromptError> {
    if !io::stdin().is_terminal() {
        return password(&line()?);
    }
    let first = hidden(&format!("New password of {name}"))?;
    let second = hidden("The same again")?;
    if *first != *second {
        return Err(PromptError::Differ);
    }
    password(&first)
}

fn password(line: &str) -> Result<Password, PromptError> {
    let text = line.trim_end_matches(['\r', '\n']);
    if text.is_empty() {
        return Err(PromptError::Empty);
    }
    Password::try_from(text.to_owned()).map_err(|_| PromptError::Long)
}

/// One line, no longer than any password with its end.
fn line() -> io::Result<Zeroizing<String>> {
    let most = PASSWORD_BYTES_MAX + 3;
    let mut text = Zeroizing::new(String::with_capacity(most));
    io::stdin().lock().take(most as u64).read_line(&mut text)?;
    Ok(text)
}

fn hidden(what: &str) -> io::Result<Zeroizing<String>> {
    // Hidden first: what is typed the moment the prompt shows is neither shown nor thrown away.
    let hidden = EchoOff::begin()?;
    write!(io::stderr(), "{what} (not shown): ")?;
    let text = line();
    drop(hidden);
    writeln!(io::stderr())?;
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
