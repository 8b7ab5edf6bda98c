//! What an archive holds, entry by entry.

use std::path::{Path, PathBuf};

use super::read_error::ReadArchiveError;
use super::stream::{ArchiveStream, Explainer};

/// A minimal Debian has 12,000 entries; a list beyond this would need a gigabyte of memory.
const ENTRIES_MAX: usize = 2_000_000;

/// One entry as the archive names it; nothing of it was checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedEntry {
    /// Its name as it is written in the archive.
    pub path: PathBuf,
    /// What it is.
    pub kind: EntryKind,
    /// Bytes of content.
    pub size_bytes: u64,
    pub mode: u32,
    /// Owner, as a number.
    pub uid: u64,
    /// Group, as a number.
    pub gid: u64,
    /// Time of the last change, in seconds since 1970.
    pub mtime_s: u64,
}

/// What an entry is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A file with content.
    File,
    Directory,
    /// A symbolic link and where it points.
    Symlink(PathBuf),
    /// A second name of an earlier file.
    HardLink(PathBuf),
    /// A device, a pipe or something that we do not know.
    Other,
}

/// Lists a whole archive, reading it to its end.
pub fn list(archive: &Path) -> Result<Vec<ListedEntry>, ReadArchiveError> {
    let mut stream = ArchiveStream::open(archive)?;
    let explainer = stream.explainer();
    let mut listed = Vec::new();
    for entry in stream.entries()? {
        let entry = entry.map_err(|error| explainer.explain(error))?;
        if listed.len() == ENTRIES_MAX {
            return Err(ReadArchiveError::TooManyEntries {
                path: archive.to_owned(),
                entries_max: ENTRIES_MAX,
            });
        }
        listed.push(describe(&entry, &explainer)?);
    }
    stream.drain()?;
    Ok(listed)
}

fn describe<R: std::io::Read>(
    entry: &tar::Entry<'_, R>,
    explainer: &Explainer,
) -> Result<ListedEntry, ReadArchiveError> {
    let header = entry.header();
    let explain = |error| explainer.explain(error);
    let target = || entry.link_name().map(|name| name.map(PathBuf::from).unwrap_or_default());
    let kind = match header.entry_type() {
        tar::EntryType::Directory => EntryKind::Directory,
        tar::EntryType::Symlink => EntryKind::Symlink(target().map_err(explain)?),
        tar::EntryType::Link => EntryKind::HardLink(target().map_err(explain)?),
        tar::EntryType::Regular | tar::EntryType::Continuous | tar::EntryType::GNUSparse => EntryKind::File,
        _ => EntryKind::Other,
    };
    Ok(ListedEntry {
        path: entry.path().map_err(explain)?.into_owned(),
        kind,
        size_bytes: entry.size(),
        mode: header.mode().map_err(explain)?,
        uid: header.uid().map_err(explain)?,
        gid: header.gid().map_err(explain)?,
        mtime_s: header.mtime().map_err(explain)?,
    })
}
