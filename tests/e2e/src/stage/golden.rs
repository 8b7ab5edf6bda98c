//! The golden archive of a stage: a file, its version, its digest.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Deserialize;

/// The manifest that a golden build leaves next to its archive; only the fields that a stage needs.
#[derive(Debug, Deserialize)]
struct Manifest {
    version: String,
    archive: String,
    sha256: String,
}

/// A golden archive.
#[derive(Clone, Debug)]
pub struct Golden {
    pub file: PathBuf,
    pub manifest: PathBuf,
    /// `YYYY.MM.N`.
    pub version: String,
    /// SHA-256 of the file, hex.
    pub sha256: String,
}

impl Golden {
    /// Reads what a build left: the manifest, which names the archive next to it.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read(manifest: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(manifest)
            .with_context(|| format!("cannot read {}", manifest.display()))?;
        let Manifest { version, archive, sha256 } =
            serde_json::from_str(&text).context("the golden's manifest is not of its form")?;
        Ok(Self { file: manifest.with_file_name(archive), manifest: manifest.to_owned(), version, sha256 })
    }

    /// The archive's name, by which Proxmox knows it.
    ///
    /// # Errors
    /// When the file has no name.
    pub fn name(&self) -> Result<String> {
        let name = self.file.file_name().context("an archive has a name")?;
        Ok(name.to_string_lossy().into_owned())
    }
}
