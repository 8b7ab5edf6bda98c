//! The golden archive of a stage: a file, its version, its digest.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::place::{Place, User};

/// The manifest that a golden build leaves next to its archive; only the fields that a stage needs.
#[derive(Debug, Deserialize)]
struct Manifest {
    version: String,
    archive: String,
    sha256: String,
}

/// How an image differs from the one that it is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageChange {
    /// One more file: another digest, and the same programs.
    OneMoreFile,
    /// It has no guest agent, so nothing in its containers ever says hello.
    NoController,
}

impl ImageChange {
    /// What is done to the unpacked archive `$1`; `$2` is an empty folder.
    const fn script(self) -> &'static str {
        match self {
            Self::OneMoreFile => {
                "mkdir -p \"$2/etc\" && echo newer > \"$2/etc/newer-image\" && \
                 tar -r -f \"$1\" -C \"$2\" --owner=0 --group=0 ./etc/newer-image"
            }
            Self::NoController => "tar -f \"$1\" --delete ./usr/bin/guestd",
        }
    }
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

    /// Makes another image of this one, in an empty folder, as a build would leave it there.
    ///
    /// # Errors
    /// When the archive cannot be packed anew.
    pub fn changed(&self, folder: &Path, version: &str, change: ImageChange) -> Result<Self> {
        let (month, _) = version.rsplit_once('.').context("a version is YYYY.MM.N")?;
        let own = self.name()?;
        let vmid = own.split('-').nth(2).context("an archive's name has a VMID")?;
        let name = format!("vzdump-lxc-{vmid}-{}_01-00_00_00.tar.zst", month.replace('.', "_"));
        let script = format!(
            "set -eu; tar=\"$2/image.tar\"; mkdir \"$2/more\"; zstd -q -d -o \"$tar\" \"$1\"; set -- \"$tar\" \"$2/more\" \"$3\"; \
             {}; zstd -q --rm -o \"$3\" \"$1\"; sha256sum \"$3\"",
            change.script()
        );
        let mut pack = Place::default().command("sh", User::Same);
        pack.args(["-c", &script, "sh"]).arg(&self.file).arg(folder).arg(folder.join(&name));
        let output = pack.output().context("cannot run a shell")?;
        if !output.status.success() {
            bail!("{} was not packed anew: {}", self.file.display(), String::from_utf8_lossy(&output.stderr));
        }
        let printed = String::from_utf8(output.stdout).context("a digest is text")?;
        let sha256 = printed.split_whitespace().next().context("sha256sum printed nothing")?;
        let manifest = folder.join(format!("golden-{version}.json"));
        let text = serde_json::json!({ "version": version, "archive": name, "sha256": sha256 });
        std::fs::write(&manifest, text.to_string())
            .with_context(|| format!("cannot write {}", manifest.display()))?;
        Self::read(&manifest)
    }
}
