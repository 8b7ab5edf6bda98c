//! A writer of single tar entries with extended attributes.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, Stat, openat};

use super::metadata::{PAX_XATTR_PREFIX, is_carried};
use super::walk::FoundEntry;

/// The bytes of a name that fit into a ustar header.
const NAME_BYTES_MAX: usize = 100;
/// The kernel's own bound on the value of one attribute.
const XATTR_BYTES_MAX: usize = 64 * 1024;

/// Writes entries into a tar stream.
pub(super) struct EntryWriter<W: Write> {
    builder: tar::Builder<W>,
    /// Files with several names, by device and inode: the second name becomes a hard link to the first.
    first_names: HashMap<(u64, u64), PathBuf>,
    pub entries: u64,
}

/// How the writing of one file ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Written {
    /// As it should.
    Whole,
    /// The file became shorter meanwhile; the rest was filled with zeros.
    Shrank,
    /// It vanished before it could be opened; nothing was written.
    Vanished,
    /// It is a socket, which no archive can hold; nothing was written.
    Ignored,
}

/// Owner, mode and time of an entry that does not come from a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stamp {
    pub uid: u32,
    pub gid: u32,
    pub mode: u32,
    pub mtime_s: u64,
}

impl<W: Write> EntryWriter<W> {
    pub(super) fn new(output: W) -> Self {
        Self { builder: tar::Builder::new(output), first_names: HashMap::new(), entries: 0 }
    }

    /// What is written to.
    pub(super) fn output(&self) -> &W {
        self.builder.get_ref()
    }

    /// Writes the end marker and hands the output back.
    pub(super) fn finish(self) -> io::Result<W> {
        self.builder.into_inner()
    }

    /// Writes a file whose content is at hand. The name is taken as it is.
    pub(super) fn text(&mut self, name: &str, text: &str, stamp: Stamp) -> io::Result<()> {
        let mut header = stamped(stamp, tar::EntryType::Regular);
        header.set_size(text.len() as u64);
        self.entry(name.as_bytes(), b"", Vec::new(), header, text.as_bytes())
    }

    /// Writes what the walk found.
    pub(super) fn found(&mut self, found: &FoundEntry<'_>) -> io::Result<Written> {
        let name = archived_name(found.path, found.kind);
        match found.kind {
            FileType::Directory => self.directory(found, &name),
            FileType::RegularFile => self.file(found, &name),
            FileType::Symlink => {
                let target = rustix::fs::readlinkat(found.parent, found.name, Vec::new())?;
                let header = stamped(stamp_of(&found.stat), tar::EntryType::Symlink);
                self.entry(&name, target.as_bytes(), Vec::new(), header, io::empty())?;
                Ok(Written::Whole)
            }
            FileType::Fifo => {
                let header = stamped(stamp_of(&found.stat), tar::EntryType::Fifo);
                self.entry(&name, b"", Vec::new(), header, io::empty())?;
                Ok(Written::Whole)
            }
            FileType::CharacterDevice | FileType::BlockDevice => self.device(found, &name),
            _ => Ok(Written::Ignored),
        }
    }

    fn directory(&mut self, found: &FoundEntry<'_>, name: &[u8]) -> io::Result<Written> {
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let xattrs = match openat(found.parent, found.name, flags, Mode::empty()) {
            Ok(fd) => carried_xattrs(&fd)?,
            Err(rustix::io::Errno::NOENT) => return Ok(Written::Vanished),
            Err(errno) => return Err(errno.into()),
        };
        let header = stamped(stamp_of(&found.stat), tar::EntryType::Directory);
        self.entry(name, b"", xattrs, header, io::empty())?;
        Ok(Written::Whole)
    }

    fn file(&mut self, found: &FoundEntry<'_>, name: &[u8]) -> io::Result<Written> {
        let identity = (found.stat.st_dev, found.stat.st_ino);
        if found.stat.st_nlink > 1 {
            if let Some(first) = self.first_names.get(&identity) {
                let target = archived_name(first, FileType::RegularFile);
                let header = stamped(stamp_of(&found.stat), tar::EntryType::Link);
                self.entry(name, &target, Vec::new(), header, io::empty())?;
                return Ok(Written::Whole);
            }
            self.first_names.insert(identity, found.path.to_owned());
        }
        // Without NONBLOCK a pipe put in the file's place meanwhile would hold the backup for ever.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match openat(found.parent, found.name, flags, Mode::empty()) {
            Ok(fd) => File::from(fd),
            Err(rustix::io::Errno::NOENT | rustix::io::Errno::LOOP) => return Ok(Written::Vanished),
            Err(errno) => return Err(errno.into()),
        };
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Ok(Written::Vanished);
        }
        let xattrs = carried_xattrs(&file)?;
        let mut header = stamped(stamp_of(&found.stat), tar::EntryType::Regular);
        header.set_size(metadata.len());
        let mut content = Exactly { file, left: metadata.len(), padded: false };
        self.entry(name, b"", xattrs, header, &mut content)?;
        Ok(if content.padded { Written::Shrank } else { Written::Whole })
    }

    fn device(&mut self, found: &FoundEntry<'_>, name: &[u8]) -> io::Result<Written> {
        let kind = match found.kind {
            FileType::BlockDevice => tar::EntryType::Block,
            _ => tar::EntryType::Char,
        };
        let mut header = stamped(stamp_of(&found.stat), kind);
        header.set_device_major(rustix::fs::major(found.stat.st_rdev))?;
        header.set_device_minor(rustix::fs::minor(found.stat.st_rdev))?;
        self.entry(name, b"", Vec::new(), header, io::empty())?;
        Ok(Written::Whole)
    }

    fn entry(
        &mut self,
        name: &[u8],
        link: &[u8],
        mut pax: Vec<(String, Vec<u8>)>,
        mut header: tar::Header,
        content: impl Read,
    ) -> io::Result<()> {
        if name.len() > NAME_BYTES_MAX {
            pax.push(("path".to_owned(), name.to_owned()));
        }
        if link.len() > NAME_BYTES_MAX {
            pax.push(("linkpath".to_owned(), link.to_owned()));
        }
        let old = header.as_old_mut();
        fill(&mut old.name, name);
        fill(&mut old.linkname, link);
        header.set_cksum();
        if !pax.is_empty() {
            self.builder
                .append_pax_extensions(pax.iter().map(|(key, value)| (key.as_str(), value.as_slice())))?;
        }
        self.builder.append(&header, content)?;
        self.entries += 1;
        Ok(())
    }
}

/// Yields exactly the announced number of bytes, whatever happens to the file.
struct Exactly {
    file: File,
    left: u64,
    padded: bool,
}

impl Read for Exactly {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let wanted = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let Some(buffer) = buffer.get_mut(..wanted).filter(|buffer| !buffer.is_empty()) else { return Ok(0) };
        let count = if self.padded { 0 } else { self.file.read(buffer)? };
        let count = if count == 0 {
            self.padded = true;
            buffer.fill(0);
            wanted
        } else {
            count
        };
        self.left -= count as u64;
        Ok(count)
    }
}

fn stamped(stamp: Stamp, kind: tar::EntryType) -> tar::Header {
    let mut header = tar::Header::new_ustar();
    header.set_entry_type(kind);
    header.set_uid(u64::from(stamp.uid));
    header.set_gid(u64::from(stamp.gid));
    header.set_mode(stamp.mode & 0o7777);
    header.set_mtime(stamp.mtime_s);
    header.set_size(0);
    header
}

fn stamp_of(stat: &Stat) -> Stamp {
    Stamp {
        uid: stat.st_uid,
        gid: stat.st_gid,
        mode: stat.st_mode,
        mtime_s: u64::try_from(stat.st_mtime).unwrap_or(0),
    }
}

/// The name in the archive: `./`, the path, and a slash after a directory.
fn archived_name(path: &Path, kind: FileType) -> Vec<u8> {
    let mut name = b"./".to_vec();
    name.extend_from_slice(path.as_os_str().as_bytes());
    if kind == FileType::Directory && !path.as_os_str().is_empty() {
        name.push(b'/');
    }
    name
}

fn fill(field: &mut [u8], value: &[u8]) {
    for (slot, byte) in field.iter_mut().zip(value.iter().chain(std::iter::repeat(&0))) {
        *slot = *byte;
    }
}

fn carried_xattrs(fd: &impl AsFd) -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut names = vec![0_u8; XATTR_BYTES_MAX];
    let length = match rustix::fs::flistxattr(fd, &mut names) {
        Ok(length) => length,
        Err(rustix::io::Errno::NOTSUP) => return Ok(Vec::new()),
        Err(errno) => return Err(errno.into()),
    };
    let mut carried = Vec::new();
    for name in names.get(..length).unwrap_or_default().split(|&byte| byte == 0) {
        let Some(text) = std::str::from_utf8(name).ok().filter(|text| is_carried(text)) else { continue };
        let mut value = vec![0_u8; XATTR_BYTES_MAX];
        let length = match rustix::fs::fgetxattr(fd, OsStr::from_bytes(name), &mut value) {
            Ok(length) => length,
            Err(rustix::io::Errno::NODATA) => continue,
            Err(errno) => return Err(errno.into()),
        };
        value.truncate(length);
        carried.push((format!("{PAX_XATTR_PREFIX}{text}"), value));
    }
    carried.sort();
    Ok(carried)
}
