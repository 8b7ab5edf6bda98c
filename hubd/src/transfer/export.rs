//! The export: all rows of one look into one file.

use std::io::{self, Write};

use jiff::Timestamp;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use super::format::{FORMAT, Line, Trailer};
use super::summary::ANNOUNCED_ROWS;
use super::value::RowDigest;
use super::{
    Engine, EngineError, ExportError, FolderFile, Header, Progress, RowSource, SchemaNumbers, Summary, Table,
    TableSummary, ordered,
};

/// Zstandard's own default: three times as fast as the next that packs more.
const LEVEL: i32 = 3;

/// What the header says of the hub, and the files that go with the rows.
pub struct ExportRequest {
    pub engine: Engine,
    pub schema: SchemaNumbers,
    pub taken_at: Timestamp,
    pub ca: String,
    pub files: Vec<FolderFile>,
}

/// Writes everything, and gives the writer back for a sync. Blocks.
///
/// # Errors
/// [`ExportError`]; what was written so far is no export.
pub fn export<W: Write>(
    source: &mut dyn RowSource,
    request: ExportRequest,
    out: W,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<(Summary, W), ExportError> {
    let tables = ordered(source.tables()?)?;
    let mut encoder = zstd::Encoder::new(out, LEVEL).map_err(ExportError::Write)?;
    encoder.include_checksum(true).map_err(ExportError::Write)?;
    let mut lines = Lines { out: encoder, hash: Sha256::new(), buffer: Vec::new() };
    lines.put(&Header {
        format: FORMAT,
        hub: env!("CARGO_PKG_VERSION").to_owned(),
        engine: request.engine,
        schema: request.schema,
        taken_at: request.taken_at,
        ca: request.ca,
        tables: tables.clone(),
    })?;
    for file in request.files {
        lines.put(&Line::File(file))?;
    }
    let counters = source.counters()?;
    let mut summaries = Vec::with_capacity(tables.len());
    for table in &tables {
        summaries.push(rows_of(source, table, &mut lines, progress)?);
    }
    let sha256 = hex::encode(lines.hash.clone().finalize());
    lines.put(&Line::End(Trailer { tables: summaries.clone(), counters, sha256 }))?;
    let out = lines.out.finish().map_err(ExportError::Write)?;
    Ok((Summary::of(&summaries), out))
}

fn rows_of<W: Write>(
    source: &mut dyn RowSource,
    table: &Table,
    lines: &mut Lines<W>,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<TableSummary, ExportError> {
    lines.put(&Line::Table(table.name.clone()))?;
    let mut digest = RowDigest::default();
    let read = source.rows(table, &mut |row| {
        digest.add(row);
        if digest.rows().is_multiple_of(ANNOUNCED_ROWS) {
            progress(Progress::Rows { table: &table.name, rows: digest.rows() });
        }
        lines.put(row).map_err(io::Error::other)
    });
    match read {
        Ok(()) => {}
        Err(EngineError::File(error)) => return Err(ExportError::Write(error)),
        Err(error) => return Err(error.into()),
    }
    progress(Progress::Table { table: &table.name, rows: digest.rows() });
    Ok(digest.done(&table.name))
}

/// Packed lines, and the digest of those before.
struct Lines<W: Write> {
    out: zstd::Encoder<'static, W>,
    hash: Sha256,
    buffer: Vec<u8>,
}

impl<W: Write> Lines<W> {
    fn put<T: Serialize + ?Sized>(&mut self, line: &T) -> Result<(), ExportError> {
        self.buffer.clear();
        serde_json::to_writer(&mut self.buffer, line)?;
        self.buffer.push(b'\n');
        self.hash.update(&self.buffer);
        self.out.write_all(&self.buffer).map_err(ExportError::Write)
    }
}
