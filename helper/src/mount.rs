//! The two deeds. A mount is made whole while it is nowhere, looked at, written down, and then put in its place by
//! descriptor; afterwards the kernel's table must say what we meant, or it is taken away again.

use std::os::fd::{AsRawFd, OwnedFd};

use rustix::io::Errno;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, UnmountFlags};

use crate::disk::{self, Disk};
use crate::find::Survey;
use crate::mountinfo;
use crate::names::TargetName;
use crate::place::{self, MountId, Parent, Spot};
use crate::policy::{Policy, Target};
use crate::powers::Powers;
use crate::probe::FileSystem;
use crate::reply::{Refusal, Reply, refusal};
use crate::request::MountOption;
use crate::state::{Record, Turn};

/// What every mount has and nobody can ask away.
const ALWAYS: [&str; 3] = ["nosuid", "nodev", "noexec"];

/// Mounts what the order names, unless it is mounted already.
pub fn mount(
    target: &Target,
    options: &[MountOption],
    policy: &Policy,
    (powers, turn): (&Powers, &Turn),
) -> Result<Reply, Refusal> {
    let parent = Parent::open()?;
    if let Spot::Mount(there) = parent.spot(&target.name)? {
        return already(target, there, turn);
    }
    let survey = Survey::take(policy)?;
    let disk = survey.find(target)?;
    if survey.root_is_hidden() {
        let whole = &disk.whole;
        disk.whole_is_free().map_err(|error| refusal!(DeviceClass, "{whole} may be beneath /: {error}"))?;
    }
    let (device, at) = (disk.path(), place::path(&target.name));
    let done = powers.mounting(|| {
        let made = made(disk, target, options)?;
        let id = place::id_of(&made)?;
        turn.keep(&target.name, &Record { id, uuid: target.uuid.clone(), device: device.clone() })?;
        let folder = parent.folder(&target.name)?;
        let empty_paths = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
        rustix::mount::move_mount(&made, "", &folder, "", empty_paths)
            .map_err(|error| refusal!(Failed, "nothing can be put at {at}: {error}"))?;
        is_so(&parent, target, disk, id).or_else(|refusal| taken_back(&made).and(Err(refusal)))
    });
    done.inspect_err(|_| turn.forget(&target.name))?;
    Ok(Reply::Mount { target: target.name.clone(), uuid: target.uuid.clone(), device, at, how: "mounted" })
}

/// Unmounts a target, where the mount is the one that we made.
pub fn unmount(target: &TargetName, (powers, turn): (&Powers, &Turn)) -> Result<Reply, Refusal> {
    let parent = Parent::open()?;
    let at = place::path(target);
    let Spot::Mount(there) = parent.spot(target)? else {
        return Err(refusal!(NotMounted, "nothing is mounted at {at}"));
    };
    if turn.record(target)?.is_none_or(|record| record.id != there) {
        return Err(refusal!(NotMounted, "{at} was not mounted by the helper: who mounted it unmounts it"));
    }
    powers.mounting(|| take_away(&parent, target))?;
    if let Spot::Mount(_) = parent.spot(target)? {
        return Err(refusal!(Failed, "{at} is unmounted, and another mount is beneath it: a person looks"));
    }
    turn.forget(target);
    Ok(Reply::Unmount { target: target.clone(), at })
}

fn already(target: &Target, there: MountId, turn: &Turn) -> Result<Reply, Refusal> {
    let at = place::path(&target.name);
    match turn.record(&target.name)? {
        Some(Record { id, uuid, device }) if id == there && uuid == target.uuid => {
            Ok(Reply::Mount { target: target.name.clone(), uuid, device, at, how: "already" })
        }
        _ => Err(refusal!(Path, "{at} is a mount already that the helper did not make: a person looks")),
    }
}

/// A mount that is nowhere yet, and goes away by itself when it is dropped.
fn made(disk: &Disk, target: &Target, options: &[MountOption]) -> Result<OwnedFd, Refusal> {
    let (kind, device) = (target.filesystem, disk.path());
    let failed = |what: &'static str| {
        let device = device.clone();
        move |error| refusal!(Failed, "{device} cannot be mounted ({what}): {error}; see the kernel's log")
    };
    let fs = rustix::mount::fsopen(kind.as_str(), FsOpenFlags::FSOPEN_CLOEXEC).map_err(failed("fsopen"))?;
    rustix::mount::fsconfig_set_string(&fs, "source", &device).map_err(failed("source"))?;
    if kind == FileSystem::Ext4 {
        // A superblock may ask for a panic of the whole machine on the first error in it.
        rustix::mount::fsconfig_set_string(&fs, "errors", "remount-ro").map_err(failed("errors"))?;
    }
    let mut flags = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    flags |= MountAttrFlags::MOUNT_ATTR_NOEXEC;
    for option in options {
        match option {
            MountOption::ReadOnly => {
                rustix::mount::fsconfig_set_flag(&fs, "ro").map_err(failed("ro"))?;
                flags |= MountAttrFlags::MOUNT_ATTR_RDONLY;
            }
            MountOption::NoAccessTimes => flags |= MountAttrFlags::MOUNT_ATTR_NOATIME,
        }
    }
    rustix::mount::fsconfig_create_exclusive(&fs).map_err(|error| match error {
        Errno::BUSY => refusal!(Busy, "{device} is in use: mounted somewhere else, or part of something"),
        error => failed("superblock")(error),
    })?;
    let made =
        rustix::mount::fsmount(&fs, FsMountFlags::FSMOUNT_CLOEXEC, flags).map_err(failed("fsmount"))?;
    // The kernel took the device by name; this says that it was the one we looked at.
    let number = disk::number_of(rustix::fs::fstat(&made).map_err(failed("fstat"))?.st_dev);
    let same = if kind == FileSystem::Btrfs { btrfs_stands_on(disk, target) } else { number == disk.number };
    if same {
        return Ok(made);
    }
    Err(refusal!(DeviceAmbiguous, "{device} was exchanged while it was being mounted"))
}

/// Wherever the mount is now, it goes: it is named by its descriptor, and nobody had time to open a file in it.
fn taken_back(made: &OwnedFd) -> Result<(), Refusal> {
    let itself = format!("/proc/self/fd/{}", made.as_raw_fd());
    rustix::mount::unmount(itself, UnmountFlags::DETACH)
        .map_err(|error| refusal!(Failed, "a stray mount cannot be taken away ({error}): look at `findmnt`"))
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
    let wrong = |what: &str| refusal!(Failed, "{at} was mounted and taken away again: {what}");
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
    let at = place::path(target);
    rustix::mount::unmount(target.as_str(), UnmountFlags::NOFOLLOW).map_err(|error| match error {
        Errno::BUSY => refusal!(Busy, "{at} is in use: whoever has files open there closes them"),
        error => refusal!(Failed, "{at} cannot be unmounted: {error}"),
    })
}
