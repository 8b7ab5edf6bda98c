//! The folder of an export: its files, its manifest, and its end.
//!
//! In: files. Out: a folder, or a packed file, that is there when it is whole. What is dropped before is removed.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::Serialize;

use super::row_file::{FileEntry, RowFile, digest_of};
use super::selection::{Scope, Selection};
use crate::state_errors::ExportError;

/// What the export is of.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Period {
    pub from: Timestamp,
    pub to: Timestamp,
    /// When it was made.
    #[serde(rename = "made_at")]
    pub now: Timestamp,
}

impl Period {
    /// Whether something of this time is in it.
    pub fn has(&self, at: Timestamp) -> bool {
        (self.from..=self.to).contains(&at)
    }
}

/// What the manifest says.
#[derive(Debug, Serialize)]
pub struct Manifest {
    pub schema: &'static str,
    #[serde(flatten)]
    pub period: Period,
    pub scope: Scope,
    pub holdfast_version: &'static str,
    pub files: Vec<FileEntry>,
}

/// A folder that is being written, under another name until it is whole.
pub struct ExportFolder {
    out: PathBuf,
    partial: PathBuf,
    bytes_max: u64,
    files: Vec<FileEntry>,
    is_whole: bool,
}

fn with_tail(out: &Path, tail: &str) -> PathBuf {
    let mut text = out.as_os_str().to_owned();
    text.push(tail);
    PathBuf::from(text)
}

impl ExportFolder {
    pub fn create(out: &Path, bytes_max: u64) -> Result<Self, ExportError> {
        if out.exists() {
            return Err(ExportError::Exists { path: out.to_owned() });
        }
        let partial = with_tail(out, ".partial");
        let made = fs::DirBuilder::new().mode(0o700).create(&partial);
        made.map_err(|source| ExportError::Write { path: partial.clone(), source })?;
        Ok(Self { out: out.to_owned(), partial, bytes_max, files: Vec::new(), is_whole: false })
    }

    /// Begins a file.
    pub fn file(&self, name: &'static str) -> Result<RowFile, ExportError> {
        RowFile::create(&self.partial, name, self.bytes_max)
    }

    /// Takes a file that is whole.
    pub fn add(&mut self, file: RowFile) -> Result<(), ExportError> {
        self.files.push(file.end()?);
        Ok(())
    }

    pub fn manifest(&self, period: Period, selection: &Selection) -> Manifest {
        Manifest {
            schema: "holdfast.export/v1",
            period,
            scope: selection.scope(),
            holdfast_version: env!("CARGO_PKG_VERSION"),
            files: self.files.clone(),
        }
    }

    /// Writes the pages and the manifest, and gives all its name.
    pub fn end(
        mut self,
        manifest: &Manifest,
        readme: &str,
        summary: &str,
        is_packed: bool,
    ) -> Result<(), ExportError> {
        self.page("README.md", readme)?;
        self.page("summary.md", summary)?;
        let mut document = serde_json::to_value(manifest)?;
        if let Some(files) = document.get_mut("files").and_then(serde_json::Value::as_array_mut) {
            for (name, text) in [("README.md", readme), ("summary.md", summary)] {
                let sha256 = digest_of(text.as_bytes());
                files.push(serde_json::json!({ "name": name, "bytes": text.len(), "sha256": sha256 }));
            }
        }
        self.page("manifest.json", &(serde_json::to_string_pretty(&document)? + "\n"))?;
        let failed = |source| ExportError::Write { path: self.out.clone(), source };
        if is_packed {
            let packed = with_tail(&self.out, ".partial.file");
            let result = pack(&self.partial, &packed, &self.out);
            let result = result.and_then(|()| fs::rename(&packed, &self.out));
            if result.is_err() {
                drop(fs::remove_file(&packed));
            }
            result.map_err(failed)?;
        } else {
            fs::rename(&self.partial, &self.out).map_err(failed)?;
            self.is_whole = true;
        }
        Ok(())
    }

    fn page(&self, name: &str, text: &str) -> Result<(), ExportError> {
        let path = self.partial.join(name);
        let written = private(&path).and_then(|mut file| file.write_all(text.as_bytes()));
        written.map_err(|source| ExportError::Write { path, source })
    }
}

fn private(path: &Path) -> std::io::Result<fs::File> {
    fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)
}

/// Packs a folder, under the name that the file has.
fn pack(folder: &Path, packed: &Path, out: &Path) -> std::io::Result<()> {
    let name = out.file_name().map(|name| name.to_string_lossy().replace(".tar.zst", "")).unwrap_or_default();
    let encoder = zstd::stream::write::Encoder::new(private(packed)?, 3)?;
    let mut archive = tar::Builder::new(encoder);
    archive.append_dir_all(name, folder)?;
    archive.into_inner()?.finish()?.sync_all()
}

impl Drop for ExportFolder {
    fn drop(&mut self) {
        if !self.is_whole {
            // What cannot be removed is named as partial.
            drop(fs::remove_dir_all(&self.partial));
        }
    }
}
