//! The two deeds. A mount is made whole while it is nowhere, looked at, written down, and then put in its place by
//! descriptor; afterwards the kernel's table must say what we meant, or it is taken away again.

use std::os::fd::{AsRawFd, OwnedFd};

use rustix::fs::{major, minor};
use rustix::io::Errno;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, UnmountFlags};

use crate::disk::Disk;
use crate::find::{Found, Survey};
use crate::mountinfo;
use crate::names::TargetName;
use crate::place::{self, MountId, Parent, Spot};
use crate::policy::{MountOrder, Target};
use crate::powers::Powers;
use crate::probe::FileSystem;
use crate::reply::{Code, How, Mounted, Refusal, Unmounted};
use crate::request::MountOption;
use crate::state::{Record, Turn};

/// What every mount has and nobody can ask away.
const ALWAYS: [&str; 3] = ["nosuid", "nodev", "noexec"];

/// Mounts what the order names, unless it is mounted already.
pub fn mount(order: &MountOrder<'_>, powers: &Powers, turn: &Turn) -> Result<Mounted, Refusal> {
    let target = order.target;
    let parent = Parent::open()?;
    if let Spot::Mount(there) = parent.spot(&target.name)? {
        return already(target, there, turn);
    }
    let survey = Survey::take(order.policy)?;
    let Found { disk, root_is_hidden } = survey.find(target)?;
    if root_is_hidden {
        disk.whole_is_free().map_err(|error| {
            let says =
                format!("{} is in use ({error}), and / does not say which disks it stands on", disk.whole);
            Refusal::new(Code::DeviceClass, says)
        })?;
    }
    let device = disk.path();
    let done = powers.mounting(|| {
        let made = made(disk, target, &order.options)?;
        let id = place::id_of(&made)?;
        turn.keep(&target.name, &Record { id, uuid: target.uuid.clone(), device: device.clone() })?;
        let folder = parent.folder(&target.name)?;
        put(&made, &folder, &target.name)?;
        match is_so(&parent, target, disk, id) {
            Ok(()) => Ok(()),
            Err(refusal) => {
                taken_back(&made)?;
                Err(refusal)
            }
        }
    });
    if let Err(refusal) = done {
        turn.forget(&target.name);
        return Err(refusal);
    }
    let at = place::path(&target.name);
    Ok(Mounted { target: target.name.clone(), uuid: target.uuid.clone(), device, at, how: How::Mounted })
}

/// Unmounts a target, where the mount is the one that we made.
pub fn unmount(target: &TargetName, powers: &Powers, turn: &Turn) -> Result<Unmounted, Refusal> {
    let parent = Parent::open()?;
    let at = place::path(target);
    let Spot::Mount(there) = parent.spot(target)? else {
        return Err(Refusal::new(Code::NotMounted, format!("nothing is mounted at {at}")));
    };
    if turn.record(target)?.is_none_or(|record| record.id != there) {
        let says =
            format!("what is mounted at {at} was not mounted by the helper: who mounted it unmounts it");
        return Err(Refusal::new(Code::NotMounted, says));
    }
    powers.mounting(|| take_away(&parent, target))?;
    if let Spot::Mount(_) = parent.spot(target)? {
        return Err(Refusal::new(
            Code::Failed,
            format!("{at} is unmounted, and another mount is beneath it: a person looks"),
        ));
    }
    turn.forget(target);
    Ok(Unmounted { target: target.clone(), at })
}

fn already(target: &Target, there: MountId, turn: &Turn) -> Result<Mounted, Refusal> {
    let at = place::path(&target.name);
    match turn.record(&target.name)? {
        Some(record) if record.id == there && record.uuid == target.uuid => Ok(Mounted {
            target: target.name.clone(),
            uuid: record.uuid,
            device: record.device,
            at,
            how: How::Already,
        }),
        _ => Err(Refusal::new(
            Code::Path,
            format!("{at} is a mount already that the helper did not make: a person looks"),
        )),
    }
}

/// A mount that is nowhere yet, and goes away by itself when it is dropped.
fn made(disk: &Disk, target: &Target, options: &[MountOption]) -> Result<OwnedFd, Refusal> {
    let failed = |what: &str, error: Errno| {
        Refusal::new(
            Code::Failed,
            format!("{} cannot be mounted ({what}): {error}; the kernel's log says why", disk.path()),
        )
    };
    let kind = target.filesystem;
    let fs =
        rustix::mount::fsopen(kind.as_str(), FsOpenFlags::FSOPEN_CLOEXEC).map_err(|e| failed("fsopen", e))?;
    rustix::mount::fsconfig_set_string(&fs, "source", disk.path()).map_err(|e| failed("source", e))?;
    if kind == FileSystem::Ext4 {
        // A superblock may ask for a panic of the whole machine on the first error in it.
        rustix::mount::fsconfig_set_string(&fs, "errors", "remount-ro").map_err(|e| failed("errors", e))?;
    }
    if options.contains(&MountOption::ReadOnly) {
        rustix::mount::fsconfig_set_flag(&fs, "ro").map_err(|e| failed("ro", e))?;
    }
    match rustix::mount::fsconfig_create_exclusive(&fs) {
        Ok(()) => {}
        Err(Errno::BUSY) => {
            let says = format!("{} is in use: mounted somewhere else, or part of something", disk.path());
            return Err(Refusal::new(Code::Busy, says));
        }
        Err(error) => return Err(failed("superblock", error)),
    }
    let mut flags = MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    for option in options {
        flags |= match option {
            MountOption::ReadOnly => MountAttrFlags::MOUNT_ATTR_RDONLY,
            MountOption::NoAccessTimes => MountAttrFlags::MOUNT_ATTR_NOATIME,
        };
    }
    let made = rustix::mount::fsmount(&fs, FsMountFlags::FSMOUNT_CLOEXEC, flags)
        .map_err(|e| failed("fsmount", e))?;
    // The kernel took the device by name; this says that it was the one we looked at.
    let stat = rustix::fs::fstat(&made).map_err(|e| failed("fstat", e))?;
    let number = format!("{}:{}", major(stat.st_dev), minor(stat.st_dev));
    let same = if kind == FileSystem::Btrfs { btrfs_stands_on(disk, target) } else { number == disk.number };
    if same {
        return Ok(made);
    }
    Err(Refusal::new(
        Code::DeviceAmbiguous,
        format!("{} was exchanged while it was being mounted", disk.path()),
    ))
}

fn put(made: &OwnedFd, folder: &OwnedFd, target: &TargetName) -> Result<(), Refusal> {
    let empty_paths = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    rustix::mount::move_mount(made, "", folder, "", empty_paths).map_err(|error| {
        Refusal::new(Code::Failed, format!("nothing can be put at {}: {error}", place::path(target)))
    })
}

/// Wherever the mount is now, it goes: it is named by its descriptor, and nobody had time to open a file in it.
fn taken_back(made: &OwnedFd) -> Result<(), Refusal> {
    let itself = format!("/proc/self/fd/{}", made.as_raw_fd());
    rustix::mount::unmount(itself, UnmountFlags::DETACH).map_err(|error| {
        Refusal::new(Code::Failed, format!("a mount that is not where it should be cannot be taken away ({error}): a person looks at `findmnt`"))
    })
}

/// A btrfs has a device number of its own; the kernel lists what it stands on.
fn btrfs_stands_on(disk: &Disk, target: &Target) -> bool {
    let folder = format!("/sys/fs/btrfs/{}/devices", target.uuid);
    let Ok(entries) = std::fs::read_dir(folder) else { return false };
    let names: Vec<_> = entries.flatten().map(|entry| entry.file_name()).collect();
    matches!(names.as_slice(), [one] if one.to_str() == Some(disk.name.as_str()))
}

/// The kernel's table says: one mount there, this one, whole, of this device, with what every mount has.
fn is_so(parent: &Parent, target: &Target, disk: &Disk, id: MountId) -> Result<(), Refusal> {
    let at = place::path(&target.name);
    let wrong =
        |what: &str| Refusal::new(Code::Failed, format!("{at} was mounted and taken away again: {what}"));
    if !matches!(parent.spot(&target.name)?, Spot::Mount(there) if there == id) {
        return Err(wrong("another mount is on top of it"));
    }
    let entries: Vec<_> = mountinfo::own()?.into_iter().filter(|entry| entry.point == at).collect();
    let [entry] = entries.as_slice() else {
        return Err(wrong("the kernel lists none, or more than one, there"));
    };
    let flags = ALWAYS.iter().all(|flag| entry.options.iter().any(|option| option == flag));
    let device = target.filesystem == FileSystem::Btrfs || entry.device == disk.number;
    let kind =
        entry.filesystem == target.filesystem.as_str() && entry.source == disk.path() && entry.root == "/";
    if flags && device && kind { Ok(()) } else { Err(wrong("the kernel lists something else there")) }
}

/// The parent is root's alone, the name has one component and is not followed.
fn take_away(parent: &Parent, target: &TargetName) -> Result<(), Refusal> {
    parent.enter()?;
    match rustix::mount::unmount(target.as_str(), UnmountFlags::NOFOLLOW) {
        Ok(()) => Ok(()),
        Err(Errno::BUSY) => {
            let says = format!("{} is in use: whoever has files open there closes them", place::path(target));
            Err(Refusal::new(Code::Busy, says))
        }
        Err(error) => {
            Err(Refusal::new(Code::Failed, format!("{} cannot be unmounted: {error}", place::path(target))))
        }
    }
}
