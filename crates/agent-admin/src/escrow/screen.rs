//! The recovery words on the terminal's alternate screen.

use std::io;

use holdfast_recovery::locked::Locked;
use holdfast_recovery::sheet::{Naming, Sheet};

use super::EscrowCommandError;
use crate::code_prompt::TypingFailed;
use crate::terminal::{Line, Terminal};

/// The alternate screen, empty, from its first line.
const ENTER: &str = "\x1b[?1049h\x1b[2J\x1b[H";

/// Wiped, and back to the earlier content.
const LEAVE: &str = "\x1b[2J\x1b[H\x1b[?1049l";

/// The kernel's own terminals have no alternate screen: the scroll-back is wiped there too.
const LEAVE_CONSOLE: &str = "\x1b[2J\x1b[H\x1b[3J";

/// More than eleven lines and the text around them.
const BYTES: usize = 2048;

/// How words are shown.
pub struct Screen;

impl Screen {
    /// Whether this terminal can erase what it shows.
    ///
    /// # Errors
    /// [`EscrowCommandError::Plain`].
    pub fn possible() -> Result<(), EscrowCommandError> {
        match term().as_str() {
            plain @ ("" | "dumb" | "unknown") => Err(EscrowCommandError::Plain(plain.to_owned())),
            _ => Ok(()),
        }
    }

    /// Shows the words until the operator has written them down.
    ///
    /// # Errors
    /// [`EscrowCommandError`]; the screen is wiped in every case.
    pub fn show(sheet: &Sheet<'_>, terminal: &mut Terminal) -> Result<(), EscrowCommandError> {
        let failed = TypingFailed::Terminal;
        let page = page(sheet).map_err(failed)?;
        terminal.say(ENTER).map_err(failed)?;
        let shown =
            terminal.say(page.as_text()).and_then(|()| terminal.line(&mut Locked::with_capacity(BYTES * 4)?));
        terminal.say(leave()).map_err(failed)?;
        match shown.map_err(failed)? {
            Line::Ended => Err(EscrowCommandError::NotBack),
            Line::Empty | Line::Typed => Ok(()),
        }
    }
}

/// The escape sequence that wipes the words off this terminal, and keeps the earlier content.
pub fn leave() -> &'static str {
    if term().starts_with("linux") { LEAVE_CONSOLE } else { LEAVE }
}

fn term() -> String {
    std::env::var("TERM").unwrap_or_default()
}

fn page(sheet: &Sheet<'_>) -> io::Result<Locked> {
    let mut page = Locked::with_capacity(BYTES)?;
    let mut put = |parts: &[&str]| {
        parts.iter().try_for_each(|part| page.push(part.as_bytes()).map_err(io::Error::other))
    };
    let context = &sheet.record.context;
    put(&["Recovery code, sheet ", &context.code.to_string(), ", ", &context.made_at.to_string()])?;
    if sheet.naming == Naming::Named {
        put(&[", host ", context.host_name.as_str(), ", customer ", context.customer.as_str()])?;
    }
    if let Some(at) = sheet.off_site() {
        put(&[", off-site target ", at.target.as_str()])?;
    }
    put(&["\nFingerprint of the key: ", sheet.record.fingerprint.as_str(), "\n\n"])?;
    for (at, word) in sheet.code.words().enumerate() {
        put(&[&format!("  {:>2}.  ", at + 1), word, "\n"])?;
    }
    put(&[
        "\nWrite them down with their numbers, and the two lines above. They are shown this once.\n",
        "With a wrapped key (escrow-N.age, from the operator or a backup disk) they open the off-site backups.\n",
        "Have the operator print the page for it (`holdfast escrow kit`): it says all that is typed then.\n",
        "Enter when you have them, Ctrl-C to throw them away: ",
    ])?;
    Ok(page)
}
