//! The extraction of an archive into a guest's volumes.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType};
use rustix::io::Errno;

use super::embedded::{CONFIG_PATH, FIREWALL_PATH, is, read_text};
use super::metadata::{Metadata, Ownership};
use super::place::{EntryPath, EscapeReason, VolumeIndex, Volumes};
use super::read_error::ReadArchiveError;
use super::stream::{ArchiveStream, Explainer};
use super::tree::{ReachError, Tree};

const COPY_BUFFER_BYTES: usize = 64 * 1024;
/// A minimal Debian has 12,000 entries; this many directories would still fit into a gigabyte of memory.
const ENTRIES_MAX: u64 = 5_000_000;

/// Why an archive could not be extracted. What was written so far stays; the caller removes the volumes it made.
#[derive(Debug, thiserror::Error)]
pub enum ExtractError {
    /// The archive could not be read.
    #[error("the archive could not be read to its end")]
    Read(#[source] ReadArchiveError),
    /// An entry wants to land where it does not belong; the archive is hostile.
    #[error("the archive is refused: entry `{}` would leave its volume", entry.display())]
    Escapes {
        /// The entry's name as it is written in the archive.
        entry: PathBuf,
        /// How it would.
        #[source]
        reason: EscapeReason,
    },
    /// The content is larger than the volumes may hold.
    #[error("the archive holds more than the {bytes_max} bytes that fit")]
    TooLarge {
        /// The bound given by the caller.
        bytes_max: u64,
    },
    /// The archive has more entries than any guest.
    #[error("the archive holds more than {entries_max} entries")]
    TooManyEntries { entries_max: u64 },
    /// The target could not be written.
    #[error("`{}` could not be written", path.display())]
    Write {
        /// What was being written.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// The caller requested a stop.
    #[error("the extraction was interrupted")]
    Cancelled,
}

/// What an extraction did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extracted {
    /// Bytes of tar read, padding included: the number in tar's "Total bytes read".
    pub total_bytes_read: u64,
    /// Entries that were put somewhere.
    pub entries: u64,
    /// Device nodes and entries below `/dev`, which a container gets from its host and never from an archive.
    pub devices_skipped: u64,
    /// The first configuration among the entries. It is the one in the root when all is unpacked, because an existing
    /// file is not written again. A file that the guest had under that name comes after the backup's own.
    pub config: Option<String>,
}

/// Extracts an archive. The volumes' directories must exist; at most `bytes_max` bytes of content are written; a
/// `cancel` that says yes stops it soon.
pub fn extract(
    archive: &Path,
    volumes: &Volumes,
    bytes_max: u64,
    cancel: &dyn Fn() -> bool,
) -> Result<Extracted, ExtractError> {
    let mut stream = ArchiveStream::open(archive).map_err(ExtractError::Read)?;
    let explainer = stream.explainer();
    let mut extraction = Extraction::begin(volumes, stream.explainer(), bytes_max, cancel)?;
    let mut config = None;
    for entry in stream.entries().map_err(ExtractError::Read)? {
        let mut entry = entry.map_err(|error| extraction.unreadable(error))?;
        extraction.check_cancel()?;
        if config.is_none() && is(&entry.path_bytes(), CONFIG_PATH) {
            config = Some(read_text(&mut entry, archive, &explainer).map_err(ExtractError::Read)?);
        }
        extraction.put(entry)?;
    }
    extraction.finish_directories()?;
    let total_bytes_read = stream.drain().map_err(ExtractError::Read)?;
    Ok(Extracted {
        total_bytes_read,
        entries: extraction.entries,
        devices_skipped: extraction.devices_skipped,
        config,
    })
}

struct Extraction<'a> {
    volumes: &'a Volumes,
    rootfs: Tree,
    mounts: Vec<Tree>,
    explainer: Explainer,
    ownership: Ownership,
    /// Directories get their permissions last: one without write permission could not be filled otherwise.
    directories: Vec<(VolumeIndex, EntryPath, Metadata)>,
    bytes_left: u64,
    bytes_max: u64,
    entries: u64,
    devices_skipped: u64,
    cancel: &'a dyn Fn() -> bool,
}

impl<'a> Extraction<'a> {
    fn begin(
        volumes: &'a Volumes,
        explainer: Explainer,
        bytes_max: u64,
        cancel: &'a dyn Fn() -> bool,
    ) -> Result<Self, ExtractError> {
        let open = |path: &Path| Tree::open(path).map_err(|source| write_error(path, source));
        let rootfs = open(&volumes.rootfs)?;
        let mut mounts = Vec::new();
        for mount in &volumes.mounts {
            mounts.push(open(&mount.directory)?);
            // A mounted volume hides a directory of the same name beneath it; that directory must be there.
            rootfs
                .make_directory(mount.at.relative())
                .map_err(|error| reach_error(mount.at.relative(), error))?;
        }
        Ok(Self {
            volumes,
            rootfs,
            mounts,
            explainer,
            ownership: Ownership::of_this_process(),
            directories: Vec::new(),
            bytes_left: bytes_max,
            bytes_max,
            entries: 0,
            devices_skipped: 0,
            cancel,
        })
    }

    fn put<R: Read>(&mut self, mut entry: tar::Entry<'_, R>) -> Result<(), ExtractError> {
        let name = entry.path_bytes().into_owned();
        if is(&name, CONFIG_PATH) || is(&name, FIREWALL_PATH) {
            return Ok(());
        }
        let path = EntryPath::parse(&name).map_err(|reason| escape(&name, reason))?;
        let kind = entry.header().entry_type();
        if path.is_inside("dev") || kind.is_character_special() || kind.is_block_special() {
            self.devices_skipped += 1;
            return Ok(());
        }
        let metadata = Metadata::of_entry(&mut entry).map_err(|error| self.unreadable(error))?;
        let (volume, inside) = self.volumes.place(&path);
        self.entries += 1;
        if self.entries > ENTRIES_MAX {
            return Err(ExtractError::TooManyEntries { entries_max: ENTRIES_MAX });
        }
        match kind {
            tar::EntryType::Directory => self.put_directory(volume, inside, metadata),
            tar::EntryType::Symlink => self.put_symlink(&entry, volume, &inside, &metadata),
            tar::EntryType::Link => self.put_hard_link(&entry, volume, &inside),
            tar::EntryType::Fifo => self.put_pipe(volume, &inside, &metadata),
            tar::EntryType::Regular | tar::EntryType::Continuous | tar::EntryType::GNUSparse => {
                self.put_file(&mut entry, volume, &inside, &metadata)
            }
            // Volume labels and the like carry nothing that could be put on a disk; tar passes over them too.
            _ => Ok(()),
        }
    }

    fn put_directory(
        &mut self,
        volume: VolumeIndex,
        path: EntryPath,
        metadata: Metadata,
    ) -> Result<(), ExtractError> {
        self.tree(volume)?
            .make_directory(path.as_path())
            .map_err(|error| reach_error(path.as_path(), error))?;
        self.directories.push((volume, path, metadata));
        Ok(())
    }

    fn put_file<R: Read>(
        &mut self,
        entry: &mut tar::Entry<'_, R>,
        volume: VolumeIndex,
        path: &EntryPath,
        metadata: &Metadata,
    ) -> Result<(), ExtractError> {
        let size_bytes = entry.size();
        self.bytes_left = self
            .bytes_left
            .checked_sub(size_bytes)
            .ok_or(ExtractError::TooLarge { bytes_max: self.bytes_max })?;
        let at = path.as_path();
        let slot = self.slot(volume, path)?;
        let Some(mut file) = slot.create_file().map_err(|source| write_error(at, source))? else {
            return Ok(());
        };
        let mut buffer = vec![0_u8; COPY_BUFFER_BYTES];
        let mut written = 0_u64;
        loop {
            self.check_cancel()?;
            let count = entry.read(&mut buffer).map_err(|error| self.unreadable(error))?;
            let Some(bytes) = buffer.get(..count).filter(|bytes| !bytes.is_empty()) else { break };
            file.write_all(bytes).map_err(|source| write_error(at, source))?;
            written += count as u64;
        }
        if written != size_bytes {
            return Err(self.unreadable(io::ErrorKind::UnexpectedEof.into()));
        }
        metadata
            .put_on(std::os::fd::AsFd::as_fd(&file), self.ownership)
            .map_err(|source| write_error(at, source))
    }

    fn put_symlink<R: Read>(
        &mut self,
        entry: &tar::Entry<'_, R>,
        volume: VolumeIndex,
        path: &EntryPath,
        metadata: &Metadata,
    ) -> Result<(), ExtractError> {
        // Where a symbolic link points is the guest's own affair: nothing here ever follows one.
        let target = entry.link_name_bytes().unwrap_or_default().into_owned();
        let slot = self.slot(volume, path)?;
        match rustix::fs::symlinkat(target.as_slice(), slot.parent(), slot.name()) {
            Ok(()) => metadata
                .put_on_name(slot.parent(), slot.name(), self.ownership)
                .map_err(|source| write_error(path.as_path(), source)),
            Err(Errno::EXIST) => Ok(()),
            Err(errno) => Err(write_error(path.as_path(), errno.into())),
        }
    }

    fn put_hard_link<R: Read>(
        &mut self,
        entry: &tar::Entry<'_, R>,
        volume: VolumeIndex,
        path: &EntryPath,
    ) -> Result<(), ExtractError> {
        let name = entry.path_bytes().into_owned();
        let elsewhere = || escape(&name, EscapeReason::LinkElsewhere);
        let target = EntryPath::parse(&entry.link_name_bytes().unwrap_or_default())
            .map_err(|reason| escape(&name, reason))?;
        let (target_volume, target) = self.volumes.place(&target);
        if target_volume != volume {
            return Err(elsewhere());
        }
        let old = self
            .tree(volume)?
            .existing(target.as_path())
            .map_err(|error| reach_error(target.as_path(), error))?
            .ok_or_else(elsewhere)?;
        if !old.is_file().map_err(|source| write_error(target.as_path(), source))? {
            return Err(elsewhere());
        }
        let new = self.slot(volume, path)?;
        match rustix::fs::linkat(old.parent(), old.name(), new.parent(), new.name(), AtFlags::empty()) {
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            Err(errno) => Err(write_error(path.as_path(), errno.into())),
        }
    }

    fn put_pipe(
        &mut self,
        volume: VolumeIndex,
        path: &EntryPath,
        metadata: &Metadata,
    ) -> Result<(), ExtractError> {
        let slot = self.slot(volume, path)?;
        match rustix::fs::mknodat(slot.parent(), slot.name(), FileType::Fifo, metadata.mode(), 0) {
            Ok(()) => metadata
                .put_on_name(slot.parent(), slot.name(), self.ownership)
                .map_err(|source| write_error(path.as_path(), source)),
            Err(Errno::EXIST) => Ok(()),
            Err(errno) => Err(write_error(path.as_path(), errno.into())),
        }
    }

    fn finish_directories(&mut self) -> Result<(), ExtractError> {
        for (volume, path, metadata) in std::mem::take(&mut self.directories).into_iter().rev() {
            let at = path.as_path();
            let directory = self.tree(volume)?.make_directory(at).map_err(|error| reach_error(at, error))?;
            metadata
                .put_on(std::os::fd::AsFd::as_fd(&directory), self.ownership)
                .map_err(|source| write_error(at, source))?;
        }
        Ok(())
    }

    fn tree(&self, volume: VolumeIndex) -> Result<&Tree, ExtractError> {
        match volume {
            VolumeIndex::Rootfs => Ok(&self.rootfs),
            VolumeIndex::Mount(index) => self
                .mounts
                .get(index)
                .ok_or_else(|| write_error(&self.volumes.rootfs, io::ErrorKind::NotFound.into())),
        }
    }

    fn slot(&self, volume: VolumeIndex, path: &EntryPath) -> Result<super::tree::Slot, ExtractError> {
        self.tree(volume)?
            .slot(path.as_path())
            .map_err(|error| reach_error(path.as_path(), error))?
            .ok_or_else(|| escape(b"./", EscapeReason::Meaningless))
    }

    fn check_cancel(&self) -> Result<(), ExtractError> {
        if (self.cancel)() { Err(ExtractError::Cancelled) } else { Ok(()) }
    }

    fn unreadable(&self, error: io::Error) -> ExtractError {
        ExtractError::Read(self.explainer.explain(error))
    }
}

fn escape(name: &[u8], reason: EscapeReason) -> ExtractError {
    ExtractError::Escapes { entry: PathBuf::from(String::from_utf8_lossy(name).into_owned()), reason }
}

fn write_error(path: &Path, source: io::Error) -> ExtractError {
    ExtractError::Write { path: path.to_owned(), source }
}

fn reach_error(path: &Path, error: ReachError) -> ExtractError {
    match error {
        ReachError::ThroughLink => {
            ExtractError::Escapes { entry: path.to_owned(), reason: EscapeReason::ThroughLink }
        }
        ReachError::Io(source) => write_error(path, source),
    }
}
