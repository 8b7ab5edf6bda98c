//! Mount and unmount of one target.
//!
//! A mount is created detached, checked, recorded, and then attached by descriptor; afterwards the mount table of the
//! kernel must list what was intended, or the mount is detached again.

use std::os::fd::{AsRawFd, OwnedFd};

use rustix::io::Errno;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, UnmountFlags};

use crate::capabilities::Capabilities;
use crate::disk::{self, Disk};
use crate::find::Survey;
use crate::mountinfo;
use crate::mountpoint::{self, MountId, Occupant, Parent};
use crate::names::TargetName;
use crate::policy::{Policy, Target};
use crate::probe::FileSystem;
use crate::reply::{Refusal, Reply, refusal};
use crate::request::MountOption;
use crate::state::{Lock, Record};

/// Flags of every mount, which no request can remove.
const MANDATORY_FLAGS: [&str; 3] = ["nosuid", "nodev", "noexec"];

/// Mounts what the order names, unless it is mounted already.
pub fn mount(
    target: &Target,
    options: &[MountOption],
    policy: &Policy,
    (caps, lock): (&Capabilities, &Lock),
) -> Result<Reply, Refusal> {
    let parent = Parent::open()?;
    if let Occupant::Mount(there) = parent.state(&target.name)? {
        return existing(target, there, lock);
    }
    let survey = Survey::take(policy)?;
    let disk = survey.find(target)?;
    if survey.root_is_hidden() {
        let whole = &disk.whole;
        disk.whole_is_free().map_err(|error| refusal!(DeviceClass, "{whole} may hold /: {error}"))?;
    }
    let (device, at) = (disk.path(), mountpoint::path(&target.name));
    let done = caps.mounting(|| {
        let made = create(disk, target, options)?;
        let id = mountpoint::id_of(&made)?;
        lock.write(&target.name, &Record { id, uuid: target.uuid.clone(), device: device.clone() })?;
        let folder = parent.folder(&target.name)?;
        let empty_paths = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
        rustix::mount::move_mount(&made, "", &folder, "", empty_paths)
            .map_err(|error| refusal!(Failed, "cannot attach the mount at {at}: {error}"))?;
        verify(&parent, target, disk, id).or_else(|refusal| detach(&made).and(Err(refusal)))
    });
    done.inspect_err(|_| lock.remove(&target.name))?;
    Ok(Reply::Mount { target: target.name.clone(), uuid: target.uuid.clone(), device, at, how: "mounted" })
}

/// Unmounts a target, where the mount is the one that we made.
pub fn unmount(target: &TargetName, (caps, lock): (&Capabilities, &Lock)) -> Result<Reply, Refusal> {
    let parent = Parent::open()?;
    let at = mountpoint::path(target);
    let Occupant::Mount(there) = parent.state(target)? else {
        return Err(refusal!(NotMounted, "nothing is mounted at {at}"));
    };
    if lock.record(target)?.is_none_or(|record| record.id != there) {
        return Err(refusal!(NotMounted, "{at} was not mounted by the helper: unmount it by hand"));
    }
    caps.mounting(|| unmount_at(&parent, target))?;
    if let Occupant::Mount(_) = parent.state(target)? {
        return Err(refusal!(Failed, "{at} is unmounted; another mount is below it: `findmnt {at}`"));
    }
    lock.remove(target);
    Ok(Reply::Unmount { target: target.clone(), at })
}

fn existing(target: &Target, there: MountId, lock: &Lock) -> Result<Reply, Refusal> {
    let at = mountpoint::path(&target.name);
    match lock.record(&target.name)? {
        Some(Record { id, uuid, device }) if id == there && uuid == target.uuid => {
            Ok(Reply::Mount { target: target.name.clone(), uuid, device, at, how: "already" })
        }
        _ => Err(refusal!(Path, "{at} is already mounted, not by the helper: check `findmnt {at}`")),
    }
}

/// A mount that is attached nowhere yet, and is removed by itself when it is dropped.
fn create(disk: &Disk, target: &Target, options: &[MountOption]) -> Result<OwnedFd, Refusal> {
    let (kind, device) = (target.filesystem, disk.path());
    let failed = |what: &'static str| {
        let device = device.clone();
        move |error| refusal!(Failed, "{device} cannot be mounted ({what}): {error}; see the kernel's log")
    };
    let fs = rustix::mount::fsopen(kind.as_str(), FsOpenFlags::FSOPEN_CLOEXEC).map_err(failed("fsopen"))?;
    rustix::mount::fsconfig_set_string(&fs, "source", &device).map_err(failed("source"))?;
    if kind == FileSystem::Ext4 {
        // A superblock may request a panic of the whole machine on the first error in it.
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
        Errno::BUSY => refusal!(Busy, "{device} is in use: a mount, pool or volume group has it"),
        error => failed("superblock")(error),
    })?;
    let made =
        rustix::mount::fsmount(&fs, FsMountFlags::FSMOUNT_CLOEXEC, flags).map_err(failed("fsmount"))?;
    // The kernel took the device by name; this checks that it was the one we examined.
    let number = disk::number_of(rustix::fs::fstat(&made).map_err(failed("fstat"))?.st_dev);
    let same = if kind == FileSystem::Btrfs { btrfs_has_device(disk, target) } else { number == disk.number };
    if same {
        return Ok(made);
    }
    Err(refusal!(DeviceAmbiguous, "{device} was replaced while it was being mounted"))
}

/// Detaches the mount wherever it is now: it is named by its descriptor.
fn detach(made: &OwnedFd) -> Result<(), Refusal> {
    let itself = format!("/proc/self/fd/{}", made.as_raw_fd());
    rustix::mount::unmount(itself, UnmountFlags::DETACH)
        .map_err(|error| refusal!(Failed, "a stray mount cannot be detached ({error}): check `findmnt`"))
}

/// A btrfs has its own device number; the kernel lists its devices.
fn btrfs_has_device(disk: &Disk, target: &Target) -> bool {
    let folder = format!("/sys/fs/btrfs/{}/devices", target.uuid);
    let Ok(entries) = std::fs::read_dir(folder) else { return false };
    let names: Vec<_> = entries.flatten().map(|entry| entry.file_name()).collect();
    matches!(names.as_slice(), [one] if one.to_str() == Some(disk.name.as_str()))
}

/// The kernel's table says: one mount there, this one, whole, of this device, with what every mount has.
fn verify(parent: &Parent, target: &Target, disk: &Disk, id: MountId) -> Result<(), Refusal> {
    let at = mountpoint::path(&target.name);
    let wrong = |what: &str| refusal!(Failed, "{at} was mounted and unmounted again: {what}");
    if !matches!(parent.state(&target.name)?, Occupant::Mount(there) if there == id) {
        return Err(wrong("another mount is on top of it"));
    }
    let entries: Vec<_> = mountinfo::own()?.into_iter().filter(|entry| entry.point == at).collect();
    let [entry] = entries.as_slice() else {
        return Err(wrong("the kernel lists no mount there, or more than one"));
    };
    let flags = MANDATORY_FLAGS.iter().all(|flag| entry.options.iter().any(|option| option == flag));
    let device = target.filesystem == FileSystem::Btrfs || entry.device == disk.number;
    let kind =
        entry.filesystem == target.filesystem.as_str() && entry.source == disk.path() && entry.root == "/";
    if flags && device && kind { Ok(()) } else { Err(wrong("the kernel lists another mount there")) }
}

/// The parent is root's alone, the name has one component and is not followed.
fn unmount_at(parent: &Parent, target: &TargetName) -> Result<(), Refusal> {
    parent.enter()?;
    let at = mountpoint::path(target);
    rustix::mount::unmount(target.as_str(), UnmountFlags::NOFOLLOW).map_err(|error| match error {
        Errno::BUSY => refusal!(Busy, "{at} is in use: close its files (`fuser -m {at}`)"),
        error => refusal!(Failed, "{at} cannot be unmounted: {error}"),
    })
}
