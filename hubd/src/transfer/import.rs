//! The import of a file into an empty database.
//!
//! In: a file read up to its rows, and a transaction on an empty database. Out: counts and digests, after the commit. Each
//! table is compared with the trailer twice before that: as the file has it, and as the database gives it back.

use std::io;

use super::catalogue::difference;
use super::summary::ANNOUNCED_ROWS;
use super::value::RowDigest;
use super::{
    ExportReader, ImportError, Progress, RowSink, SchemaNumbers, Summary, Table, TableSummary, ordered,
};

/// Imports everything. `known` are the schemas that this hub knows. Blocks.
///
/// # Errors
/// [`ImportError`]; nothing was changed then.
pub fn import(
    reader: &mut ExportReader,
    mut sink: Box<dyn RowSink + '_>,
    known: SchemaNumbers,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Summary, ImportError> {
    let tables = ordered(sink.tables()?)?;
    compare(reader, &tables, known)?;
    // A backup's files stand before the rows; who wants them has read them already.
    reader.files()?;
    sink.prepare(&tables)?;
    let mut found = Vec::with_capacity(tables.len());
    for table in &tables {
        found.push(load(reader, sink.as_mut(), table, progress)?);
    }
    let trailer = reader.end()?;
    if let Some(table) = first_difference(&found, &trailer.tables) {
        return Err(ImportError::Changed { what: format!("table {table}") });
    }
    sink.set_counters(&trailer.counters)?;
    progress(Progress::Verifying);
    let mut stored = Vec::with_capacity(tables.len());
    for table in &tables {
        stored.push(read_back(sink.as_mut(), table)?);
    }
    if let Some(table) = first_difference(&stored, &trailer.tables) {
        return Err(ImportError::Differs(table));
    }
    sink.commit()?;
    Ok(Summary::of(&stored))
}

/// Whether rows of the file fit into these tables.
fn compare(reader: &ExportReader, tables: &[Table], known: SchemaNumbers) -> Result<(), ImportError> {
    let header = reader.header();
    let hub = || header.hub.clone();
    if header.schema.sqlite > known.sqlite || header.schema.postgres > known.postgres {
        return Err(ImportError::Newer { hub: hub() });
    }
    match difference(&header.tables, tables) {
        None => Ok(()),
        Some(difference) => Err(ImportError::Tables { hub: hub(), difference }),
    }
}

fn load(
    reader: &mut ExportReader,
    sink: &mut dyn RowSink,
    table: &Table,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<TableSummary, ImportError> {
    reader.table(table)?;
    let mut digest = RowDigest::default();
    sink.load(table, &mut || {
        let row = reader.row(table)?;
        if let Some(row) = &row {
            digest.add(row);
            if digest.rows().is_multiple_of(ANNOUNCED_ROWS) {
                progress(Progress::Rows { table: &table.name, rows: digest.rows() });
            }
        }
        Ok(row)
    })?;
    progress(Progress::Table { table: &table.name, rows: digest.rows() });
    Ok(digest.done(&table.name))
}

fn read_back(sink: &mut dyn RowSink, table: &Table) -> Result<TableSummary, ImportError> {
    let mut digest = RowDigest::default();
    sink.rows(table, &mut |row| {
        digest.add(row);
        io::Result::Ok(())
    })?;
    Ok(digest.done(&table.name))
}

/// The name of the first table that is not the same in both.
fn first_difference(one: &[TableSummary], other: &[TableSummary]) -> Option<String> {
    if let Some((differs, _)) = one.iter().zip(other).find(|(one, other)| one != other) {
        return Some(differs.name.clone());
    }
    let longer = if one.len() > other.len() { one } else { other };
    longer.get(one.len().min(other.len())).map(|table| table.name.clone())
}
