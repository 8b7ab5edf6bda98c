//! Destroying a container: its volumes, its rights, its configuration.
use std::collections::BTreeSet;

use crate::call::{Call, Reply};
use crate::die;
use crate::fail::Fallible;
use crate::guest::change::{Change, Run, protected, unlocked};
use crate::guest::config::GuestConfig;
use crate::guest::options::{is_volume_key, mounts, numbered};
use crate::schema::table::Table;
use crate::task::Task;
use crate::task::worker::Outcome;

/// All volumes that a configuration names, each once.
#[must_use]
pub fn volumes_of(table: &Table, config: &GuestConfig) -> Vec<String> {
    let pending = crate::guest::config::Section { values: config.pending.clone(), lxc: Vec::new() };
    let mut found: Vec<String> = Vec::new();
    for section in [&config.main, &pending] {
        found.extend(
            mounts(table, section)
                .iter()
                .filter(|mount| mount.goal().is_none())
                .map(|mount| mount.volume().to_owned()),
        );
        found.extend(
            section
                .values
                .iter()
                .filter(|(key, _)| numbered(key, "unused").is_some())
                .map(|(_, value)| value.clone()),
        );
    }
    let mut seen = BTreeSet::new();
    found.retain(|volid| !volid.starts_with('/') && seen.insert(volid.clone()));
    found
}

/// `DELETE …/{vmid}`
///
/// # Errors
/// When it is not there, protected, locked or running.
pub fn destroy(call: &Call<'_>) -> Reply {
    let vmid = call.vmid()?;
    let force = call.flag("force");
    {
        let world = call.node.world();
        let config = world.guests.get(vmid)?;
        protected(&config.main, &format!("can't remove CT {vmid}"))?;
        unlocked(config)?;
        if !force && call.node.power.is_running(vmid) {
            die!("unable to destroy CT {vmid} - container is running");
        }
    }
    let (purge, unreferenced) = (call.flag("purge"), call.flag("destroy-unreferenced-disks"));
    call.spawn("vzdestroy", &vmid.to_string(), move |task| run(task, vmid, force, purge, unreferenced))
}

fn run(task: &Task, vmid: u32, force: bool, purge: bool, unreferenced: bool) -> Outcome {
    task.node.faults.lock_config(vmid)?;
    let config = task.node.world().guests.get(vmid)?.clone();
    protected(&config.main, &format!("can't remove CT {vmid}"))?;
    unlocked(&config)?;
    if task.node.power.is_running(vmid) {
        if !force {
            return Err(crate::fail::Refusal::die(format!(
                "unable to destroy CT {vmid} - container is running"
            ))
            .into());
        }
        task.log(format!("forced to stop CT {vmid} before destroying!"));
        super::power::halt(task, vmid)?;
    }
    let volumes = volumes_of(&task.node.table, &config);
    let spared = usize::from(task.node.faults.keeps_volume(vmid));
    for volid in volumes.iter().skip(spared) {
        let note = {
            let world = task.node.world();
            let change = Change { node: &task.node, store: world.store(), vmid, running: Run::Down };
            let owned = world.store().locate(volid)?.name.owner() == Some(vmid);
            if owned {
                change.store.free(volid)?
            } else {
                Some(format!("ignore deletion of '{volid}', CT {vmid} isn't the owner!"))
            }
        };
        if let Some(line) = note {
            task.log(line);
        }
        task.pace("freed")?;
    }
    if unreferenced {
        free_unreferenced(task, vmid)?;
    }
    let mut world = task.node.world();
    let mut zombie = GuestConfig::default();
    zombie.main.set("lock", "destroyed");
    world.guests.put(vmid, zombie)?;
    world.access.forget_guest(vmid);
    world.save_access()?;
    if purge {
        task.log(format!("purging CT {vmid} from related configurations.."));
    }
    // Only now, or the number could be taken again while the rest is still going.
    // Its firewall configuration is removed with it. The one of a number that no guest has stays.
    crate::call::firewall::keep(&task.node, &format!("{vmid}.fw"), &crate::firewall::Config::default())?;
    Ok(world.guests.remove(vmid)?)
}

/// Searches every enabled storage for containers. A storage that is not available fails the task; the named volumes are
/// removed before that.
fn free_unreferenced(task: &Task, vmid: u32) -> Fallible<()> {
    let world = task.node.world();
    let store = world.store();
    let names: Vec<String> = world
        .storage
        .all
        .iter()
        .filter(|(_, held)| held.holds("rootdir") && !held.is_disabled())
        .map(|(name, _)| name.clone())
        .collect();
    for name in &names {
        store.activate(name)?;
    }
    for name in &names {
        for row in crate::storage::content::images(&store, name, Some(vmid)) {
            if let Err(refusal) = store.free(&row.volid) {
                task.log(refusal.message);
            }
        }
    }
    Ok(())
}

/// Whether a key names a volume of the guest, used or unused.
#[must_use]
pub fn is_any_volume(key: &str) -> bool {
    is_volume_key(key) || numbered(key, "unused").is_some()
}
