//! The backup of one guest, from lock to log.
//!
//! ```text
//! lock=backup --> mode (falls back from snapshot to suspend) --> still point --> archive --> notes, protection, pruning
//!   --> snapshot dropped, lock off, guest up again --> end logged
//! ```
//! On any failure the lock, the snapshot and the guest's freeze or stop are undone. A killed worker undoes nothing.
use std::sync::Mutex;

use super::backup::{Backup, snapshot_place};
use super::mode::{HeldGuest, hold, release};
use super::options::{DumpDir, Mode, Options, Retention};
use super::{archive_step, texts};
use crate::call::content::free_volume;
use crate::call::prune::marks;
use crate::call::prune_server::{self, Effect};
use crate::clock::{archive_stamp, stamp};
use crate::fail::{Fallible, host};
use crate::guest::change::unlocked;
use crate::guest::config::GuestConfig;
use crate::storage::content::copy_of;
use crate::task::worker::Outcome;
use crate::task::{Halt, Task};

/// Backs one guest up.
///
/// # Errors
/// The error text for the log.
pub(super) fn back_up(task: &Task, options: &Options, dump: &DumpDir, vmid: u32) -> Outcome {
    let started_s = task.node.clock.now_s();
    task.log(format!("INFO: Starting Backup of VM {vmid} (lxc)"));
    task.log(format!("INFO: Backup started at {}", stamp(started_s)));
    let running = task.node.power.is_running(vmid);
    let status = format!("status = {}", if running { "running" } else { "stopped" });
    task.log(format!("INFO: {status}"));
    let config = lock(task, vmid)?;
    let named_s = free_second(dump, vmid, started_s);
    let name = name_of(vmid, named_s);
    let lines = Mutex::default();
    let backup = Backup { task, options, dump, vmid, config, name, named_s, started_s, lines };
    backup.note(&format!("Starting Backup of VM {vmid} (lxc)"));
    backup.note(&status);
    let mut held = HeldGuest::new(if running { options.mode } else { Mode::Stop }, running);
    let result = locked(&backup, &mut held);
    if matches!(result, Err(Halt::Killed)) {
        return result;
    }
    task.hear();
    let released = release(&backup, &held);
    backup.write_log()?;
    result.and(released)?;
    let took = texts::duration(task.node.clock.now_s() - started_s);
    backup.log(&format!("Finished Backup of VM {vmid} ({took})"));
    task.log(format!("INFO: Backup finished at {}", stamp(task.node.clock.now_s())));
    Ok(backup.write_log()?)
}

fn locked(backup: &Backup<'_>, held: &mut HeldGuest) -> Outcome {
    backup.task.pace("locked")?;
    hold(backup, held)?;
    archive_step::write(backup, held)?;
    attributes(backup)?;
    prune(backup)
}

fn lock(task: &Task, vmid: u32) -> Fallible<GuestConfig> {
    task.node.world().guests.change(vmid, |config| {
        unlocked(config)?;
        let before = config.clone();
        config.main.set("lock", "backup");
        Ok(before)
    })
}

fn name_of(vmid: u32, seconds: i64) -> String {
    format!("vzdump-lxc-{vmid}-{}", archive_stamp(seconds))
}

/// Two backups of one guest in one second must not meet.
fn free_second(dump: &DumpDir, vmid: u32, started_s: i64) -> i64 {
    let taken = |seconds: &i64| {
        let on_server = dump.server.as_ref().is_some_and(|server| {
            let place = snapshot_place(server, vmid, *seconds);
            place.exists() || place.with_extension("dat").exists()
        });
        on_server
            || ["tar", "tar.gz", "tar.zst", "tar.lzo", "tar.dat", "dat", "tmp"]
                .iter()
                .any(|end| dump.real.join(format!("{}.{end}", name_of(vmid, *seconds))).exists())
    };
    (started_s..started_s + 3600).find(|seconds| !taken(seconds)).unwrap_or(started_s)
}

fn attributes(backup: &Backup<'_>) -> Fallible<()> {
    let place = backup.place();
    let write = |what: &str, text: &str| {
        std::fs::write(copy_of(&place, what), text)
            .map_err(|error| host("write of backup attributes", &error))
    };
    if let Some(template) = &backup.options.notes {
        backup.log("adding notes to backup");
        let guest = backup.config.main.get("hostname").unwrap_or_default();
        write("notes", &texts::notes(template, backup.vmid, guest, &backup.task.node.name))?;
    }
    if backup.options.protected {
        backup.log("marking backup as protected");
        write("protected", "")?;
    }
    Ok(())
}

fn prune(backup: &Backup<'_>) -> Outcome {
    let Some(retention) = &backup.options.retention else { return Ok(()) };
    let reported: Vec<String> =
        retention.keep.iter().map(|(name, count)| format!("{name}={count}")).collect();
    backup.log(&format!("prune older backups with retention: {}", reported.join(", ")));
    let gone = let_go(backup, retention)?;
    let why = if gone > 0 { " not covered by keep-retention policy" } else { "" };
    backup.log(&format!("pruned {gone} backup(s){why}"));
    backup.task.pace("pruned")
}

fn let_go(backup: &Backup<'_>, retention: &Retention) -> Fallible<usize> {
    let world = backup.task.node.world();
    let storage = backup.options.storage.as_str();
    if backup.dump.server.is_some() {
        let ask =
            prune_server::Ask { storage, keep: &retention.keep, vmid: Some(backup.vmid), kind: Some("lxc") };
        let found = prune_server::marks(&world, &ask, Effect::Done, |line| backup.log(line))?;
        return Ok(found.iter().filter(|marked| marked.mark == "remove").count());
    }
    let found = marks(&world, storage, &retention.keep, Some(backup.vmid))?;
    let going: Vec<&str> = found
        .iter()
        .filter(|marked| marked.mark == "remove")
        .map(|marked| marked.row.volid.as_str())
        .collect();
    for volid in &going {
        backup.log(&format!("removing backup '{volid}'"));
        free_volume(&world, volid)?;
    }
    Ok(going.len())
}
