//! The packing of a guest's volumes into an archive.
//!
//! Until the last byte is on disk, the archive has a `.dat` name in the target folder, as with the real `vzdump`. Any
//! failure removes that file.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::compression::{Compression, Compressor};
use super::embedded::{CONFIG_PATH, FIREWALL_PATH};
use super::entry_writer::{EntryWriter, Stamp, Written};
use super::exclude::ExcludePatterns;
use super::place::Volumes;
use super::walk::{Descend, FoundEntry, WalkError, walk};

/// tar writes whole records of 20 blocks; its totals are multiples of this.
const RECORD_BYTES: u64 = 20 * 512;
/// A guest that rewrites everything while it is packed must not fill the memory with warnings.
const WARNINGS_MAX: usize = 100;
/// What a guest's kernel or host puts there never belongs to its disk.
const KERNEL_DIRECTORIES: [&str; 3] = ["dev", "proc", "sys"];

/// What to pack, and where to.
#[derive(Debug)]
pub struct PackPlan<'a> {
    /// The archive to make; its name says how it is compressed. It must not exist.
    pub target: &'a Path,
    /// The text of `pct.conf`.
    pub config: &'a str,
    /// The text of `pct.fw`; empty when the guest has no firewall rules.
    pub firewall: &'a str,
    /// Who owns these two inside the archive.
    pub config_owner: Owner,
    /// The root file system and the mount points that belong into the backup.
    pub volumes: &'a Volumes,
    /// What to leave out.
    pub exclude: &'a ExcludePatterns,
    /// The time of the backup, in seconds since 1970.
    pub made_at_s: u64,
}

/// Who owns `pct.conf` in an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// Root: the backup of a privileged container.
    Root,
    /// The overflow user (65534): in the user namespace of an unprivileged container the host's root is not mapped.
    NoOne,
}

/// What came out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packed {
    /// Bytes of tar written, padding included: the number in tar's "Total bytes written".
    pub total_bytes_written: u64,
    /// The size of the archive.
    pub archive_bytes: u64,
    /// How many entries it has.
    pub entries: u64,
    /// What changed while it was read; at most a hundred.
    pub warnings: Vec<PackWarning>,
}

/// A file that a running guest changed while it was packed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PackWarning {
    /// It became shorter; the rest is zeros.
    Shrank(PathBuf),
    Vanished(PathBuf),
}

/// Why an archive could not be made. Nothing of it is left.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// The name says nothing about the form.
    #[error("{} ends in neither .tar, .tar.gz, .tar.lzo nor .tar.zst", path.display())]
    UnknownForm {
        /// The wanted archive.
        path: PathBuf,
    },
    /// The file exists already.
    #[error("{} exists already; backups are never overwritten", path.display())]
    Exists {
        /// The wanted archive, or its unfinished form.
        path: PathBuf,
    },
    /// A volume could not be read.
    #[error("`{}` could not be read for the backup", path.display())]
    Source {
        /// What was being read, as the guest sees it.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// The archive could not be written.
    #[error("the archive {} could not be written", path.display())]
    Target {
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// The caller requested a stop.
    #[error("the backup was interrupted")]
    Cancelled,
}

/// Packs an archive; a `cancel` that says yes stops it soon.
pub fn pack(plan: &PackPlan<'_>, cancel: &dyn Fn() -> bool) -> Result<Packed, PackError> {
    let name = plan.target.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let form = Compression::of_file_name(&name)
        .ok_or_else(|| PackError::UnknownForm { path: plan.target.to_owned() })?;
    if plan.target.symlink_metadata().is_ok() {
        return Err(PackError::Exists { path: plan.target.to_owned() });
    }
    let unfinished = plan.target.with_extension("dat");
    let file =
        OpenOptions::new().write(true).create_new(true).mode(0o640).open(&unfinished).map_err(|source| {
            match source.kind() {
                io::ErrorKind::AlreadyExists => PackError::Exists { path: unfinished.clone() },
                _ => target_error(plan, source),
            }
        })?;
    let packed = write_archive(plan, form, file, cancel)
        .and_then(|packed| put_in_place(plan, &unfinished).map(|()| packed));
    if packed.is_err() {
        // The first error counts; one in the cleaning up would only hide it.
        let _ = std::fs::remove_file(&unfinished);
    }
    packed
}

fn write_archive(
    plan: &PackPlan<'_>,
    form: Compression,
    file: File,
    cancel: &dyn Fn() -> bool,
) -> Result<Packed, PackError> {
    let compressor = form.writer(file).map_err(|source| target_error(plan, source))?;
    let mut writer = EntryWriter::new(Counted { inner: compressor, bytes: 0, failed: false });
    let mut warnings = Vec::new();
    write_config(plan, &mut writer).map_err(|source| target_error(plan, source))?;
    let mut visit = |found: FoundEntry<'_>| visit(plan, &mut writer, &mut warnings, cancel, &found);
    let roots = std::iter::once((plan.volumes.rootfs.as_path(), Path::new("")))
        .chain(plan.volumes.mounts.iter().map(|mount| (mount.directory.as_path(), mount.at.relative())));
    for (directory, prefix) in roots {
        walk(directory, prefix, &mut visit).map_err(|error| match error {
            WalkError::Io { path, source } => PackError::Source { path, source },
            WalkError::Visitor(error) => error,
        })?;
    }
    let entries = writer.entries;
    let (total_bytes_written, archive_bytes) = finish(writer).map_err(|source| target_error(plan, source))?;
    Ok(Packed { total_bytes_written, archive_bytes, entries, warnings })
}

fn write_config(plan: &PackPlan<'_>, writer: &mut EntryWriter<Counted>) -> io::Result<()> {
    let id = match plan.config_owner {
        Owner::Root => 0,
        Owner::NoOne => 65_534,
    };
    let stamp = Stamp { uid: id, gid: id, mode: 0o644, mtime_s: plan.made_at_s };
    writer.text(CONFIG_PATH, plan.config, stamp)?;
    writer.text(FIREWALL_PATH, plan.firewall, stamp)
}

fn visit(
    plan: &PackPlan<'_>,
    writer: &mut EntryWriter<Counted>,
    warnings: &mut Vec<PackWarning>,
    cancel: &dyn Fn() -> bool,
    found: &FoundEntry<'_>,
) -> Result<Descend, PackError> {
    if cancel() {
        return Err(PackError::Cancelled);
    }
    let is_volume_root = found.name == ".";
    let hidden_by_mount = plan.volumes.mounts.iter().any(|mount| mount.at.relative() == found.path);
    let is_root = found.path.as_os_str().is_empty();
    if (!is_volume_root && hidden_by_mount) || (!is_root && plan.exclude.excludes(found.path)) {
        return Ok(Descend::Past);
    }
    let written = writer.found(found);
    let written = written.map_err(|source| match writer.output().failed {
        true => target_error(plan, source),
        false => PackError::Source { path: found.path.to_owned(), source },
    })?;
    let warning = match written {
        Written::Whole | Written::Ignored => None,
        Written::Shrank => Some(PackWarning::Shrank(found.path.to_owned())),
        Written::Vanished => Some(PackWarning::Vanished(found.path.to_owned())),
    };
    if warnings.len() < WARNINGS_MAX {
        warnings.extend(warning);
    }
    let of_the_kernel = KERNEL_DIRECTORIES.iter().any(|name| found.path == Path::new(name));
    Ok(if of_the_kernel || written == Written::Vanished { Descend::Past } else { Descend::Into })
}

fn finish(writer: EntryWriter<Counted>) -> io::Result<(u64, u64)> {
    let mut counted = writer.finish()?;
    let padding = counted.bytes.next_multiple_of(RECORD_BYTES) - counted.bytes;
    io::copy(&mut io::Read::take(io::repeat(0), padding), &mut counted)?;
    let total = counted.bytes;
    let file = counted.inner.finish()?;
    file.sync_all()?;
    Ok((total, file.metadata()?.len()))
}

fn put_in_place(plan: &PackPlan<'_>, unfinished: &Path) -> Result<(), PackError> {
    let sync_directory = |directory: &Path| File::open(directory).and_then(|opened| opened.sync_all());
    std::fs::rename(unfinished, plan.target)
        .and_then(|()| plan.target.parent().map_or(Ok(()), sync_directory))
        .map_err(|source| target_error(plan, source))
}

fn target_error(plan: &PackPlan<'_>, source: io::Error) -> PackError {
    PackError::Target { path: plan.target.to_owned(), source }
}

/// Counts the bytes that are written to the compressor.
struct Counted {
    inner: Compressor,
    bytes: u64,
    /// Whether a write failed. It distinguishes a full disk under the archive from a file that could not be read.
    failed: bool,
}

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.inner.write(bytes).inspect_err(|_error| self.failed = true)?;
        self.bytes += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
