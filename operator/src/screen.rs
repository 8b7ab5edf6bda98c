//! Output: results to standard output, all else to standard error.

use std::io::{self, IsTerminal as _, Write as _};

use holdfast_protocol::id::CorrelationId;
use holdfast_protocol::json::chain;
use serde::Serialize;
use uuid::Uuid;

use crate::args::{Args, Output};
use crate::error::CliError;
use crate::render::clean;

/// Narrower terminals wrap; wider ones are not filled.
const COLUMNS: std::ops::RangeInclusive<u16> = 60..=200;

/// Whether text may be coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// A terminal that shows colours.
    On,
    /// A file, a pipe, or a person who does not want them.
    Off,
}

/// The layout of a table.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// Whether text may be coloured.
    pub colour: Colour,
    /// How wide a line may be; none where the output is not a terminal.
    pub columns: Option<u16>,
}

/// Whether to print notes in addition to the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verbosity {
    Notes,
    Quiet,
}

/// The person's or program's end.
pub struct Screen {
    output: Output,
    verbosity: Verbosity,
    style: Style,
    correlation: CorrelationId,
}

impl Screen {
    /// As the command line and the environment say.
    pub fn new(args: &Args) -> Self {
        let terminal = io::stdout().is_terminal();
        let no_color = args.no_color || std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let columns = rustix::termios::tcgetwinsize(io::stdout()).ok().map(|size| size.ws_col);
        Self {
            output: args.output,
            verbosity: if args.quiet { Verbosity::Quiet } else { Verbosity::Notes },
            style: Style {
                colour: if terminal && !no_color { Colour::On } else { Colour::Off },
                columns: columns.filter(|_| terminal).map(|n| n.clamp(*COLUMNS.start(), *COLUMNS.end())),
            },
            correlation: CorrelationId::new(Uuid::now_v7()),
        }
    }

    /// Shows a result: the data as JSON for programs, or the text that `table` makes of it for people.
    pub fn show<T: Serialize>(
        &self,
        data: &T,
        table: impl FnOnce(&T, Style) -> String,
    ) -> Result<(), CliError> {
        let text = match self.output {
            Output::Json => serde_json::to_string_pretty(data).map_err(CliError::Unwritable)? + "\n",
            Output::Table => table(data, self.style),
        };
        match io::stdout().lock().write_all(text.as_bytes()) {
            // `holdfast … | head` is no failure.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            other => other.map_err(CliError::Print),
        }
    }

    /// Prints a note in addition to the result, for people only.
    pub fn note(&self, text: &str) {
        if self.verbosity == Verbosity::Notes {
            // If standard error cannot be written, there is no way to report that.
            let _ = writeln!(io::stderr(), "{text}");
        }
    }

    /// Shows something that a person must see before a question.
    pub fn before_question(&self, text: &str) {
        let _ = write!(io::stderr(), "{text}");
    }

    /// Whether notes may be redrawn: standard error is a terminal, and quiet mode is off.
    pub fn is_live(&self) -> bool {
        self.verbosity == Verbosity::Notes && io::stderr().is_terminal()
    }

    /// The form of output.
    pub const fn output(&self) -> Output {
        self.output
    }

    /// The id that goes with every call of this run, and with its error.
    pub const fn correlation(&self) -> CorrelationId {
        self.correlation
    }

    /// The style of tables and differences.
    pub const fn style(&self) -> Style {
        self.style
    }

    /// Says why it failed.
    pub fn error(&self, error: &CliError) {
        // The message contains text from a host or hub, which must not move the cursor.
        let message = clean(&chain(error));
        let code = error.code().map(|code| code.as_str());
        let text = match (self.output, code) {
            // A problem of the hub's ends in its code already.
            (Output::Table, Some(code)) if !message.contains(code) => format!("holdfast: {message} [{code}]"),
            (Output::Table, _) => format!("holdfast: {message}"),
            (Output::Json, code) => {
                let error = serde_json::json!({ "code": code, "message": message, "exit": error.exit_code(),
                    "correlation_id": self.correlation });
                serde_json::json!({ "error": error }).to_string()
            }
        };
        let _ = writeln!(io::stderr(), "{text}");
    }
}
