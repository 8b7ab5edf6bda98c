//! Snapshots of a container: list, take, drop, roll back.
//!
//! ```text
//! take:  lock=snapshot, [name] snapstate=prepare --> (running: frozen) volumes --> thawed --> lock off, parent=name
//! drop:  lock=snapshot-delete, snapstate=delete --> volumes one by one --> section and lock off, parents relinked
//! roll:  stopped, lock=rollback --> volumes --> values of the section, parent=name, lock off
//! ```
use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::list::can_snapshot;
use crate::call::{Call, NOTHING, Reply, data};
use crate::die;
use crate::fail::{Fallible, Refusal};
use crate::guest::change::unlocked;
use crate::guest::config::{GuestConfig, Section};
use crate::guest::options::{Mount, Origin, json_section, mounts, numbered};
use crate::task::worker::Outcome;
use crate::task::{Halt, Task};

/// `GET …/snapshot`
///
/// # Errors
/// When the guest is not there.
pub fn list(call: &Call<'_>) -> Reply {
    let vmid = call.vmid()?;
    let world = call.node.world();
    let config = world.guests.get(vmid)?;
    let mut rows: Vec<Value> = Vec::new();
    for (name, section) in &config.snapshots {
        let time = section.get("snaptime").and_then(|text| text.parse::<i64>().ok()).unwrap_or_default();
        let mut row = json!({"name": name, "snaptime": time, "description": section.get("description").unwrap_or_default()});
        add(&mut row, section, &["parent", "snapstate"]);
        rows.push(row);
    }
    let running = u8::from(call.node.power.is_running(vmid));
    let mut current = json!({"name": "current", "digest": config.digest(), "running": running, "description": "You are here!"});
    add(&mut current, &config.main, &["parent"]);
    rows.push(current);
    data(rows)
}

fn add(row: &mut Value, section: &Section, keys: &[&str]) {
    if let Some(map) = row.as_object_mut() {
        map.extend(
            keys.iter().filter_map(|key| section.get(key).map(|text| ((*key).to_owned(), json!(text)))),
        );
    }
}

/// `GET …/snapshot/{snapname}`
///
/// # Errors
/// Never.
pub fn index(_: &Call<'_>) -> Reply {
    data(vec![json!({"cmd": "rollback"}), json!({"cmd": "config"})])
}

fn section<'a>(config: &'a GuestConfig, name: &str) -> Fallible<&'a Section> {
    config.snapshots.get(name).ok_or_else(|| Refusal::die(format!("snapshot '{name}' does not exist")))
}

/// `GET …/snapshot/{snapname}/config`
///
/// # Errors
/// When the guest or snapshot is not there.
pub fn show(call: &Call<'_>) -> Reply {
    let world = call.node.world();
    let config = world.guests.get(call.vmid()?)?;
    let mut out = json_section(&call.node.table, section(config, &call.need("snapname")?)?);
    out.remove("lxc");
    data(out)
}

/// `PUT …/snapshot/{snapname}/config`
///
/// # Errors
/// When the guest is locked or the snapshot is not there.
pub fn change(call: &Call<'_>) -> Reply {
    let (vmid, name) = (call.vmid()?, call.need("snapname")?);
    let Some(description) = call.text("description") else { return NOTHING };
    call.node.world().guests.change(vmid, |config| {
        unlocked(config)?;
        section(config, &name)?;
        if let Some(held) = config.snapshots.get_mut(&name) {
            held.set("description", description);
        }
        Ok(())
    })?;
    NOTHING
}

/// `POST …/snapshot`
///
/// # Errors
/// For reserved names.
pub fn create(call: &Call<'_>) -> Reply {
    let (vmid, name) = (call.vmid()?, call.need("snapname")?);
    if matches!(name.as_str(), "current" | "vzdump") {
        die!("unable to use snapshot name '{name}' (reserved name)");
    }
    let comment = call.text("description");
    call.spawn("vzsnapshot", &vmid.to_string(), move |task| {
        take(task, vmid, &name, comment.as_deref(), TakeOver::Free)
    })
}

/// Whose lock a snapshot is made under.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TakeOver {
    Free,
    /// A backup's, which gets its lock back.
    Backup,
}

/// Takes a snapshot.
///
/// # Errors
/// The real error text; then nothing of the snapshot is left.
pub fn take(task: &Task, vmid: u32, name: &str, comment: Option<&str>, lock: TakeOver) -> Outcome {
    prepare(task, vmid, name, comment, lock)?;
    let still = if task.node.power.is_running(vmid) { freeze(task, vmid) } else { Ok(()) };
    let mut done = BTreeSet::new();
    let result = still.map_err(Halt::from).and_then(|()| volumes(task, vmid, name, &mut done));
    if matches!(result, Err(Halt::Killed)) {
        return result;
    }
    task.node.power.thaw(vmid);
    if let Err(Halt::Failed(refusal)) = result {
        task.log("snapshot create failed: starting cleanup");
        undo(task, vmid, name, &done)?;
        return Err(refusal.into());
    }
    let again = matches!(lock, TakeOver::Backup).then_some("backup");
    task.node.world().guests.change(vmid, |config| {
        match again {
            Some(word) => config.main.set("lock", word),
            None => drop(config.main.unset("lock")),
        }
        config.main.set("parent", name);
        if let Some(held) = config.snapshots.get_mut(name) {
            held.unset("snapstate");
        }
        Ok(())
    })?;
    Ok(())
}

/// Freezes a guest.
///
/// # Errors
/// When the runtime cannot.
pub fn freeze(task: &Task, vmid: u32) -> Fallible<()> {
    task.node.power.freeze(vmid).map_err(|error| Refusal::die(error.to_string()))
}

fn prepare(task: &Task, vmid: u32, name: &str, comment: Option<&str>, lock: TakeOver) -> Fallible<()> {
    task.node.faults.lock_config(vmid)?;
    let mut world = task.node.world();
    let mut config = world.guests.get(vmid)?.clone();
    if config.main.flag("template") {
        die!("you can't take a snapshot if it's a template");
    }
    if lock == TakeOver::Free {
        unlocked(&config)?;
    }
    if config.snapshots.contains_key(name) {
        die!("snapshot name '{name}' already used");
    }
    if !can_snapshot(&task.node.table, &world, &config.main, name == "vzdump") {
        die!("snapshot feature is not available");
    }
    let mut held = copied(&config.main);
    held.set("snapstate", "prepare");
    held.set("snaptime", task.node.clock.now_s().to_string());
    if let Some(comment) = comment.filter(|comment| !comment.is_empty()) {
        held.set("description", comment);
    }
    config.snapshots.insert(name.to_owned(), held);
    config.main.set("lock", "snapshot");
    world.guests.put(vmid, config)
}

/// The part of a configuration that is copied into a snapshot, and back.
fn copied(from: &Section) -> Section {
    let mut to = from.clone();
    to.values.retain(|key, _| {
        !matches!(key.as_str(), "description" | "lock" | "snapstate" | "snaptime" | "digest")
            && numbered(key, "unused").is_none()
    });
    to
}

fn chosen(table: &crate::schema::table::Table, section: &Section, name: &str) -> Vec<Mount> {
    mounts(table, section)
        .into_iter()
        .filter(|mount| mount.origin() == Origin::Volume && (name != "vzdump" || mount.in_backup()))
        .collect()
}

fn volumes(task: &Task, vmid: u32, name: &str, done: &mut BTreeSet<String>) -> Outcome {
    task.pace("snapshotting")?;
    let section = task.node.world().guests.get(vmid)?.main.clone();
    for mount in chosen(&task.node.table, &section, name) {
        task.node.world().store().snapshot(mount.volume(), name)?;
        done.insert(mount.key.clone());
    }
    task.pace("snapshotted")
}

fn undo(task: &Task, vmid: u32, name: &str, done: &BTreeSet<String>) -> Fallible<()> {
    let mut world = task.node.world();
    let config = world.guests.get(vmid)?.clone();
    for mount in chosen(&task.node.table, &config.main, name).iter().filter(|mount| done.contains(&mount.key))
    {
        world.store().drop_snapshot(mount.volume(), name)?;
    }
    world.guests.change(vmid, |config| {
        config.snapshots.remove(name);
        config.main.unset("lock");
        Ok(())
    })
}

/// `DELETE …/snapshot/{snapname}`
///
/// # Errors
/// When the task cannot be started.
pub fn delete(call: &Call<'_>) -> Reply {
    let (vmid, name, force) = (call.vmid()?, call.need("snapname")?, call.flag("force"));
    call.spawn("vzdelsnapshot", &vmid.to_string(), move |task| {
        remove(task, vmid, &name, force, TakeOver::Free)
    })
}

/// Drops a snapshot.
///
/// # Errors
/// The real error text.
pub fn remove(task: &Task, vmid: u32, name: &str, force: bool, lock: TakeOver) -> Outcome {
    task.node.faults.lock_config(vmid)?;
    let held = {
        let mut world = task.node.world();
        let mut config = world.guests.get(vmid)?.clone();
        let held = section(&config, name)?.clone();
        if lock == TakeOver::Free {
            unlocked(&config)?;
        }
        if config.main.flag("template") {
            return Err(Refusal::die("you can't delete a snapshot if vm is a template").into());
        }
        config.main.set("lock", "snapshot-delete");
        if let Some(held) = config.snapshots.get_mut(name) {
            held.set("snapstate", "delete");
        }
        world.guests.put(vmid, config)?;
        held
    };
    task.pace("deleting")?;
    for mount in chosen(&task.node.table, &held, name) {
        let dropped = task.node.world().store().drop_snapshot(mount.volume(), name);
        match dropped {
            Err(refusal) if !force => return Err(refusal.into()),
            Err(refusal) => task.log(refusal.message),
            Ok(()) => {}
        }
    }
    let again = matches!(lock, TakeOver::Backup).then_some("backup");
    task.node.world().guests.change(vmid, |config| {
        let parent = held.get("parent").map(str::to_owned);
        let relink = |section: &mut Section| {
            if section.get("parent") == Some(name) {
                match &parent {
                    Some(parent) => section.set("parent", parent.as_str()),
                    None => drop(section.unset("parent")),
                }
            }
        };
        config.snapshots.remove(name);
        relink(&mut config.main);
        config.snapshots.values_mut().for_each(relink);
        match again {
            Some(word) => config.main.set("lock", word),
            None => drop(config.main.unset("lock")),
        }
        orphaned(task, config, &held);
        Ok(())
    })?;
    Ok(())
}

/// A volume that only the dropped snapshot named becomes unused.
fn orphaned(task: &Task, config: &mut GuestConfig, held: &Section) {
    for mount in mounts(&task.node.table, held).iter().filter(|mount| mount.origin() == Origin::Volume) {
        let attached =
            mounts(&task.node.table, &config.main).iter().any(|other| other.volume() == mount.volume());
        // A volume that is in use gets an `unusedN` entry too, which is removed when the configuration is written.
        if attached || !crate::guest::change::in_snapshots(&task.node, config, mount.volume()) {
            GuestConfig::add_unused(&mut config.main, mount.volume());
        }
    }
}

/// `POST …/snapshot/{snapname}/rollback`
///
/// # Errors
/// When the task cannot be started.
pub fn rollback(call: &Call<'_>) -> Reply {
    let (vmid, name, start) = (call.vmid()?, call.need("snapname")?, call.flag("start"));
    call.spawn("vzrollback", &vmid.to_string(), move |task| {
        roll_back(task, vmid, &name)?;
        if start {
            super::power::start_task(&task.node, &task.upid.owner, vmid, false)?;
        }
        Ok(())
    })
}

fn roll_back(task: &Task, vmid: u32, name: &str) -> Outcome {
    let held = {
        let world = task.node.world();
        let config = world.guests.get(vmid)?;
        if config.main.flag("template") {
            return Err(Refusal::die("you can't rollback if vm is a template").into());
        }
        let held = section(config, name)?.clone();
        if let Some(state) = held.get("snapstate") {
            return Err(Refusal::die(format!(
                "unable to rollback to incomplete snapshot (snapstate = {state})"
            ))
            .into());
        }
        unlocked(config)?;
        held
    };
    if task.node.power.is_running(vmid) {
        super::power::halt(task, vmid)?;
    }
    task.node.world().guests.change(vmid, |config| {
        config.main.set("lock", "rollback");
        Ok(())
    })?;
    task.pace("rolling back")?;
    for mount in chosen(&task.node.table, &held, name) {
        task.node.world().store().rollback(mount.volume(), name)?;
    }
    task.node.world().guests.change(vmid, |config| {
        let lost: Vec<String> = mounts(&task.node.table, &config.main)
            .iter()
            .filter(|mount| {
                mount.origin() == Origin::Volume
                    && !mounts(&task.node.table, &held).iter().any(|other| other.volume() == mount.volume())
            })
            .map(|mount| mount.volume().to_owned())
            .collect();
        let mut main = copied(&held);
        // Description and the list of unused volumes are those of now.
        let kept = config
            .main
            .values
            .iter()
            .filter(|(key, _)| key.as_str() == "description" || numbered(key, "unused").is_some());
        main.values.extend(kept.map(|(key, value)| (key.clone(), value.clone())));
        main.set("parent", name);
        for volid in lost {
            GuestConfig::add_unused(&mut main, &volid);
        }
        config.main = main;
        config.pending.clear();
        config.pending_delete.clear();
        Ok(())
    })?;
    Ok(())
}
