//! Hand edits: changes by a person on the node, past the API.
//!
//! In: an [`Edit`]. Out: the same effect as on the real node, without a task and without a check of rights. Used by fault scripts, and by
//! the replay for changes that a recording shows to have been made by hand.
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::usage::Percent;
use crate::access::config::{Token, User};
use crate::fail::{Fallible, Refusal, host};
use crate::guest::config::GuestConfig;
use crate::node::{GoingDown, Node};

/// How often the tasks of a node that goes down are checked: far more often than any task needs to end.
const LOOKS_MAX: u32 = 5_000;

/// One hand edit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "edit", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Edit {
    /// Stop a guest at once.
    Stop { vmid: u32 },
    /// Start a guest.
    Start { vmid: u32 },
    /// Set an option in the configuration file.
    Set { vmid: u32, key: String, value: String },
    /// Remove an option (also `lock`) from the configuration file.
    Unset { vmid: u32, key: String },
    /// Put a whole configuration file in place; volumes that it names are made, empty.
    Place {
        vmid: u32,
        /// The file's text.
        config: String,
    },
    /// Destroy a guest with its volumes.
    Destroy { vmid: u32 },
    /// Remove a guest's configuration file alone: its disks, its pool and all rights over it stay.
    LoseConfig { vmid: u32 },
    /// Take a snapshot as a dead backup leaves it: complete, and owned by no task.
    Snapshot { vmid: u32, name: String },
    /// Remove a volume's files behind the configuration's back.
    RemoveVolume { volid: String },
    /// Take a storage away, as a failed mount does.
    StorageOffline { storage: String },
    /// Bring it back.
    StorageOnline { storage: String },
    /// Switch a storage off or on in its definition.
    StorageDisable { storage: String, disabled: bool },
    /// Report a storage as this full, or (without a number) as it really is. Over 100 it takes nothing new.
    StorageFill { storage: String, percent: Option<u64> },
    /// Report a running guest, or the node without a number, as using this much of what it may, or (without figures) what it really
    /// uses.
    Use { vmid: Option<u32>, percent: Option<Percent> },
    /// Take the cluster's quorum away, so that no configuration can be written, or give it back.
    Quorum {
        /// Is it there?
        held: bool,
    },
    /// Set the node's clock so many seconds ahead of the right time, or behind it.
    Clock { ahead_s: i64 },
    /// Attach a new, empty volume to a guest.
    Attach {
        vmid: u32,
        /// `mp5`
        key: String,
        /// Where the volume is made.
        storage: String,
        /// Where it is mounted.
        mount: String,
    },
    /// Destroy a guest and make another one under its number and in its pool, which has nothing else to do with it.
    Reuse {
        vmid: u32,
        /// The storage of the new guest's disk.
        storage: String,
    },
    /// The same, but the new guest has the old guest's tags, as a guest restored by hand does.
    Impostor {
        vmid: u32,
        /// The storage of the new guest's disk.
        storage: String,
    },
    /// Take a guest out of its pool, so that tokens with rights on the pool no longer see it.
    Unpool { vmid: u32 },
    /// Let a token expire at a time, 0 for never.
    TokenExpiry {
        /// The full id.
        id: String,
        expire: i64,
    },
    /// Reboot the node: guests go down, running tasks die, guests with `onboot` come up.
    Reboot,
    /// Reboot the node in good order: running tasks get a stop request first, and each ends in its own way.
    ShutDown,
    /// Lose a task from the index.
    ForgetTask { upid: String },
    /// Make a user and a token of theirs, with this secret.
    Token {
        /// The full id.
        id: String,
        secret: String,
        /// With rights of its own?
        privsep: bool,
    },
    /// Disable or expire a user, or undo that.
    User {
        id: String,
        /// May log in?
        enabled: bool,
        /// Unix seconds, 0 for never.
        expire: i64,
    },
}

/// Does it.
///
/// # Errors
/// When the thing is not there or files fail.
pub fn apply(node: &Arc<Node>, edit: &Edit) -> Fallible<()> {
    match edit {
        Edit::Stop { vmid } => stop(node, *vmid),
        Edit::Start { vmid } => crate::call::lxc::power::boot(node, *vmid),
        Edit::Set { vmid, key, value } => node.world().guests.change(*vmid, |config| {
            config.main.set(key, value.as_str());
            Ok(())
        }),
        Edit::Unset { vmid, key } => node.world().guests.change(*vmid, |config| {
            config.main.unset(key);
            Ok(())
        }),
        Edit::Place { vmid, config } => place(node, *vmid, config),
        Edit::Destroy { vmid } => destroy(node, *vmid),
        Edit::LoseConfig { vmid } => node.world().guests.remove(*vmid),
        Edit::Snapshot { vmid, name } => snapshot(node, *vmid, name),
        Edit::RemoveVolume { volid } => {
            let world = node.world();
            let store = world.store();
            let place = store.place(&store.locate(volid)?);
            let removed =
                if place.is_dir() { std::fs::remove_dir_all(place) } else { std::fs::remove_file(place) };
            removed.map_err(|error| host("removal of volume", &error))
        }
        Edit::StorageOffline { storage } => mark(node, storage, true),
        Edit::StorageOnline { storage } => mark(node, storage, false),
        Edit::StorageDisable { storage, disabled } => disable(node, storage, *disabled),
        Edit::StorageFill { storage, percent } => super::node::fill(node, storage, *percent),
        Edit::Use { vmid, percent } => super::usage::set(node, *vmid, *percent),
        Edit::Quorum { held } => {
            super::node::quorum(node, *held);
            Ok(())
        }
        Edit::Clock { ahead_s } => {
            node.settable.set_ahead_s(*ahead_s);
            Ok(())
        }
        Edit::Attach { vmid, key, storage, mount } => super::node::attach(node, *vmid, (key, storage, mount)),
        Edit::Reuse { vmid, storage } => {
            let pools = super::node::pools(node, *vmid);
            destroy(node, *vmid)?;
            place(node, *vmid, &super::node::newcomer(*vmid, storage))?;
            super::node::join(node, *vmid, &pools)
        }
        Edit::Impostor { vmid, storage } => {
            let tags = node.world().guests.get(*vmid)?.main.get("tags").unwrap_or_default().to_owned();
            let pools = super::node::pools(node, *vmid);
            destroy(node, *vmid)?;
            place(node, *vmid, &format!("{}tags: {tags}\n", super::node::newcomer(*vmid, storage)))?;
            super::node::join(node, *vmid, &pools)
        }
        Edit::Unpool { vmid } => super::node::unpool(node, *vmid),
        Edit::TokenExpiry { id, expire } => super::node::expire(node, id, *expire),
        Edit::Reboot => reboot(node),
        Edit::ShutDown => shut_down(node),
        Edit::ForgetTask { upid } => {
            let upid = crate::task::upid::Upid::parse(upid)
                .ok_or_else(|| Refusal::die("unable to parse worker upid"))?;
            node.tasks.forget(&upid).map_err(|error| host("task index", &error))
        }
        Edit::Token { id, secret, privsep } => token(node, id, secret, *privsep),
        Edit::User { id, enabled, expire } => {
            let mut world = node.world();
            let user = world
                .access
                .users
                .get_mut(id)
                .ok_or_else(|| Refusal::die(format!("no such user ('{id}')")))?;
            user.enabled = *enabled;
            user.expire = *expire;
            world.save_access()
        }
    }
}

fn stop(node: &Node, vmid: u32) -> Fallible<()> {
    node.power.stop(vmid).map_err(|error| host("stop", &error))?;
    // A guest whose configuration is gone has no pending changes.
    if node.world().guests.has(vmid) { crate::call::lxc::power::settle(node, vmid) } else { Ok(()) }
}

fn place(node: &Arc<Node>, vmid: u32, text: &str) -> Fallible<()> {
    let config = GuestConfig::parse(text);
    let mut world = node.world();
    for volid in crate::call::lxc::destroy::volumes_of(&node.table, &config) {
        if !world.store().exists(&volid) {
            let bytes = text
                .lines()
                .find(|line| line.contains(&volid))
                .and_then(|line| line.split("size=").nth(1))
                .and_then(|rest| rest.split(',').next());
            let bytes = bytes.and_then(crate::schema::format::parse_size).unwrap_or(1 << 30);
            crate::state::seed::make_disk(&world.store(), &volid, bytes)
                .map_err(|error| Refusal::die(error.to_string()))?;
        }
    }
    world.guests.put(vmid, config)
}

fn snapshot(node: &Arc<Node>, vmid: u32, name: &str) -> Fallible<()> {
    let now_s = node.clock.now_s();
    let mut world = node.world();
    let mut config = world.guests.get(vmid)?.clone();
    let volumes = crate::guest::options::mounts(&node.table, &config.main);
    for mount in volumes.iter().filter(|mount| mount.in_backup()) {
        world.store().snapshot(mount.volume(), name)?;
    }
    let mut section = config.main.clone();
    section.unset("lock");
    section.set("snaptime", now_s.to_string());
    if name == "vzdump" {
        section.set("description", "vzdump backup snapshot\n");
    }
    config.snapshots.insert(name.to_owned(), section);
    config.main.set("parent", name);
    world.guests.put(vmid, config)
}

fn destroy(node: &Arc<Node>, vmid: u32) -> Fallible<()> {
    if node.power.is_running(vmid) {
        node.power.stop(vmid).map_err(|error| host("stop", &error))?;
    }
    let mut world = node.world();
    let config = world.guests.get(vmid)?.clone();
    for volid in crate::call::lxc::destroy::volumes_of(&node.table, &config) {
        // By hand a volume that cannot be freed is left where it is.
        let _ = world.store().free(&volid);
    }
    world.access.forget_guest(vmid);
    world.save_access()?;
    world.guests.remove(vmid)
}

fn mark(node: &Node, storage: &str, offline: bool) -> Fallible<()> {
    node.world().storage.get(storage)?;
    let (broken, mounted) =
        (node.paths.run().join("offline").join(storage), node.paths.run().join("mounted").join(storage));
    let remove = |path: &std::path::Path| match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    };
    let done = if offline {
        std::fs::write(&broken, "").and_then(|()| remove(&mounted))
    } else {
        remove(&broken).and_then(|()| std::fs::write(&mounted, ""))
    };
    done.map_err(|error| host("storage mark", &error))
}

fn disable(node: &Node, storage: &str, disabled: bool) -> Fallible<()> {
    let mut world = node.world();
    world.storage.get(storage)?;
    for (_, held) in world.storage.all.iter_mut().filter(|(name, _)| name == storage) {
        if disabled {
            drop(held.props.insert("disable".to_owned(), "1".to_owned()))
        } else {
            drop(held.props.remove("disable"))
        }
    }
    world.save_storage()
}

fn reboot(node: &Arc<Node>) -> Fallible<()> {
    node.tasks.die();
    node.power.all().into_iter().try_for_each(|vmid| stop(node, vmid))?;
    left_over(node)?;
    let wanted: Vec<u32> = node
        .world()
        .guests
        .all()
        .iter()
        .filter(|(_, config)| config.main.flag("onboot") && config.lock().is_none())
        .map(|(vmid, _)| *vmid)
        .collect();
    for vmid in wanted {
        if let Err(refusal) = crate::call::lxc::power::boot(node, vmid) {
            tracing::warn!(vmid, %refusal, "guest did not start at boot");
        }
    }
    Ok(())
}

/// Restores and backups get the signal and clean up; every other task just ends. The node waits for the tasks before it
/// goes down.
fn shut_down(node: &Arc<Node>) -> Fallible<()> {
    node.go_down(GoingDown::Yes);
    let (running, _) = node.tasks.all();
    for upid in running {
        let Some(goal) = node.tasks.running(&upid.to_string()) else { continue };
        if matches!(upid.kind.as_str(), "vzdump" | "vzrestore" | "vzcreate") {
            goal.stop()
        } else {
            goal.kill()
        }
    }
    for _ in 0..LOOKS_MAX {
        if node.tasks.all().0.is_empty() {
            break;
        }
        node.clock.pause(std::time::Duration::from_millis(5));
    }
    let done = reboot(node);
    node.go_down(GoingDown::No);
    done
}

/// Locks of backups that died with the node are taken off when it comes up; all others stay.
fn left_over(node: &Node) -> Fallible<()> {
    let mut world = node.world();
    let locked = world.guests.all().iter().filter(|(_, config)| config.lock() == Some("backup"));
    let locked: Vec<u32> = locked.map(|(vmid, _)| *vmid).collect();
    locked.into_iter().try_for_each(|vmid| {
        world.guests.change(vmid, |config| {
            config.main.unset("lock");
            Ok(())
        })
    })
}

fn token(node: &Node, id: &str, secret: &str, privsep: bool) -> Fallible<()> {
    let (user, short) = id
        .rsplit_once('!')
        .ok_or_else(|| Refusal::die(format!("value '{id}' does not look like a valid token ID")))?;
    let mut world = node.world();
    let held = world
        .access
        .users
        .entry(user.to_owned())
        .or_insert_with(|| User { enabled: true, ..User::default() });
    held.tokens.entry(short.to_owned()).or_insert(Token { expire: 0, privsep, comment: String::new() });
    world.secrets.tokens.insert(id.to_owned(), secret.to_owned());
    world.save_access()
}
