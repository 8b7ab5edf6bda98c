//! Snapshots of state as documents, written and read line by line.
//!
//! What comes in: hosts, or lines. What goes out: lines, or hosts, and at the end the tail. One host is in memory at a
//! time. Deliberately absent: the file or connection that the lines go to or come from.

use sha2::{Digest as _, Sha256};

use super::content::{ContentDigest, canonical};
use super::host::StateHost;
use super::lines::{StateHead, StateLine, StateTail};
use crate::job::act::Sha256Text;
use crate::json::{self, JsonError};

/// A line is longer than any report with its document.
pub const LINE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Why a document of state is refused, or cannot be written. What was read of it before counts for nothing.
#[derive(Debug, thiserror::Error)]
pub enum StateDocumentError {
    /// A line that is none.
    #[error("line {line} is no line of a snapshot of state")]
    Line {
        /// Its number, from 1.
        line: u64,
        /// Where and why.
        #[source]
        source: JsonError,
    },
    /// A line in a place where it cannot be.
    #[error("line {line} is out of place: a snapshot has one head, then hosts, then one tail")]
    Place {
        /// Its number, from 1.
        line: u64,
    },
    /// No tail.
    #[error("the snapshot was cut off: its last line is missing, so make it anew")]
    CutOff,
    /// Other bytes than were written.
    #[error("the snapshot was changed after it was written: its {what} does not fit")]
    Changed {
        /// What does not fit.
        what: &'static str,
    },
    /// Cannot happen for what we write.
    #[error("the snapshot cannot be written as JSON")]
    Unwritable(#[from] serde_json::Error),
    /// Cannot happen: a digest is always of its form.
    #[error("the digest of the snapshot cannot be written: {0}")]
    Digest(&'static str),
}

/// Counts and digests so far.
#[derive(Clone, Debug, Default)]
struct Tally {
    hosts: u32,
    guests: u32,
    content: ContentDigest,
    document: Sha256,
}

impl Tally {
    fn count(&mut self, host: &StateHost) -> Result<(), serde_json::Error> {
        self.hosts = self.hosts.saturating_add(1);
        self.guests = self.guests.saturating_add(u32::try_from(host.guests.len()).unwrap_or(u32::MAX));
        self.content.add(host)
    }

    fn tail(self) -> Result<StateTail, StateDocumentError> {
        let text = |hex: String| Sha256Text::try_from(hex).map_err(StateDocumentError::Digest);
        Ok(StateTail {
            hosts: self.hosts,
            guests: self.guests,
            content: text(self.content.end())?,
            document: text(hex::encode(self.document.finalize()))?,
        })
    }
}

/// Writes a document.
#[derive(Clone, Debug)]
pub struct StateWriter(Tally);

/// The end of a document that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentEnd {
    /// The last line.
    pub line: String,
    /// What it says.
    pub tail: StateTail,
}

impl StateWriter {
    /// Begins a document with its first line.
    ///
    /// # Errors
    /// [`StateDocumentError`].
    pub fn begin(head: StateHead) -> Result<(Self, String), StateDocumentError> {
        let mut writer = Self(Tally::default());
        let line = writer.line(&StateLine::Head(head))?;
        Ok((writer, line))
    }

    /// The line of the next host. Hosts come by name.
    ///
    /// # Errors
    /// [`StateDocumentError`].
    pub fn host(&mut self, host: StateHost) -> Result<String, StateDocumentError> {
        self.0.count(&host)?;
        self.line(&StateLine::Host(Box::new(host)))
    }

    /// The last line.
    ///
    /// # Errors
    /// [`StateDocumentError`].
    pub fn end(self) -> Result<DocumentEnd, StateDocumentError> {
        let tail = self.0.tail()?;
        let line = canonical(&StateLine::Tail(tail.clone()))? + "\n";
        Ok(DocumentEnd { line, tail })
    }

    fn line(&mut self, line: &StateLine) -> Result<String, StateDocumentError> {
        let text = canonical(line)? + "\n";
        self.0.document.update(&text);
        Ok(text)
    }
}

/// What a line says.
#[derive(Clone, Debug, PartialEq)]
pub enum Line {
    /// The document begins.
    Head(StateHead),
    /// A host.
    Host(Box<StateHost>),
    /// The document ended, and its digests fit.
    Tail(StateTail),
}

/// How far a document is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Begin,
    Hosts,
    End,
}

/// Reads a document, line by line.
#[derive(Clone, Debug)]
pub struct StateReader {
    tally: Tally,
    place: Place,
    line: u64,
}

impl Default for StateReader {
    fn default() -> Self {
        Self { tally: Tally::default(), place: Place::Begin, line: 0 }
    }
}

impl StateReader {
    /// Takes the next line, without the line end.
    ///
    /// # Errors
    /// [`StateDocumentError`].
    pub fn take(&mut self, text: &[u8]) -> Result<Line, StateDocumentError> {
        self.line += 1;
        let line = self.line;
        let read: StateLine = json::parse("a line of state", text, LINE_BYTES_MAX)
            .map_err(|source| StateDocumentError::Line { line, source })?;
        match (read, self.place) {
            (StateLine::Head(head), Place::Begin) => {
                self.place = Place::Hosts;
                self.digest(text);
                Ok(Line::Head(head))
            }
            (StateLine::Host(host), Place::Hosts) => {
                self.digest(text);
                self.tally.count(&host)?;
                Ok(Line::Host(host))
            }
            (StateLine::Tail(tail), Place::Hosts) => {
                self.place = Place::End;
                check(&tail, std::mem::take(&mut self.tally).tail()?)?;
                Ok(Line::Tail(tail))
            }
            (StateLine::Head(_) | StateLine::Host(_) | StateLine::Tail(_), _) => {
                Err(StateDocumentError::Place { line })
            }
        }
    }

    /// Says that there is no further line.
    ///
    /// # Errors
    /// [`StateDocumentError::CutOff`].
    pub fn end(&self) -> Result<(), StateDocumentError> {
        if self.place == Place::End { Ok(()) } else { Err(StateDocumentError::CutOff) }
    }

    fn digest(&mut self, text: &[u8]) {
        self.tally.document.update(text);
        self.tally.document.update(b"\n");
    }
}

fn check(says: &StateTail, found: StateTail) -> Result<(), StateDocumentError> {
    let changed = |what| Err(StateDocumentError::Changed { what });
    if says.document != found.document {
        return changed("digest");
    }
    if (says.hosts, says.guests) != (found.hosts, found.guests) {
        return changed("count of hosts and guests");
    }
    if says.content != found.content {
        return changed("content digest");
    }
    Ok(())
}
