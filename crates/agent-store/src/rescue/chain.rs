//! The audit and the journal of a file that may be damaged.
//!
//! In: a connection that only reads, and the state folder with filed parts of the audit. Out: how far the chain holds and why it
//! ends, and both as lines of JSON. The lines of the audit have the form of `agentd audit export`, so `holdfast audit verify`
//! checks them. Of the journal come names, times and events; deliberately absent: specifications of operations.

use std::io::{self, Write};
use std::path::Path;

use holdfast_protocol::audit::{AuditLine, ChainError, ExportHeader, ExportSchema, Link, Verifier};
use holdfast_protocol::json::chain;
use jiff::Timestamp;
use rusqlite::Connection;
use serde::Serialize;
use serde_json::Value;

use crate::StoreError;
use crate::audit_file::line;
use crate::columns::when;
use crate::segment::{self, Segment, SegmentPlace};

/// How far the audit can be read, and holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AuditState {
    /// Lines that were read.
    pub lines: u64,
    /// Lines removed at the beginning, as root had set it.
    pub removed: u64,
    /// The last line up to which the chain holds; 0 where there is none.
    pub verified_to: u64,
    /// The hash of that line.
    pub head: String,
    /// When the last line was written that was read.
    pub last_line_at: Option<Timestamp>,
    /// Where and why the chain breaks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub broken: Option<String>,
    /// Why lines behind the last one that was read may be missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub incomplete: Option<String>,
    /// The line behind which those that are here begin.
    #[serde(skip)]
    after: Option<Link>,
}

/// Why a walk ended.
enum Stop<E> {
    Unreadable(StoreError),
    Reader(E),
}

impl<E> From<StoreError> for Stop<E> {
    fn from(error: StoreError) -> Self {
        Self::Unreadable(error)
    }
}

/// Goes through all lines that can be read, oldest first; the error says why there are no more.
fn walk<E>(
    connection: &Connection,
    filed: &[Segment],
    mut each: impl FnMut(AuditLine) -> Result<(), E>,
) -> Result<(), Stop<E>> {
    for segment in filed {
        segment::each_line::<Stop<E>>(segment, |line| each(line).map_err(Stop::Reader))?;
    }
    let failed = || StoreError::sqlite("read the audit");
    let sql = "SELECT number, at, action, guest, operation, detail, chain FROM audit ORDER BY number";
    let mut select = connection.prepare(sql).map_err(failed())?;
    let mut rows = select.query([]).map_err(failed())?;
    while let Some(row) = rows.next().map_err(failed())? {
        each(line(row).map_err(failed())?).map_err(Stop::Reader)?;
    }
    Ok(())
}

/// The parts in files, and the link behind which the first line that is here comes.
fn parts(connection: &Connection, folder: &Path) -> Result<(Vec<Segment>, Option<Link>), StoreError> {
    let all = segment::all(connection, folder).map_err(StoreError::sqlite("read the parts of the audit"))?;
    let (removed, filed): (Vec<Segment>, Vec<Segment>) =
        all.into_iter().partition(|segment| segment.place == SegmentPlace::Removed);
    Ok((filed, removed.last().map(|last| Link { number: last.last, chain: last.chain.clone() })))
}

/// Verifies what can be read.
pub(super) fn verify(connection: &Connection, folder: &Path) -> AuditState {
    let mut state = AuditState::default();
    let (filed, after) = match parts(connection, folder) {
        Ok(parts) => parts,
        Err(error) => {
            state.incomplete = Some(chain(&error));
            (Vec::new(), None)
        }
    };
    state.removed = after.as_ref().map_or(0, |link| link.number);
    let mut verifier = Verifier::default();
    let mut broken: Option<ChainError> = after.iter().try_for_each(|link| verifier.begin_after(link)).err();
    state.after = after;
    let walked = walk::<std::convert::Infallible>(connection, &filed, |line| {
        state.lines += 1;
        state.last_line_at = when(line.at_us);
        if broken.is_none() {
            match verifier.line(&line) {
                Ok(_) => {
                    state.verified_to = u64::try_from(line.number).unwrap_or_default();
                    state.head.clone_from(&line.chain);
                }
                Err(error) => broken = Some(error),
            }
        }
        Ok(())
    });
    if let Err(Stop::Unreadable(error)) = walked {
        state.incomplete = Some(chain(&error));
    }
    state.broken = broken.map(|error| chain(&error));
    state
}

/// Writes the lines of the audit that can be read, a header first.
///
/// # Errors
/// When it cannot be written out. What cannot be read is in `state` already.
pub fn export_audit(
    (connection, folder): (&Connection, &Path),
    state: &AuditState,
    out: &mut dyn Write,
) -> io::Result<()> {
    let header = ExportHeader { schema: ExportSchema::V1, lines: state.lines, after: state.after.clone() };
    writeln!(out, "{}", serde_json::to_string(&header)?)?;
    let (filed, _) = parts(connection, folder).unwrap_or_default();
    let mut left = state.lines;
    let walked = walk::<io::Error>(connection, &filed, |line| {
        if left > 0 {
            left -= 1;
            writeln!(out, "{}", serde_json::to_string(&line)?)?;
        }
        Ok(())
    });
    match walked {
        Err(Stop::Reader(error)) => Err(error),
        Err(Stop::Unreadable(_)) | Ok(()) => Ok(()),
    }
}

#[derive(Serialize)]
struct JournalLine<'a> {
    operation: &'a str,
    kind: &'a str,
    guest: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    number: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    event: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    steps: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    opened_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<&'a str>,
}

/// Writes the journal: for each operation a line of its own, then its events. Says why it ends early, where it does.
///
/// # Errors
/// When it cannot be written out.
pub fn export_journal(connection: &Connection, out: &mut dyn Write) -> io::Result<Option<String>> {
    let mut failed = None;
    let mut walk = || -> rusqlite::Result<()> {
        let sql = "SELECT serial, id, kind, guest, opened_at, ended_at, outcome, steps FROM operation ORDER BY serial";
        let mut select = connection.prepare(sql)?;
        let events = "SELECT number, at, body FROM event WHERE operation = ?1 ORDER BY number";
        let mut events = connection.prepare(events)?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            let (id, kind, guest): (String, String, String) = (row.get(1)?, row.get(2)?, row.get(3)?);
            let (outcome, steps): (Option<String>, Option<String>) = (row.get(6)?, row.get(7)?);
            let head = JournalLine {
                operation: &id,
                kind: &kind,
                guest: &guest,
                number: None,
                at: None,
                event: None,
                steps: steps.and_then(parsed),
                opened_at: when(row.get(4)?),
                ended_at: row.get::<_, Option<i64>>(5)?.and_then(when),
                outcome: outcome.as_deref(),
            };
            if !put(out, &head, &mut failed) {
                return Ok(());
            }
            let mut found = events.query([row.get::<_, i64>(0)?])?;
            while let Some(row) = found.next()? {
                let event = JournalLine {
                    number: row.get(0)?,
                    at: when(row.get(1)?),
                    event: parsed(row.get(2)?),
                    steps: None,
                    opened_at: None,
                    ended_at: None,
                    outcome: None,
                    operation: &id,
                    kind: &kind,
                    guest: &guest,
                };
                if !put(out, &event, &mut failed) {
                    return Ok(());
                }
            }
        }
        Ok(())
    };
    let ended = walk().err().map(|error| error.to_string());
    match failed {
        Some(error) => Err(error),
        None => Ok(ended),
    }
}

/// Text that is no JSON is left out: it would break the line.
fn parsed(text: String) -> Option<Value> {
    serde_json::from_str(&text).ok()
}

fn put(out: &mut dyn Write, line: &JournalLine<'_>, failed: &mut Option<io::Error>) -> bool {
    let written =
        serde_json::to_string(line).map_err(io::Error::from).and_then(|text| writeln!(out, "{text}"));
    match written {
        Ok(()) => true,
        Err(error) => {
            *failed = Some(error);
            false
        }
    }
}
