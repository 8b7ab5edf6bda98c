//! Creating a container: the synchronous part, common to templates and restores.
//!
//! In: parameters. Out: a locked, nearly empty configuration and a running task, or a refusal. Which of several faults is named follows the
//! real order: privileged, taken, running, protected, pool, allocate, options, archive, storages.
use std::collections::BTreeMap;

use super::restore::{Plan, run};
use crate::call::{Call, Reply};
use crate::die;
use crate::fail::{Fallible, Refusal};
use crate::guest::change::{Change, Run, protected, unlocked};
use crate::guest::config::GuestConfig;
use crate::guest::options::{Mount, Origin, is_volume_key, numbered};
use crate::guest::rights::{Rights, volume_access};
use crate::node::World;

/// Parameters that are not options of the guest.
const NOT_OPTIONS: &[&str] = &[
    "node",
    "vmid",
    "ostemplate",
    "password",
    "storage",
    "force",
    "restore",
    "unique",
    "pool",
    "ignore-unpack-errors",
    "ssh-public-keys",
    "bwlimit",
    "start",
    "ha-managed",
    "unprivileged",
];

/// `POST /nodes/{node}/lxc`
///
/// # Errors
/// In the real order.
pub fn create(call: &Call<'_>) -> Reply {
    let vmid = call.vmid()?;
    let restore = call.flag("restore");
    let mut world = call.node.world();
    let exists = world.guests.has(vmid);
    let overwrite = exists && restore && call.flag("force");
    let unprivileged =
        if restore { call.maybe("unprivileged") } else { Some(call.maybe("unprivileged").unwrap_or(true)) };
    {
        let judge = world.judge(&call.who);
        if !restore && unprivileged == Some(false) {
            judge.need("/", &["Sys.Modify"])?;
        }
        if call.flag("ha-managed") {
            judge.need("/", &["Sys.Console"])?;
        }
    }
    target(call, &world, vmid, overwrite)?;
    let pool = call.text("pool");
    allocation(call, &world, vmid, overwrite, pool.as_deref(), unprivileged)?;
    let options = super::config::given(call, NOT_OPTIONS);
    let storage = call.text("storage").unwrap_or_else(|| "local".to_owned());
    let rights = Rights {
        world: &world,
        table: &call.node.table,
        who: &call.who,
        vmid,
        pool: pool.as_deref(),
        old: None,
        unprivileged: unprivileged == Some(true),
    };
    rights.set(&options)?;
    let archive = call.need("ostemplate")?;
    if archive == "-" {
        die!("pipe requires cli environment");
    }
    let content = if restore { "backup" } else { "vztmpl" };
    volume_access(&world, &world.judge(&call.who), Some(vmid), &archive, Some(content))?;
    let (disks, plain) = split(options, &storage);
    if !disks.is_empty() && !disks.contains_key("rootfs") {
        die!("mount points configured, but 'rootfs' not set - aborting");
    }
    storages(call, &world, &disks, &storage)?;
    let mut config = GuestConfig::default();
    let change = Change { node: call.node, store: world.store(), vmid, running: Run::Down };
    let faults = change.apply(&mut config, &plain, &[], &[])?;
    if !faults.is_empty() {
        return Err(Refusal::params(faults));
    }
    if unprivileged == Some(true) {
        config.main.set("unprivileged", "1");
    }
    let verb = if restore { "restore" } else { "create" };
    lock(&mut world, vmid, call.flag("force"))
        .map_err(|refusal| Refusal::die(format!("unable to {verb} CT {vmid} - {}", refusal.in_task())))?;
    drop(world);
    let plan = Plan {
        vmid,
        who: call.who.clone(),
        archive,
        restore,
        exists,
        unprivileged,
        unique: call.flag("unique"),
        start: call.flag("start"),
        pool,
        storage,
        disks,
        config,
        given: call.params.keys().cloned().collect(),
    };
    let kind = if restore { "vzrestore" } else { "vzcreate" };
    call.spawn(kind, &vmid.to_string(), move |task| run(task, plan))
}

/// Checks that the VMID is free, or that the existing guest may be overwritten.
fn target(call: &Call<'_>, world: &World, vmid: u32, overwrite: bool) -> Fallible<()> {
    if overwrite {
        if call.node.power.is_running(vmid) {
            die!("can't overwrite running container");
        }
        protected(&world.guests.get(vmid)?.main, &format!("unable to restore CT {vmid}"))?;
    } else if world.guests.has(vmid) {
        die!("CT {vmid} already exists on node '{}'", call.node.name);
    }
    if let Some(keys) = call.text("ssh-public-keys") {
        let fine = |line: &str| {
            line.trim().is_empty()
                || line.starts_with('#')
                || ["ssh-", "ecdsa-", "sk-"].iter().any(|kind| line.contains(kind))
                    && line.split_whitespace().count() >= 2
        };
        if !keys.lines().all(fine) {
            die!("SSH public key validation error");
        }
    }
    Ok(())
}

fn allocation(
    call: &Call<'_>,
    world: &World,
    vmid: u32,
    overwrite: bool,
    pool: Option<&str>,
    unprivileged: Option<bool>,
) -> Fallible<()> {
    if let Some(pool) = pool.filter(|pool| !world.access.pools.contains_key(*pool)) {
        return Err(Refusal::denied(&format!("pool '{pool}' does not exist")));
    }
    let judge = world.judge(&call.who);
    let own = format!("/vms/{vmid}");
    if judge.has(&own, &["VM.Allocate"])
        || pool.is_some_and(|pool| judge.has(&format!("/pool/{pool}"), &["VM.Allocate"]))
    {
        return Ok(());
    }
    if overwrite && judge.has(&own, &["VM.Backup"]) {
        if world.guests.get(vmid)?.main.flag("unprivileged") && unprivileged == Some(false) {
            judge.need("/", &["Sys.Modify"])?;
        }
        return Ok(());
    }
    Err(Refusal::denied_bare())
}

/// Separates disks from plain options. A bare number uses the default storage; `unusedN` is dropped.
fn split(
    options: BTreeMap<String, String>,
    storage: &str,
) -> (BTreeMap<String, String>, BTreeMap<String, String>) {
    let (mut disks, mut plain) = (BTreeMap::new(), BTreeMap::new());
    for (option, value) in options {
        if is_volume_key(&option) {
            let bare = value.split('.').count() <= 2
                && !value.is_empty()
                && value.bytes().all(|b| b.is_ascii_digit() || b == b'.');
            disks.insert(option, if bare { format!("{storage}:{value}") } else { value });
        } else if numbered(&option, "unused").is_none() {
            plain.insert(option, value);
        }
    }
    (disks, plain)
}

fn storages(call: &Call<'_>, world: &World, disks: &BTreeMap<String, String>, default: &str) -> Fallible<()> {
    for (key, value) in disks {
        let mount = Mount::parse_or_die(&call.node.table, key, value)?;
        if mount.origin() != Origin::Volume {
            if !call.who.is_root() {
                die!("Only root can pass arbitrary filesystem paths.");
            }
            continue;
        }
        let (storage, _) = mount
            .volume()
            .split_once(':')
            .ok_or_else(|| Refusal::die(format!("unable to parse volume ID '{}'", mount.volume())))?;
        usable(call, world, storage)?;
    }
    if disks.contains_key("rootfs") { Ok(()) } else { usable(call, world, default) }
}

/// May containers be put on this storage, and is it there?
///
/// # Errors
/// In the real order: there, enabled, of the right content, allowed, active.
pub fn usable(call: &Call<'_>, world: &World, storage: &str) -> Fallible<()> {
    if !world.storage.enabled(storage)?.holds("rootdir") {
        return Err(Refusal::param(
            "storage",
            format!("storage '{storage}' does not support container directories"),
        ));
    }
    world.judge(&call.who).need(&format!("/storage/{storage}"), &["Datastore.AllocateSpace"])?;
    world.store().activate(storage)
}

fn lock(world: &mut World, vmid: u32, allow_existing: bool) -> Fallible<()> {
    if world.guests.has(vmid) && !allow_existing {
        return Err(Refusal::die(format!("CT {vmid} already exists on node 'pve1'")));
    }
    let mut config = world.guests.get(vmid).cloned().unwrap_or_default();
    unlocked(&config)?;
    config.main.set("lock", "create");
    world.guests.put(vmid, config)
}
