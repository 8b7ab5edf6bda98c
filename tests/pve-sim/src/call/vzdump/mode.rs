//! How a guest is brought to a point of rest, and back.
//!
//! | mode | rest | back |
//! | --- | --- | --- |
//! | stop | down until the archive is written | started again |
//! | suspend | frozen while the last changes are copied aside | thawed before the archive is written |
//! | snapshot | frozen while the snapshots are made | thawed at once; snapshots dropped at the end |
use std::time::Duration;

use super::backup::Backup;
use super::options::Mode;
use super::texts;
use crate::call::lxc::list::can_snapshot;
use crate::call::lxc::power::{boot, go_down};
use crate::call::lxc::snapshot::{TakeOver, freeze, remove, take};
use crate::fail::{Fallible, Refusal, host};
use crate::guest::options::{Mount, Origin, mounts};
use crate::storage::copy::copy_tree;
use crate::task::worker::Outcome;
use crate::task::{Halt, Task};

/// The name of the snapshot that a backup makes for itself.
const SNAPSHOT: &str = "vzdump";

/// Changes to the guest that must be undone.
#[derive(Debug)]
pub(super) struct HeldGuest {
    /// The mode that is really used.
    pub mode: Mode,
    was_running: bool,
    snapshot: bool,
    down_since_s: Option<i64>,
}

impl HeldGuest {
    pub(super) const fn new(mode: Mode, was_running: bool) -> Self {
        Self { mode, was_running, snapshot: false, down_since_s: None }
    }
}

/// The volumes that go into the archive.
pub(super) fn included(backup: &Backup<'_>) -> Vec<Mount> {
    let all = mounts(&backup.task.node.table, &backup.config.main);
    all.into_iter().filter(|mount| mount.in_backup()).collect()
}

/// Brings the guest to rest.
///
/// # Errors
/// The error text of the failed step.
pub(super) fn hold(backup: &Backup<'_>, held: &mut HeldGuest) -> Outcome {
    if held.mode == Mode::Snapshot {
        prepare(backup)?;
        if can_snapshot(&backup.task.node.table, &backup.task.node.world(), &backup.config.main, true) {
            old_snapshot(backup)?;
        } else {
            backup.log("mode failure - some volumes do not support snapshots");
            backup.log("trying 'suspend' mode instead");
            held.mode = Mode::Suspend;
        }
    }
    backup.log(&format!("backup mode: {}", held.mode.word()));
    if backup.options.bwlimit_kib_s > 0 {
        backup.log(&format!("bandwidth limit: {} KiB/s", backup.options.bwlimit_kib_s));
    }
    backup.log(&format!("ionice priority: {}", backup.options.ionice));
    match held.mode {
        Mode::Stop => stop(backup, held),
        Mode::Suspend => suspend(backup),
        Mode::Snapshot => snapshot(backup, held),
    }
}

fn prepare(backup: &Backup<'_>) -> Fallible<()> {
    let main = &backup.config.main;
    backup.log(&format!("CT Name: {}", main.get("hostname").unwrap_or_default()));
    for mount in mounts(&backup.task.node.table, main) {
        let (key, path) = (&mount.key, mount.path());
        if mount.in_backup() {
            backup.log(&format!("including mount point {key} ('{path}') in backup"));
        } else if mount.origin() == Origin::Volume {
            backup.log(&format!("excluding volume mount point {key} ('{path}') from backup (disabled)"));
        } else {
            let word = mount.origin().word();
            backup.log(&format!("excluding {word} mount point {key} ('{path}') from backup (not a volume)"));
        }
    }
    Ok(())
}

/// A snapshot that an earlier backup left behind is in the way.
fn old_snapshot(backup: &Backup<'_>) -> Outcome {
    if backup.config.snapshots.contains_key(SNAPSHOT) {
        backup.log("found old vzdump snapshot (force removal)");
        remove(backup.task, backup.vmid, SNAPSHOT, true, TakeOver::Backup)?;
        // A guest that was frozen when that backup died wakes up here.
        backup.task.node.power.thaw(backup.vmid);
    }
    Ok(())
}

fn stop(backup: &Backup<'_>, held: &mut HeldGuest) -> Outcome {
    prepare(backup)?;
    if !held.was_running {
        return Ok(());
    }
    backup.log("stopping virtual guest");
    held.down_since_s = Some(backup.task.node.clock.now_s());
    let patience = Duration::from_secs(backup.options.stopwait_min.saturating_mul(60));
    go_down(backup.task, backup.vmid, patience, true)
}

fn suspend(backup: &Backup<'_>) -> Outcome {
    prepare(backup)?;
    let task = backup.task;
    let pid = task.node.power.running(backup.vmid).map_or(0, |running| running.pid);
    let target = backup.temporary_shown();
    backup.log(&format!("starting first sync /proc/{pid}/root/ to {target}"));
    let began_s = task.node.clock.now_s();
    let bytes = copy(backup)?;
    let took = task.node.clock.now_s() - began_s;
    backup.log(&format!("first sync finished - transferred {} bytes in {took}s", texts::transferred(bytes)));
    task.pace("first sync")?;
    backup.log("suspending guest");
    let frozen_s = task.node.clock.now_s();
    freeze(task, backup.vmid)?;
    let result = last_sync(backup, pid, &target);
    if matches!(result, Err(Halt::Killed)) {
        return result;
    }
    backup.log("resuming guest");
    task.node.power.thaw(backup.vmid);
    let frozen = texts::delay(task.node.clock.now_s() - frozen_s);
    backup.log(&format!("guest is online again after {frozen}"));
    result
}

fn last_sync(backup: &Backup<'_>, pid: u32, target: &str) -> Outcome {
    backup.log(&format!("starting final sync /proc/{pid}/root/ to {target}"));
    backup.task.pace("final sync")?;
    let before = copied_bytes(backup)?;
    let after = copy(backup)?;
    let changed = texts::transferred(after.abs_diff(before));
    backup.log(&format!("final sync finished - transferred {changed} bytes in 0s"));
    Ok(())
}

/// Copies each volume into a temporary folder of its own; returns how many bytes of files they hold.
fn copy(backup: &Backup<'_>) -> Fallible<u64> {
    let folder = backup.temporary();
    if folder.exists() {
        std::fs::remove_dir_all(&folder).map_err(|error| host("removal of temporary copy", &error))?;
    }
    std::fs::create_dir_all(&folder).map_err(|error| host("creation of temporary copy", &error))?;
    for mount in included(backup) {
        let tree = backup.task.node.world().store().tree(mount.volume())?;
        copy_tree(&tree, &folder.join(&mount.key))?;
    }
    copied_bytes(backup)
}

fn copied_bytes(backup: &Backup<'_>) -> Fallible<u64> {
    let mut bytes = 0;
    let mut folders = vec![backup.temporary()];
    while let Some(folder) = folders.pop() {
        let entries =
            std::fs::read_dir(&folder).map_err(|error| host("reading of temporary copy", &error))?;
        for entry in entries {
            let entry = entry.map_err(|error| host("reading of temporary copy", &error))?;
            let meta = entry.metadata().map_err(|error| host("reading of temporary copy", &error))?;
            if meta.is_dir() {
                folders.push(entry.path());
            } else if meta.is_file() {
                bytes += meta.len();
            }
        }
    }
    Ok(bytes)
}

fn snapshot(backup: &Backup<'_>, held: &mut HeldGuest) -> Outcome {
    let task = backup.task;
    let several = included(backup).len() > 1;
    if several {
        backup.log("suspend vm to make snapshot");
    }
    let frozen_s = task.node.clock.now_s();
    backup.log("create storage snapshot 'vzdump'");
    take(task, backup.vmid, SNAPSHOT, Some("vzdump backup snapshot"), TakeOver::Backup)?;
    held.snapshot = true;
    let unmountable = included(backup).iter().any(|mount| is_subvolume(backup, mount));
    if unmountable {
        task.log("umount: /mnt/vzsnap0/: not mounted.");
        task.log("command 'umount -l -d /mnt/vzsnap0/' failed: exit code 32");
    }
    if several {
        backup.log("resume vm");
        let frozen = texts::delay(task.node.clock.now_s() - frozen_s);
        backup.log(&format!("guest is online again after {frozen}"));
    }
    if unmountable {
        // What was made for it stays.
        held.snapshot = false;
        return Err(Refusal::die("cannot mount subvol snapshots for storage type 'btrfs'").into());
    }
    Ok(())
}

/// A folder of a btrfs storage, without a size of its own.
fn is_subvolume(backup: &Backup<'_>, mount: &Mount) -> bool {
    let world = backup.task.node.world();
    let storage = mount.volume().split_once(':').and_then(|(storage, _)| world.storage.find(storage));
    mount.volume().ends_with(".subvol") && storage.is_some_and(|definition| definition.kind == "btrfs")
}

/// Undoes the changes to the guest, and removes the lock.
///
/// # Errors
/// When the guest does not come up again; everything else is tried all the same.
pub(super) fn release(backup: &Backup<'_>, held: &HeldGuest) -> Outcome {
    let task = backup.task;
    let temporary = backup.temporary();
    if temporary.exists()
        && let Err(error) = std::fs::remove_dir_all(&temporary)
    {
        tracing::warn!(%error, "temporary copy not removed");
    }
    if held.snapshot {
        backup.log("cleanup temporary 'vzdump' snapshot");
        if let Err(Halt::Failed(refusal)) = drop_snapshot(task, backup.vmid) {
            backup.log(&format!("snapshot 'vzdump' was not removed - {}", refusal.in_task()));
        }
    }
    unlock(task, backup.vmid)?;
    if let Some(down_since_s) = held.down_since_s {
        backup.log("restarting vm");
        boot(&task.node, backup.vmid)?;
        let down = texts::delay(task.node.clock.now_s() - down_since_s);
        backup.log(&format!("guest is online again after {down}"));
    }
    Ok(())
}

/// Drops the backup's snapshot even while the task is being stopped.
fn drop_snapshot(task: &Task, vmid: u32) -> Outcome {
    remove(task, vmid, SNAPSHOT, false, TakeOver::Backup)
}

fn unlock(task: &Task, vmid: u32) -> Fallible<()> {
    let mut world = task.node.world();
    if !world.guests.has(vmid) {
        return Ok(());
    }
    let locked = world.guests.get(vmid)?.lock().is_some();
    if !locked {
        task.log("no lock found trying to remove 'backup'  lock");
        return Ok(());
    }
    world.guests.change(vmid, |config| {
        config.main.unset("lock");
        Ok(())
    })
}
