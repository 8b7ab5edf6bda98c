//! The place of the log and its form there.

use std::ffi::OsStr;
use std::io::{IsTerminal as _, Write as _};
use std::os::fd::AsFd;

use crate::entry::Entry;
use crate::journal::Journal;
use crate::text;

/// The form of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// Fields of the journal under systemd, text on a terminal, JSON elsewhere.
    #[default]
    ByPlace,
    /// Lines for people.
    Text,
    /// JSON, one line for each entry.
    Json,
}

/// Where entries go.
#[derive(Debug)]
pub enum Output {
    /// The journal, with their fields.
    Journal(Journal),
    /// Standard error, as text.
    Text,
    /// Standard error, as JSON.
    Json,
}

impl Output {
    /// The output of this process.
    #[must_use]
    pub fn of(form: Form) -> Self {
        match form {
            Form::Text => Self::Text,
            Form::Json => Self::Json,
            Form::ByPlace => Self::by_place(),
        }
    }

    fn by_place() -> Self {
        let stream = std::env::var_os("JOURNAL_STREAM");
        if stream.is_some_and(|stream| is_stream(&stream, std::io::stderr()))
            && let Ok(journal) = Journal::connect()
        {
            return Self::Journal(journal);
        }
        if std::io::stderr().is_terminal() { Self::Text } else { Self::Json }
    }

    /// Writes one entry. An entry that cannot be written is lost: there is no other place to report that.
    pub fn write(&self, entry: &Entry) {
        match self {
            // Standard error is the journal's stream there, and waits where the socket refuses.
            Self::Journal(journal) if journal.send(entry).is_err() => write_error(&json(entry)),
            Self::Journal(_) => {}
            Self::Text => write_error(&text::line(entry)),
            Self::Json => write_error(&json(entry)),
        }
    }
}

/// Whether a file is the stream that systemd connected to its journal, as `JOURNAL_STREAM` says: `device:inode`.
fn is_stream(stream: &OsStr, file: impl AsFd) -> bool {
    let Ok(stat) = rustix::fs::fstat(file) else { return false };
    stream.to_str() == Some(&format!("{}:{}", stat.st_dev, stat.st_ino))
}

fn json(entry: &Entry) -> String {
    // Cannot fail: the keys are text.
    serde_json::to_string(entry).unwrap_or_default() + "\n"
}

fn write_error(line: &str) {
    let _ = std::io::stderr().lock().write_all(line.as_bytes());
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    #[test]
    fn the_journals_stream_is_known_by_device_and_inode() {
        let file = tempfile::tempfile().unwrap();
        let stat = file.metadata().unwrap();
        let cases = [
            (format!("{}:{}", stat.dev(), stat.ino()), true),
            (format!("{}:{}", stat.dev(), stat.ino() + 1), false),
            (format!("{}:{}", stat.dev() + 1, stat.ino()), false),
            (String::new(), false),
            ("1".to_owned(), false),
        ];
        for (stream, same) in cases {
            assert_eq!(is_stream(&OsString::from(&stream), &file), same, "{stream}");
        }
    }
}
