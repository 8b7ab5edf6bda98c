//! The commands `hubd backup` and `hubd restore`.
//!
//! In: a hub's folder and settings. Out: one file with all rows and the folder's files, or a hub made of such a file. It is
//! the export of `hubd db export` with files before the rows, on both engines. Deliberately absent: files of releases, which
//! can be uploaded again, encryption, and points in time between two backups, which are PostgreSQL's own.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use held_files::atomic_file;
use held_files::held_folder::HeldFolder;
use holdfast_protocol::pin::{Pin, PinKind};
use jiff::Timestamp;
use rustls::pki_types::{CertificateDer, pem::PemObject as _};

use super::{OutputForm, transfer};
use crate::clock::{Clock as _, SystemClock};
use crate::settings::{Database, Given, Settings};
use crate::transfer::{FolderFile, StagedFolder, read_folder};

/// Names of backups in a folder: their order is that of their times.
const NAME_START: &str = "hub-";
const NAME_END: &str = ".backup";

pub(super) struct BackupRequest {
    pub(super) dir: PathBuf,
    pub(super) config: Option<PathBuf>,
    pub(super) to: PathBuf,
    pub(super) keep: Option<u32>,
    pub(super) output: OutputForm,
}

pub(super) fn back_up(request: &BackupRequest) -> anyhow::Result<()> {
    let BackupRequest { dir, config, to, keep, output } = request;
    let given = Given { dir: dir.clone(), config: config.clone(), ..Given::default() };
    let settings = Settings::database(&given)?;
    let is_folder = to.is_dir();
    ensure!(is_folder || keep.is_none(), "--keep is for a folder, and {} is none", to.display());
    let file = if is_folder { to.join(name_at(SystemClock.now())) } else { to.clone() };
    let files = read_folder(dir)?;
    let summary = transfer::write(dir, &settings, &file, files.clone())?;
    // Rows and keys of one time: where a key was made meanwhile, the next backup has both.
    if read_folder(dir)? != files {
        fs::remove_file(&file).with_context(|| format!("cannot remove {}", file.display()))?;
        bail!("the hub's folder was changed during the backup, and there is none: run the command again");
    }
    transfer::print(&summary, &file, "backed up to", *output)?;
    if let Some(keep) = keep {
        remove_old(to, *keep)?;
    }
    Ok(())
}

fn name_at(at: Timestamp) -> String {
    format!("{NAME_START}{}{NAME_END}", at.strftime("%Y%m%dT%H%M%SZ"))
}

/// Removes all but the newest backups of the folder. Files of other names stay.
fn remove_old(folder: &Path, keep: u32) -> anyhow::Result<()> {
    let mut backups = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))? {
        let path = entry.context("cannot list the folder of backups")?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if name.starts_with(NAME_START) && name.ends_with(NAME_END) {
            backups.push(path);
        }
    }
    backups.sort();
    let old = backups.len().saturating_sub(usize::try_from(keep).unwrap_or(usize::MAX));
    for path in backups.into_iter().take(old) {
        fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
    }
    Ok(())
}

pub(super) fn restore(
    dir: &Path,
    config: Option<PathBuf>,
    from: &Path,
    output: OutputForm,
) -> anyhow::Result<()> {
    let mut reader = transfer::open(from)?;
    let files = reader.files()?;
    ensure!(
        !files.is_empty(),
        "{} has rows and no folder, and nothing was changed: `hubd db import` reads it",
        from.display()
    );
    transfer::same_hub(&reader, &ca_of(&files)?)?;
    if !dir.is_dir() {
        let above = dir.parent().filter(|parent| !parent.as_os_str().is_empty());
        above.map(HeldFolder::make_all).transpose()?;
        atomic_file::private_folder(dir)?;
    }
    let _lock = transfer::lock(dir)?;
    ensure!(
        !transfer::has_database(dir),
        "{} has a database already, and nothing was changed: give an empty folder",
        dir.display()
    );
    let staged = StagedFolder::write(dir, &files)?;
    let config = config.or_else(|| staged.settings());
    let given = Given { dir: dir.to_owned(), config, ..Given::default() };
    let summary = match Settings::database(&given)? {
        Database::Folder => transfer::into_file(&mut reader, &staged.path("hub.db"))?,
        Database::Postgres(server) => transfer::into_server(&mut reader, &server)?,
    };
    staged.place()?;
    transfer::print(&summary, from, "restored from", output)
}

/// The CA that the backup's own files name.
fn ca_of(files: &[FolderFile]) -> anyhow::Result<String> {
    let file = files.iter().find(|file| file.name == "ca.pem");
    let file = file.context("the backup has no ca.pem, and nothing was changed")?;
    let der = CertificateDer::from_pem_slice(&file.bytes()?).context("ca.pem of the backup is damaged")?;
    Ok(Pin::of(PinKind::Leaf, &der).to_string())
}
