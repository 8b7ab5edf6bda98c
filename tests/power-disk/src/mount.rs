//! The FUSE file system that shows the simulated disk.
//!
//! In: a disk and a folder. Out: the folder shows the disk. A program in the folder uses the kernel's own calls, so
//! nothing of the agent is built differently for this. Writes reach the disk at once and in order, because the kernel
//! holds none back. Needs the right to mount: root, or `fusermount3` of the package `fuse3`.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{
    AccessFlags, BackgroundSession, BsdFileFlags, Config, Errno, FileAttr, FileHandle, FileType, Filesystem,
    FopenFlags, Generation, INodeNo, LockOwner, MountOption, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate,
    ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyStatfs, ReplyWrite, Request, TimeOrNow,
    WriteFlags,
};

use rustix::mount::{UnmountFlags, unmount};

use crate::disk::{Disk, Fault, Ino, Look, Meta};

/// Only this mount changes the disk, so the kernel may cache what it saw for this long.
const KNOWN_FOR: Duration = Duration::from_secs(24 * 3600);

/// The size of a block, in bytes, and how many there are, nearly all of them free.
const BLOCK: u32 = 4096;
const BLOCKS: u64 = 1 << 24;

/// Shows a disk in a folder until this is dropped; files that are still open there are then lost.
///
/// # Errors
/// The kernel's error for the mount.
pub fn mount(path: &Path, disk: Arc<Disk>) -> std::io::Result<MountedDisk> {
    let mut config = Config::default();
    config.mount_options = vec![MountOption::FSName("holdfast-power".to_owned()), MountOption::NoAtime];
    let session = fuser::spawn_mount(Front(disk), path, &config)?;
    Ok(MountedDisk { path: path.to_owned(), _session: session })
}

/// A disk that is shown in a folder.
#[derive(Debug)]
pub struct MountedDisk {
    path: PathBuf,
    _session: BackgroundSession,
}

impl Drop for MountedDisk {
    fn drop(&mut self) {
        // A process that still uses the disk does not keep it mounted. Without the right to unmount, the session's end
        // does it.
        let _ = unmount(&self.path, UnmountFlags::DETACH);
    }
}

struct Front(Arc<Disk>);

impl From<Fault> for Errno {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Cut => Self::EIO,
            Fault::Missing => Self::ENOENT,
            Fault::Exists => Self::EEXIST,
            Fault::NotEmpty => Self::ENOTEMPTY,
            Fault::WrongKind => Self::EISDIR,
        }
    }
}

fn size(number: u64) -> usize {
    usize::try_from(number).unwrap()
}

fn attributes(ino: Ino, look: Look) -> FileAttr {
    let long_ago: SystemTime = UNIX_EPOCH;
    let bytes = look.size.unwrap_or(u64::from(BLOCK));
    FileAttr {
        ino: INodeNo(ino),
        size: bytes,
        blocks: bytes.div_ceil(512),
        atime: long_ago,
        mtime: long_ago,
        ctime: long_ago,
        crtime: long_ago,
        kind: if look.size.is_some() { FileType::RegularFile } else { FileType::Directory },
        perm: u16::try_from(look.meta.mode & 0o7777).unwrap(),
        nlink: 1,
        uid: look.meta.uid,
        gid: look.meta.gid,
        rdev: 0,
        blksize: BLOCK,
        flags: 0,
    }
}

impl Front {
    fn entry(&self, found: Result<Ino, Fault>, reply: ReplyEntry) {
        match found.and_then(|ino| Ok((ino, self.0.look(ino)?))) {
            Ok((ino, look)) => reply.entry(&KNOWN_FOR, &attributes(ino, look), Generation(0)),
            Err(fault) => reply.error(fault.into()),
        }
    }
}

fn empty(done: Result<(), Fault>, reply: ReplyEmpty) {
    match done {
        Ok(()) => reply.ok(),
        Err(fault) => reply.error(fault.into()),
    }
}

fn meta(req: &Request, mode: u32, umask: u32) -> Meta {
    Meta { mode: mode & 0o7777 & !umask, uid: req.uid(), gid: req.gid() }
}

impl Filesystem for Front {
    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        self.entry(self.0.named(parent.0, name), reply);
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.0.look(ino.0) {
            Ok(look) => reply.attr(&KNOWN_FOR, &attributes(ino.0, look)),
            Err(fault) => reply.error(fault.into()),
        }
    }

    fn setattr(
        &self,
        _: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        bytes: Option<u64>,
        _: Option<TimeOrNow>,
        _: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let resized = bytes.map_or(Ok(()), |bytes| self.0.resize(ino.0, size(bytes)));
        let allowed = resized.and_then(|()| {
            self.0.allow(ino.0, |meta| {
                *meta = Meta {
                    mode: mode.map_or(meta.mode, |mode| mode & 0o7777),
                    uid: uid.unwrap_or(meta.uid),
                    gid: gid.unwrap_or(meta.gid),
                };
            })
        });
        match allowed.and_then(|()| self.0.look(ino.0)) {
            Ok(look) => reply.attr(&KNOWN_FOR, &attributes(ino.0, look)),
            Err(fault) => reply.error(fault.into()),
        }
    }

    fn mkdir(&self, req: &Request, parent: INodeNo, name: &OsStr, mode: u32, umask: u32, reply: ReplyEntry) {
        self.entry(self.0.make_folder(parent.0, name, meta(req, mode, umask)), reply);
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        empty(self.0.remove(parent.0, name), reply);
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        empty(self.0.remove(parent.0, name), reply);
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        to: INodeNo,
        to_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        if parent != to || flags.contains(RenameFlags::RENAME_EXCHANGE) {
            return reply.error(Errno::EXDEV);
        }
        if flags.contains(RenameFlags::RENAME_NOREPLACE) && self.0.named(to.0, to_name).is_ok() {
            return reply.error(Errno::EEXIST);
        }
        empty(self.0.rename(parent.0, name, to_name), reply);
    }

    fn link(&self, _: &Request, ino: INodeNo, to: INodeNo, to_name: &OsStr, reply: ReplyEntry) {
        self.entry(self.0.link(ino.0, to.0, to_name).map(|()| ino.0), reply);
    }

    fn read(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        bytes: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        match self.0.read(ino.0, size(offset), size(bytes.into())) {
            Ok(bytes) => reply.data(&bytes),
            Err(fault) => reply.error(fault.into()),
        }
    }

    fn write(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        match self.0.write(ino.0, size(offset), data) {
            Ok(()) => reply.written(u32::try_from(data.len()).unwrap()),
            Err(fault) => reply.error(fault.into()),
        }
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn fsync(&self, _: &Request, ino: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        empty(self.0.sync(ino.0), reply);
    }

    fn fsyncdir(&self, _: &Request, ino: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        empty(self.0.sync(ino.0), reply);
    }

    fn readdir(&self, _: &Request, ino: INodeNo, _: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        let names = match self.0.names(ino.0) {
            Ok(names) => names,
            Err(fault) => return reply.error(fault.into()),
        };
        for (nth, (name, ino)) in names.iter().enumerate().skip(size(offset)) {
            let folder = self.0.look(*ino).is_ok_and(|look| look.size.is_none());
            let kind = if folder { FileType::Directory } else { FileType::RegularFile };
            if reply.add(INodeNo(*ino), nth as u64 + 1, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        reply.statfs(BLOCKS, BLOCKS - 1, BLOCKS - 1, BLOCKS, BLOCKS - 1, BLOCK, 255, BLOCK);
    }

    fn access(&self, _: &Request, _: INodeNo, _: AccessFlags, reply: ReplyEmpty) {
        reply.ok();
    }

    fn create(
        &self,
        req: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        _: i32,
        reply: ReplyCreate,
    ) {
        let made = self.0.make_file(parent.0, name, meta(req, mode, umask));
        match made.and_then(|ino| Ok((ino, self.0.look(ino)?))) {
            Ok((ino, look)) => reply.created(
                &KNOWN_FOR,
                &attributes(ino, look),
                Generation(0),
                FileHandle(0),
                FopenFlags::empty(),
            ),
            Err(fault) => reply.error(fault.into()),
        }
    }
}
