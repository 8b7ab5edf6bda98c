//! Audit segments in files.
//!
//! A month that ended long ago moves into files of the form that `agentd audit export` writes, in the folder `audit` of
//! the state folder. A file is complete on disk before its lines leave the database; an agent that dies in between
//! writes it again. The hash chain continues over all of them. A removed file keeps its row, so the start of the
//! remaining lines is known.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use holdfast_protocol::audit::{AuditLine, ExportHeader, ExportSchema, LINE_BYTES_MAX, Link, Verifier, hex};
use holdfast_protocol::json;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan as _};
use rusqlite::{Connection, OptionalExtension, Transaction};

use super::audit_file::line;
use super::columns::micros;
use super::compact::Upkeep;
use super::{Part, Store, StoreError, audit};
use agent_core::model::limits;
use held_files::atomic_file::{self, Readers};

/// The folder of the files, in the state folder.
pub const FOLDER: &str = "audit";

/// A part of the audit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Its first line.
    pub first: u64,
    /// Its last line.
    pub last: u64,
    /// The hash of the line before its first, in hex; empty before the first of all.
    pub before: String,
    /// The hash of its last line, in hex.
    pub chain: String,
    pub file: PathBuf,
    /// Whether the file is there, or was removed.
    pub place: SegmentPlace,
}

/// Where a part is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentPlace {
    /// In its file.
    Filed,
    /// Removed, as root had set it.
    Removed,
}

/// All parts, oldest first.
pub(super) fn all(connection: &Connection, folder: &Path) -> rusqlite::Result<Vec<Segment>> {
    let sql =
        "SELECT first, last, before, chain, file, removed_at IS NOT NULL FROM audit_segment ORDER BY first";
    let mut select = connection.prepare(sql)?;
    let rows = select.query_map([], |row| {
        let number =
            |at: usize| row.get::<_, i64>(at).map(|number| u64::try_from(number).unwrap_or_default());
        Ok(Segment {
            first: number(0)?,
            last: number(1)?,
            before: hex(&row.get::<_, Vec<u8>>(2)?),
            chain: hex(&row.get::<_, Vec<u8>>(3)?),
            file: folder.join(FOLDER).join(row.get::<_, String>(4)?),
            place: if row.get(5)? { SegmentPlace::Removed } else { SegmentPlace::Filed },
        })
    })?;
    rows.collect()
}

/// The line behind which the database begins: its number and hash. None where it begins with the first.
pub(super) fn last(connection: &Connection) -> Result<Option<(i64, Vec<u8>)>, StoreError> {
    connection
        .prepare_cached("SELECT last, chain FROM audit_segment ORDER BY first DESC LIMIT 1")
        .and_then(|mut select| select.query_row([], |row| Ok((row.get(0)?, row.get(1)?))).optional())
        .map_err(StoreError::sqlite("read the parts of the audit"))
}

/// The first moment of a month.
fn month(at: Timestamp) -> Timestamp {
    let day = at.to_zoned(TimeZone::UTC).first_of_month().and_then(|day| day.start_of_day());
    day.map_or(Timestamp::MIN, |day| day.timestamp())
}

/// The lines for the next file: of one month, which ended at least a month ago. The newest line of all stays.
fn due(connection: &Connection, now: Timestamp) -> Result<Vec<AuditLine>, StoreError> {
    let failed = || StoreError::sqlite("read the audit");
    let sql = "SELECT number, at, action, guest, operation, detail, chain FROM audit
               WHERE number < (SELECT max(number) FROM audit) ORDER BY number LIMIT ?1";
    let mut lines: Vec<AuditLine> = connection
        .prepare_cached(sql)
        .and_then(|mut select| select.query_map([limits::AUDIT_SEGMENT_LINES], line)?.collect())
        .map_err(failed())?;
    let Some(first) = lines.first() else { return Ok(Vec::new()) };
    let old = month(now.checked_sub(limits::AUDIT_IN_DATABASE).unwrap_or(Timestamp::MIN));
    let began = Timestamp::from_microsecond(first.at_us).unwrap_or(Timestamp::MIN);
    let next = month(began).checked_add(SignedDuration::from_hours(32 * 24)).map_or(old, month);
    let until = micros(old.min(next));
    // A line dated ahead of its neighbours was written under a wrong clock: it moves together with them.
    let count = lines.iter().rposition(|line| line.at_us < until).map_or(0, |last| last + 1);
    lines.truncate(count);
    Ok(lines)
}

/// The text of a file.
fn text(lines: &[AuditLine], after: Option<Link>) -> Result<String, StoreError> {
    let unwritten = StoreError::unreadable("lines of the audit");
    let header = ExportHeader { schema: ExportSchema::V1, lines: lines.len() as u64, after };
    let words =
        std::iter::once(serde_json::to_string(&header)).chain(lines.iter().map(serde_json::to_string));
    words.collect::<Result<Vec<_>, _>>().map_err(unwritten).map(|lines| lines.join("\n") + "\n")
}

fn seal(transaction: &Transaction<'_>, folder: &Path, now: Timestamp) -> Result<Upkeep, StoreError> {
    let lines = due(transaction, now)?;
    let (Some(first), Some(end)) = (lines.first(), lines.last()) else { return Ok(Upkeep::Done) };
    let before = last(transaction)?;
    let after = before.as_ref().map(|(number, chain)| Link {
        number: u64::try_from(*number).unwrap_or_default(),
        chain: hex(chain),
    });
    let mut verifier = Verifier::default();
    let held = after.iter().try_for_each(|link| verifier.begin_after(link));
    held.and_then(|()| lines.iter().try_for_each(|line| verifier.line(line)))
        .map_err(StoreError::unreadable("an audit"))?;
    let began = Timestamp::from_microsecond(first.at_us).unwrap_or(Timestamp::UNIX_EPOCH);
    let mut name = began.strftime("%Y-%m").to_string();
    let _infallible = write!(name, "-{:09}-{:09}.jsonl", first.number, end.number);
    let text = text(&lines, after)?;
    let place = folder.join(FOLDER);
    atomic_file::private_folder(&place)
        .and_then(|()| atomic_file::write(&place.join(&name), text.as_bytes(), Readers::Owner))
        .map_err(StoreError::unreadable("a folder for the audit"))?;
    let failed = || StoreError::sqlite("file the audit");
    let bytes = i64::try_from(text.len()).unwrap_or(i64::MAX);
    transaction
        .execute(
            "INSERT INTO audit_segment (first, last, before, chain, ended_at, file, bytes)
             SELECT ?1, ?2, ?3, chain, ?4, ?5, ?6 FROM audit WHERE number = ?2",
            (
                first.number,
                end.number,
                before.map(|(_, chain)| chain).unwrap_or_default(),
                lines.iter().map(|line| line.at_us).max(),
                &name,
                bytes,
            ),
        )
        .map_err(failed())?;
    transaction.execute("DELETE FROM audit WHERE number <= ?1", [end.number]).map_err(failed())?;
    let detail = format!("lines {} to {} lie in {FOLDER}/{name}", first.number, end.number);
    let noted = audit::Line { at: now, action: "audit_filed", guest: None, operation: None, detail: &detail };
    audit::append(transaction, &noted)?;
    Ok(Upkeep::More)
}

fn remove(
    transaction: &Transaction<'_>,
    folder: &Path,
    (months, now): (u16, Timestamp),
) -> Result<Upkeep, StoreError> {
    let failed = || StoreError::sqlite("remove a part of the audit");
    let until = now.to_zoned(TimeZone::UTC).checked_sub(i64::from(months).months());
    let until = until.map_or(Timestamp::MIN, |until| until.timestamp());
    // Only the oldest may be removed, so that the rest stays contiguous.
    let oldest: Option<(i64, i64, String)> = transaction
        .query_row(
            "SELECT first, last, file FROM
             (SELECT * FROM audit_segment WHERE removed_at IS NULL ORDER BY first LIMIT 1) WHERE ended_at < ?1",
            [micros(until)],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
        )
        .optional()
        .map_err(failed())?;
    let Some((first, last, file)) = oldest else { return Ok(Upkeep::Done) };
    let set = "UPDATE audit_segment SET removed_at = ?2 WHERE first = ?1";
    transaction.execute(set, (first, micros(now))).map_err(failed())?;
    let detail = format!("lines {first} to {last}, older than {months} months, as root set it");
    let noted =
        audit::Line { at: now, action: "audit_removed", guest: None, operation: None, detail: &detail };
    audit::append(transaction, &noted)?;
    // If the agent is killed after this, the row still says that the file exists; the next run corrects that.
    atomic_file::remove(&folder.join(FOLDER).join(file))
        .map_err(StoreError::unreadable("a file of the audit"))?;
    Ok(Upkeep::More)
}

/// Goes through the lines of one file, oldest first.
///
/// # Errors
/// [`StoreError`] when it cannot be read, or the error of `each`.
pub(super) fn each_line<E: From<StoreError>>(
    segment: &Segment,
    mut each: impl FnMut(AuditLine) -> Result<(), E>,
) -> Result<(), E> {
    use std::io::{BufRead as _, BufReader, Read as _};
    let unread = |error: std::io::Error| {
        let text = format!("{}: {error}", segment.file.display());
        StoreError::unreadable("a file of the audit")(text)
    };
    let file = std::fs::File::open(&segment.file).map_err(unread)?;
    let mut reader = BufReader::new(file);
    // After the header, which repeats only data of the row.
    for number in 0..=segment.last.saturating_sub(segment.first) + 1 {
        let mut text = String::new();
        let most = LINE_BYTES_MAX as u64 + 1;
        (&mut reader).take(most).read_line(&mut text).map_err(unread)?;
        if number > 0 {
            let line: AuditLine =
                json::parse("the line", text.trim_end_matches('\n').as_bytes(), LINE_BYTES_MAX)
                    .map_err(StoreError::unreadable("a file of the audit"))?;
            each(line)?;
        }
    }
    Ok(())
}

impl Store {
    /// Files one part of the audit, if one is due.
    ///
    /// # Errors
    /// [`StoreError`]; no line left the database then.
    pub async fn file_audit(&self, now: Timestamp) -> Result<Upkeep, StoreError> {
        let folder = self.folder.clone();
        self.write(Part::Nothing, "file the audit", move |transaction| seal(transaction, &folder, now)).await
    }

    /// Removes the oldest filed part of the audit, if it is older than so many months. `now` must not be in the future.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn remove_audit(&self, months: u16, now: Timestamp) -> Result<Upkeep, StoreError> {
        let folder = self.folder.clone();
        self.write(Part::Nothing, "remove a part of the audit", move |transaction| {
            remove(transaction, &folder, (months, now))
        })
        .await
    }
}

#[cfg(test)]
mod tests;
