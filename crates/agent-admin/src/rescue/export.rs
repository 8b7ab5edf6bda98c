//! Audit, journal and state as files in a new folder.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::Path;

use super::Document;
use crate::port::atomic_file::Given;
use crate::port::held_folder::{HeldError, HeldFolder};
use crate::port::store::rescue::{RescueFile, chain};

/// Why nothing, or not all, was written.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error(transparent)]
    Folder(#[from] HeldError),
    #[error("there is something of this name already, and nothing in it is written over")]
    Exists,
    #[error("it could not be written whole: remove it and try another disk")]
    Write(#[from] io::Error),
}

/// Writes them. A folder that is there already is not used.
pub fn write(
    file: &RescueFile,
    (from, into): (&Path, &Path),
    document: &Document<'_>,
) -> Result<(), ExportError> {
    let (parent, name) = HeldFolder::parent_of(into)?;
    if parent.has(name)? {
        return Err(ExportError::Exists);
    }
    let folder = parent.make(name, 0o700)?;
    let make = |name: &str| {
        let file = folder.fresh_file(OsStr::new(name), 0o600, Given::Kept)?;
        Ok::<_, ExportError>(BufWriter::new(file))
    };
    let mut audit = make("audit.jsonl")?;
    chain::export_audit((file.connection(), from), &document.state.audit, &mut audit)?;
    done(audit)?;
    let mut journal = make("journal.jsonl")?;
    if let Some(why) = chain::export_journal(file.connection(), &mut journal)? {
        // The file itself says that it ends early.
        writeln!(journal, "{}", serde_json::json!({ "incomplete": why }))?;
    }
    done(journal)?;
    let mut state = make("state.json")?;
    serde_json::to_writer_pretty(&mut state, document).map_err(io::Error::from)?;
    Ok(done(state)?)
}

fn done(file: BufWriter<File>) -> io::Result<()> {
    file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()
}
