//! Mountpoint of a target: a folder in `/mnt/holdfast`, held by descriptor.

use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, StatxAttributes, StatxFlags};
use rustix::io::Errno;

use crate::names::TargetName;
use crate::openat;
use crate::reply::{Refusal, refusal};

/// Since Linux 6.8: the number of a mount that no other mount ever gets, until the next boot.
const UNIQUE: StatxFlags = StatxFlags::from_bits_retain(0x4000);

/// The path of a target's mountpoint.
pub fn path(target: &TargetName) -> String {
    format!("{PARENT}/{target}")
}

/// The folder of all targets.
pub const PARENT: &str = "/mnt/holdfast";

/// `/mnt/holdfast`, root's alone.
pub struct Parent(OwnedFd);

/// What is at a target's name.
pub enum Occupant {
    /// A mount, by its number.
    Mount(MountId),
    /// An empty folder of root's, or nothing yet.
    Free,
}

/// The number of one mount among all mounts since boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MountId(pub u64);

impl Parent {
    /// Walks there from `/`; each folder must be owned and writable by root alone.
    pub fn open() -> Result<Self, Refusal> {
        let folder = openat::root_folder(&["mnt", "holdfast"]);
        folder.map(Self).map_err(|error| refusal!(Path, "{PARENT} is not writable by root alone: {error}"))
    }

    /// What is at this name now.
    pub fn state(&self, target: &TargetName) -> Result<Occupant, Refusal> {
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
        let mask = StatxFlags::BASIC_STATS | UNIQUE;
        let seen = match rustix::fs::statx(&self.0, target.as_str(), flags, mask) {
            Ok(seen) => seen,
            Err(Errno::NOENT) => return Ok(Occupant::Free),
            Err(error) => return Err(refusal!(Path, "cannot stat {}: {error}", path(target))),
        };
        if seen.stx_attributes.contains(StatxAttributes::MOUNT_ROOT) {
            return unique(&seen).map(Occupant::Mount);
        }
        empty_folder(&self.0, target)?;
        Ok(Occupant::Free)
    }

    /// The folder to mount on, made where there is none.
    pub fn folder(&self, target: &TargetName) -> Result<OwnedFd, Refusal> {
        match rustix::fs::mkdirat(&self.0, target.as_str(), Mode::from_raw_mode(0o700)) {
            Ok(()) | Err(Errno::EXIST) => empty_folder(&self.0, target),
            Err(error) => Err(refusal!(Path, "cannot make {}: {error}", path(target))),
        }
    }

    /// Changes into the folder, so that a plain name is enough for the one call that takes no descriptor.
    pub fn enter(&self) -> Result<(), Refusal> {
        rustix::process::fchdir(&self.0).map_err(|error| refusal!(Path, "cannot enter {PARENT}: {error}"))
    }
}

/// The number of a mount that is held by descriptor.
pub fn id_of(mount: &OwnedFd) -> Result<MountId, Refusal> {
    let seen = rustix::fs::statx(mount, "", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS | UNIQUE)
        .map_err(|error| refusal!(Env, "the kernel reports no id for the mount: {error}"))?;
    unique(&seen)
}

fn unique(seen: &rustix::fs::Statx) -> Result<MountId, Refusal> {
    if seen.stx_mask & UNIQUE.bits() == 0 {
        return Err(refusal!(Env, "the kernel is older than 6.8 and has no unique mount ids"));
    }
    Ok(MountId(seen.stx_mnt_id))
}

/// Opens a folder that is a real one, root's alone, empty, and no mount.
fn empty_folder(parent: &OwnedFd, target: &TargetName) -> Result<OwnedFd, Refusal> {
    let refused = |error: Errno| refusal!(Path, "{} is not writable by root alone: {error}", path(target));
    let folder = real_folder(parent, target).map_err(refused)?;
    openat::require_root(&folder, FileType::Directory, 0o022).map_err(refused)?;
    for entry in Dir::read_from(&folder).map_err(refused)? {
        if !matches!(entry.map_err(refused)?.file_name().to_bytes(), b"." | b"..") {
            return Err(refusal!(Path, "{} is not empty, and a mount would hide its files", path(target)));
        }
    }
    Ok(folder)
}

/// What is mounted over it meanwhile is something else.
fn real_folder(parent: &OwnedFd, name: &str) -> Result<OwnedFd, Errno> {
    let folder = openat::open(parent, name, OFlags::RDONLY | OFlags::DIRECTORY)?;
    let seen = rustix::fs::statx(&folder, "", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS)?;
    if seen.stx_attributes.contains(StatxAttributes::MOUNT_ROOT) { Err(Errno::XDEV) } else { Ok(folder) }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    use std::time::{Duration, Instant};

    use rustix::fs::{CWD, RenameFlags};

    use super::*;

    const TRIES: u64 = 1_000_000;

    fn folder(at: impl AsFd, name: &str) -> OwnedFd {
        rustix::fs::openat(at, name, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
            .unwrap()
    }

    /// Another process swaps the folder for a symlink out of the parent, and for a folder elsewhere, as fast as the
    /// kernel can. Meanwhile the name is opened a million times: it opens the folder, or nothing.
    #[test]
    fn a_swapped_name_never_escapes_the_parent() {
        let place = std::env::temp_dir().join(format!("holdfast-helper-race-{}", std::process::id()));
        std::fs::create_dir(&place).unwrap();
        let own = place.join("parent");
        for made in [&own, &own.join("t"), &place.join("victim")] {
            std::fs::create_dir(made).unwrap();
        }
        std::os::unix::fs::symlink("../victim", own.join("link")).unwrap();
        let parent = folder(CWD, own.to_str().unwrap());
        let real = rustix::fs::fstat(folder(&parent, "t")).unwrap().st_ino;
        let (stop, swaps) = (AtomicBool::new(false), AtomicU64::new(0));
        let (mut opened, mut refused) = (0_u64, 0_u64);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    rustix::fs::renameat_with(&parent, "t", &parent, "link", RenameFlags::EXCHANGE).unwrap();
                    swaps.fetch_add(1, Ordering::Relaxed);
                }
            });
            let deadline = Instant::now() + Duration::from_secs(60);
            while opened + refused < TRIES && Instant::now() < deadline {
                match real_folder(&parent, "t") {
                    Ok(fd) => {
                        opened += 1;
                        assert_eq!(rustix::fs::fstat(&fd).unwrap().st_ino, real, "an escape");
                    }
                    Err(Errno::LOOP | Errno::NOTDIR | Errno::AGAIN) => refused += 1,
                    Err(error) => panic!("{error}"),
                }
            }
            stop.store(true, Ordering::Relaxed);
        });
        println!("{opened} opened, {refused} refused, {} swaps, no escape", swaps.load(Ordering::Relaxed));
        assert!(opened > 1000 && refused > 1000, "both sides of the race were seen");
        std::fs::remove_dir_all(&place).unwrap();
    }
}
