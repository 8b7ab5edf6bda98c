//! Owner, permissions, times and attributes of one entry.

use std::ffi::OsStr;
use std::io;
use std::os::fd::BorrowedFd;

use rustix::fs::{AtFlags, Gid, Mode, Timespec, Timestamps, Uid, XattrFlags};
use rustix::io::Errno;

/// The attributes that Proxmox carries: `--xattrs-include=user.* --xattrs-include=security.capability`.
pub(super) const PAX_XATTR_PREFIX: &str = "SCHILY.xattr.";

/// Whose the extracted files become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ownership {
    /// The numbers in the archive: only root can.
    AsArchived,
    /// The extracting user's own.
    Extractor,
}

impl Ownership {
    /// What this process is able to do.
    pub(super) fn of_this_process() -> Self {
        if rustix::process::geteuid().is_root() { Self::AsArchived } else { Self::Extractor }
    }
}

/// What an archive says about an entry in addition to its content.
#[derive(Clone, Debug)]
pub(super) struct Metadata {
    uid: u32,
    gid: u32,
    mode: u32,
    mtime_s: u64,
    xattrs: Vec<(String, Vec<u8>)>,
}

impl Metadata {
    /// Reads an entry's header and its extended attributes.
    pub(super) fn of_entry<R: io::Read>(entry: &mut tar::Entry<'_, R>) -> io::Result<Self> {
        let mut xattrs = Vec::new();
        if let Some(extensions) = entry.pax_extensions()? {
            for extension in extensions {
                let extension = extension?;
                let Some(name) = extension.key().ok().and_then(|key| key.strip_prefix(PAX_XATTR_PREFIX))
                else {
                    continue;
                };
                if is_carried(name) {
                    xattrs.push((name.to_owned(), extension.value_bytes().to_vec()));
                }
            }
        }
        let header = entry.header();
        let number =
            |value: u64| u32::try_from(value).map_err(|_large| io::Error::from(io::ErrorKind::InvalidData));
        Ok(Self {
            uid: number(header.uid()?)?,
            gid: number(header.gid()?)?,
            mode: header.mode()? & 0o7777,
            mtime_s: header.mtime()?,
            xattrs,
        })
    }

    /// Puts it all on an open file or directory. The order matters: a change of owner clears set-id bits and
    /// capabilities, and anything that changes the file changes its time.
    pub(super) fn put_on(&self, fd: BorrowedFd<'_>, ownership: Ownership) -> io::Result<()> {
        if ownership == Ownership::AsArchived {
            let (uid, gid) = self.owner();
            rustix::fs::fchown(fd, Some(uid), Some(gid))?;
        }
        for (name, value) in &self.xattrs {
            match rustix::fs::fsetxattr(fd, name.as_str(), value, XattrFlags::empty()) {
                // As with Proxmox's `--warning=no-xattr-write`: a file system without attributes is no failure.
                Ok(()) | Err(Errno::NOTSUP | Errno::PERM) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        rustix::fs::fchmod(fd, Mode::from_raw_mode(self.mode))?;
        rustix::fs::futimens(fd, &self.times())?;
        Ok(())
    }

    /// Puts owner and time on a link or pipe, which must not be opened.
    pub(super) fn put_on_name(
        &self,
        parent: BorrowedFd<'_>,
        name: &OsStr,
        ownership: Ownership,
    ) -> io::Result<()> {
        if ownership == Ownership::AsArchived {
            let (uid, gid) = self.owner();
            rustix::fs::chownat(parent, name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)?;
        }
        rustix::fs::utimensat(parent, name, &self.times(), AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(())
    }

    /// The permission bits.
    pub(super) fn mode(&self) -> Mode {
        Mode::from_raw_mode(self.mode)
    }

    fn owner(&self) -> (Uid, Gid) {
        (Uid::from_raw(self.uid), Gid::from_raw(self.gid))
    }

    fn times(&self) -> Timestamps {
        let time = Timespec { tv_sec: i64::try_from(self.mtime_s).unwrap_or(i64::MAX), tv_nsec: 0 };
        Timestamps { last_access: time, last_modification: time }
    }
}

/// Whether an extended attribute travels in archives.
pub(super) fn is_carried(name: &str) -> bool {
    name.starts_with("user.") || name == "security.capability"
}
