//! One file of JSON Lines with its bounds and its digest.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use holdfast_protocol::job::act::Sha256Text;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use super::redact::redact;
use crate::state_errors::ExportError;

/// Rows of one file, at most.
pub const ROWS_MAX: u64 = 1_000_000;

/// A file, as the manifest names it.
#[derive(Clone, Debug, Serialize)]
pub struct FileEntry {
    pub name: &'static str,
    pub rows: u64,
    pub bytes: u64,
    pub sha256: String,
    /// Rows that had no place, or that another customer's guests may be in.
    pub left_out: u64,
    /// Why some are left out, or why the file is empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
    /// Secrets in texts that were replaced.
    pub redacted: u32,
}

/// A file that is being written.
pub struct RowFile {
    path: PathBuf,
    writer: BufWriter<File>,
    digest: Sha256,
    bytes_max: u64,
    entry: FileEntry,
}

impl RowFile {
    pub fn create(folder: &Path, name: &'static str, bytes_max: u64) -> Result<Self, ExportError> {
        let path = folder.join(name);
        let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        let file = opened.map_err(|source| ExportError::Write { path: path.clone(), source })?;
        let entry = FileEntry {
            name,
            rows: 0,
            bytes: 0,
            sha256: String::new(),
            left_out: 0,
            remarks: Vec::new(),
            redacted: 0,
        };
        Ok(Self { path, writer: BufWriter::new(file), digest: Sha256::new(), bytes_max, entry })
    }

    /// Adds a row, or counts it as left out.
    pub fn push(&mut self, row: &impl Serialize) -> Result<(), ExportError> {
        let mut value = serde_json::to_value(row)?;
        let redacted = redact(&mut value);
        let text = serde_json::to_string(&value)? + "\n";
        if self.add(text.as_bytes())? {
            self.entry.redacted = self.entry.redacted.saturating_add(redacted);
        }
        Ok(())
    }

    /// Adds a line as it is: those of a document with a digest of its own. Whether there was room.
    pub fn add(&mut self, line: &[u8]) -> Result<bool, ExportError> {
        let length = line.len() as u64;
        if self.entry.bytes.saturating_add(length) > self.bytes_max || self.entry.rows >= ROWS_MAX {
            self.entry.left_out = self.entry.left_out.saturating_add(1);
            return Ok(false);
        }
        let failed = |source| ExportError::Write { path: self.path.clone(), source };
        self.writer.write_all(line).map_err(failed)?;
        self.digest.update(line);
        self.entry.bytes += length;
        self.entry.rows += 1;
        Ok(true)
    }

    /// Counts what is left out without having been made.
    pub fn leave_out(&mut self, count: u64) {
        self.entry.left_out = self.entry.left_out.saturating_add(count);
    }

    /// Says something about the file.
    pub fn remark(&mut self, says: impl Into<String>) {
        self.entry.remarks.push(says.into());
    }

    pub fn end(mut self) -> Result<FileEntry, ExportError> {
        let failed = |source| ExportError::Write { path: self.path.clone(), source };
        self.writer.flush().map_err(failed)?;
        self.entry.sha256 = digest_text(self.digest);
        if self.entry.left_out > 0 && self.entry.remarks.is_empty() {
            let mib = self.bytes_max >> 20;
            let says = format!(
                "a file has at most {mib} MiB and {ROWS_MAX} rows: shorten the period, or raise --file-mib-max"
            );
            self.entry.remarks.push(says);
        }
        Ok(self.entry)
    }
}

/// In hex.
pub fn digest_text(digest: Sha256) -> String {
    digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The digest of a whole file, as the manifest writes it.
pub fn digest_of(bytes: &[u8]) -> String {
    Sha256Text::of(bytes).as_str().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_file_keeps_its_bound_and_counts_the_rest() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = RowFile::create(folder.path(), "events.jsonl", 20).unwrap();
        for number in 0..5 {
            file.push(&json!({ "n": number })).unwrap();
        }
        let entry = file.end().unwrap();
        assert_eq!((entry.rows, entry.left_out, entry.bytes), (2, 3, 16));
        let text = std::fs::read(folder.path().join("events.jsonl")).unwrap();
        assert_eq!(text, b"{\"n\":0}\n{\"n\":1}\n");
        assert_eq!(entry.sha256, digest_of(&text));
        assert!(entry.remarks[0].contains("--file-mib-max"));
    }
}
