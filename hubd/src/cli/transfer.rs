//! The commands `hubd db export` and `hubd db import`.
//!
//! In: a hub's folder and settings, and a file. Out: the file or the rows, progress on standard error, and counts with
//! digests on standard output. An export appears under its name once it is whole and on the disk, readable by its owner alone.

use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use holdfast_protocol::pin::{Pin, PinKind};
use rustls::pki_types::{CertificateDer, pem::PemObject as _};
use serde::Serialize;

use super::OutputForm;
use crate::clock::{Clock as _, SystemClock};
use crate::postgres;
use crate::run::database;
use crate::settings::{Database, Given, Settings};
use crate::sqlite;
use crate::transfer::{
    self, Engine, ExportReader, ExportRequest, FolderFile, ImportError, Progress, RowSource, SchemaNumbers,
    Summary,
};

/// Work that blocks, off the threads that run tasks.
pub(super) async fn blocking(
    work: impl FnOnce() -> anyhow::Result<()> + Send + 'static,
) -> anyhow::Result<()> {
    tokio::task::spawn_blocking(work).await.context("the command ended in a mistake")?
}

pub(super) fn export(
    dir: &Path,
    config: Option<PathBuf>,
    to: &Path,
    output: OutputForm,
) -> anyhow::Result<()> {
    let settings = Settings::database(&Given { dir: dir.to_owned(), config, ..Given::default() })?;
    let summary = write(dir, &settings, to, Vec::new())?;
    print(&summary, to, "exported to", output)
}

pub(super) fn import(
    dir: &Path,
    config: Option<PathBuf>,
    from: &Path,
    output: OutputForm,
) -> anyhow::Result<()> {
    let settings = Settings::database(&Given { dir: dir.to_owned(), config, ..Given::default() })?;
    let _lock = lock(dir)?;
    let mut reader = open(from)?;
    same_hub(&reader, &ca_of(&dir.join("ca.pem"))?)?;
    let summary = match settings {
        Database::Folder => {
            let path = database(dir);
            ensure!(
                !has_database(dir),
                "{} is there already, and nothing was changed: move it and its companions (hub.db-wal, hub.db-shm) away first",
                path.display()
            );
            let new = NewDatabase(dir.join("hub.db.import"));
            // One that was killed may have left the beginning of another.
            new.remove();
            let summary = into_file(&mut reader, &new.0)?;
            fs::rename(&new.0, &path)
                .with_context(|| format!("cannot put {} in its place", path.display()))?;
            File::open(dir).and_then(|folder| folder.sync_all()).context("cannot sync the folder")?;
            summary
        }
        Database::Postgres(server) => into_server(&mut reader, &server)?,
    };
    print(&summary, from, "imported from", output)
}

/// Opens a file that an export or a backup wrote.
pub(super) fn open(from: &Path) -> anyhow::Result<ExportReader> {
    let file = File::open(from).with_context(|| format!("cannot open {}", from.display()))?;
    ExportReader::open(file).with_context(|| format!("{} is refused", from.display()))
}

/// Rows into a new file, which is complete and synced afterwards.
pub(super) fn into_file(reader: &mut ExportReader, path: &Path) -> anyhow::Result<Summary> {
    let sink = Box::new(sqlite::new_file(path)?);
    Ok(transfer::import(reader, sink, known(), &mut announce)?)
}

pub(super) fn into_server(reader: &mut ExportReader, server: &postgres::Server) -> anyhow::Result<Summary> {
    let sink = Box::new(postgres::empty_database(server)?);
    Ok(transfer::import(reader, sink, known(), &mut announce)?)
}

/// Writes an export, with these files of the folder.
pub(super) fn write(
    dir: &Path,
    settings: &Database,
    to: &Path,
    files: Vec<FolderFile>,
) -> anyhow::Result<Summary> {
    ensure!(
        fs::symlink_metadata(to).is_err(),
        "{} is there already, and nothing was written: give another name",
        to.display()
    );
    let ca = ca_of(&dir.join("ca.pem"))?;
    let (engine, mut source): (_, Box<dyn RowSource>) = match settings {
        Database::Folder => {
            let path = database(dir);
            if !path.exists() {
                bail!("{} is not a hub's folder: give it with --dir", dir.display());
            }
            (Engine::Sqlite, Box::new(sqlite::snapshot(&path)?))
        }
        Database::Postgres(server) => (Engine::Postgres, Box::new(postgres::snapshot(server)?)),
    };
    let request = ExportRequest { engine, schema: known(), taken_at: SystemClock.now(), ca, files };
    let part = PartFile::make(to)?;
    let (summary, out) =
        transfer::export(source.as_mut(), request, BufWriter::new(&part.file), &mut announce)?;
    out.into_inner().map_err(std::io::IntoInnerError::into_error).context("the file cannot be written")?;
    part.complete(to)?;
    Ok(summary)
}

/// The schemas of this hub.
fn known() -> SchemaNumbers {
    SchemaNumbers { sqlite: sqlite::schema_number(), postgres: postgres::schema_number() }
}

/// The fingerprint of a CA's certificate.
pub(super) fn ca_of(path: &Path) -> anyhow::Result<String> {
    let text = fs::read(path).with_context(|| {
        format!("{} cannot be read: give the folder of the hub with --dir, with its keys", path.display())
    })?;
    let der = CertificateDer::from_pem_slice(&text)
        .with_context(|| format!("{} is damaged: restore it from the backup", path.display()))?;
    Ok(Pin::of(PinKind::Leaf, &der).to_string())
}

/// Rows and keys belong together.
pub(super) fn same_hub(reader: &ExportReader, folder: &str) -> Result<(), ImportError> {
    let file = &reader.header().ca;
    if file == folder {
        return Ok(());
    }
    Err(ImportError::OtherHub { file: file.clone(), folder: folder.to_owned() })
}

/// The folder's lock, so that no hub serves meanwhile.
pub(super) fn lock(dir: &Path) -> anyhow::Result<File> {
    let path = dir.join("lock");
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
    let file = file.with_context(|| format!("{} cannot be opened", path.display()))?;
    if file.try_lock().is_err() {
        bail!(
            "a hub runs in {}, and nothing was changed: stop it first (`systemctl stop hubd`)",
            dir.display()
        );
    }
    Ok(file)
}

/// Whether a database, or what was left of one, is there.
pub(super) fn has_database(dir: &Path) -> bool {
    ["hub.db", "hub.db-wal", "hub.db-shm", "hub.db-journal"]
        .iter()
        .any(|name| fs::symlink_metadata(dir.join(name)).is_ok())
}

/// A database that has no name yet. What remains of it is removed.
struct NewDatabase(PathBuf);

impl NewDatabase {
    fn remove(&self) {
        for tail in ["", "-wal", "-shm", "-journal"] {
            let mut path = self.0.as_os_str().to_owned();
            path.push(tail);
            drop(fs::remove_file(path));
        }
    }
}

impl Drop for NewDatabase {
    fn drop(&mut self) {
        self.remove();
    }
}

/// A file that is not whole yet. It is removed unless it becomes so.
struct PartFile {
    path: PathBuf,
    file: File,
}

impl PartFile {
    fn make(to: &Path) -> anyhow::Result<Self> {
        let name = to.file_name().with_context(|| format!("{} names no file", to.display()))?;
        let mut part = name.to_owned();
        part.push(format!(".{}.part", std::process::id()));
        let path = to.with_file_name(part);
        // A link is not followed, and a file that is there is not opened.
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        let file = file.with_context(|| {
            format!("{} cannot be made: the hub's user must be able to write in that folder", path.display())
        })?;
        Ok(Self { path, file })
    }

    fn complete(self, to: &Path) -> anyhow::Result<()> {
        self.file.sync_all().context("the file cannot be synced")?;
        fs::rename(&self.path, to).with_context(|| format!("cannot put {} in its place", to.display()))?;
        let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty());
        let synced = File::open(folder.unwrap_or(Path::new("."))).and_then(|folder| folder.sync_all());
        synced.context("the folder cannot be synced")
    }
}

impl Drop for PartFile {
    fn drop(&mut self) {
        drop(fs::remove_file(&self.path));
    }
}

/// One line for each table, and more for large ones.
fn announce(progress: Progress<'_>) {
    let mut err = std::io::stderr();
    // Progress that nobody can see is no failure of the command.
    drop(match progress {
        Progress::Rows { table, rows } => writeln!(err, "rows of {table} so far: {rows}"),
        Progress::Table { rows: 0, .. } => Ok(()),
        Progress::Table { table, rows } => writeln!(err, "rows of {table}: {rows}"),
        Progress::Verifying => writeln!(err, "all rows are written; reading them back to compare"),
    });
}

#[derive(Serialize)]
struct Output<'a> {
    file: String,
    #[serde(flatten)]
    summary: &'a Summary,
}

pub(super) fn print(summary: &Summary, file: &Path, done: &str, form: OutputForm) -> anyhow::Result<()> {
    let mut out = std::io::stdout();
    match form {
        OutputForm::Json => {
            let output = Output { file: file.display().to_string(), summary };
            writeln!(out, "{}", serde_json::to_string(&output)?)?;
        }
        OutputForm::Text => {
            let width = summary.tables.iter().map(|table| table.name.len()).max().unwrap_or_default();
            writeln!(out, "{:<width$}  {:>12}  sha256", "table", "rows")?;
            for table in summary.tables.iter().filter(|table| table.rows > 0) {
                writeln!(out, "{:<width$}  {:>12}  {}", table.name, table.rows, table.sha256)?;
            }
            writeln!(out, "{:<width$}  {:>12}  {}", "all", summary.rows, summary.sha256)?;
            let empty = summary.tables.iter().filter(|table| table.rows == 0).count();
            writeln!(out, "{empty} tables are empty; {done} {}", file.display())?;
        }
    }
    Ok(out.flush()?)
}
