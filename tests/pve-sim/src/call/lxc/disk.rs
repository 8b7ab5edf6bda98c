//! Volumes of a container: growing, moving, giving to another container.
use std::path::Path;

use super::mkfs;
use crate::call::{Call, NOTHING, Reply};
use crate::die;
use crate::fail::{Fallible, Refusal};
use crate::guest::change::{Change, Run, in_snapshots, low_level, unlocked};
use crate::guest::config::GuestConfig;
use crate::guest::options::{Mount, Origin, numbered};
use crate::node::World;
use crate::schema::format::{format_size, parse_size};
use crate::storage::copy::copy_tree;
use crate::task::worker::Outcome;
use crate::task::{Halt, Task};

/// How a volume without a size of its own is named: a folder, which no image tool knows.
const SUBVOLUME: &str = ".subvol";
/// The most bytes that a file of the node's file system can have.
const FILE_BYTES_MAX: u64 = 16 << 40;

/// `PUT …/resize`
///
/// # Errors
/// In the real order: rights, digest, lock, disk, storage, shrinking.
pub fn resize(call: &Call<'_>) -> Reply {
    let vmid = call.vmid()?;
    let (disk, size) = (call.need("disk")?, call.need("size")?);
    let (relative, wanted) = size.strip_prefix('+').map_or((false, size.as_str()), |rest| (true, rest));
    let wanted =
        parse_size(wanted).ok_or_else(|| Refusal::param("size", "value does not match the regex pattern"))?;
    let world = call.node.world();
    let config = world.guests.get(vmid)?;
    unlocked(config)?;
    let judge = world.judge(&call.who);
    if !call.who.is_root() {
        judge.need(&format!("/vms/{vmid}"), &["VM.Config.Options"])?;
    }
    super::config::same_digest(call.text("digest"), &config.digest())?;
    let mount = Mount::parse_or_die(&call.node.table, &disk, config.main.get(&disk).unwrap_or_default())?;
    if mount.origin() != Origin::Volume {
        die!("can't resize mount point owned by another container ({vmid})");
    }
    let volid = mount.volume().to_owned();
    let (storage, name) = volid.split_once(':').unwrap_or_default();
    judge.need(&format!("/storage/{storage}"), &["Datastore.AllocateSpace"])?;
    world.store().activate(storage)?;
    let before = world.store().size(&volid)?;
    let after = if relative { before + wanted } else { wanted };
    if after < before {
        die!("unable to shrink disk size");
    }
    if after == before {
        die!("disk is already at specified size");
    }
    let is_image = !name.ends_with(SUBVOLUME);
    drop(world);
    if !is_image {
        return call.spawn("resize", &vmid.to_string(), |_| {
            Err(Refusal::die("can't resize this image format").into())
        });
    }
    call.spawn("resize", &vmid.to_string(), move |task| grow(task, vmid, &disk, before, after))
}

fn grow(task: &Task, vmid: u32, disk: &str, before: u64, after: u64) -> Outcome {
    let running = task.node.power.is_running(vmid);
    let shown = {
        let mut world = task.node.world();
        let mut config = world.guests.get(vmid)?.clone();
        unlocked(&config)?;
        let mut mount =
            Mount::parse_or_die(&task.node.table, disk, config.main.get(disk).unwrap_or_default())?;
        let volid = mount.volume().to_owned();
        if after > FILE_BYTES_MAX {
            let store = world.store();
            let shown = store.shown_path(&store.locate(&volid)?);
            task.log("qemu-img: Could not resize file: File too large");
            return Err(Refusal::die(format!(
                "command '/usr/bin/qemu-img resize '--preallocation=off' -f raw {shown} {after}' failed: exit code 1"
            ))
            .into());
        }
        if !task.node.faults.grows_nothing(vmid) {
            world.store().resize(&volid, after)?;
            mount.props.insert("size".to_owned(), format_size(after));
            config.main.set(disk, mount.print(&task.node.table));
            world.guests.put(vmid, config)?;
        }
        let store = world.store();
        store.shown_path(&store.locate(&volid)?)
    };
    task.log("Image resized.");
    task.pace("resized")?;
    let (blocks, old_blocks) = (after / 4096, before / 4096);
    if running {
        task.log("resize2fs 1.47.2 (1-Jan-2025)");
        task.log("Filesystem at /dev/loop0 is mounted on /tmp; on-line resizing required");
        task.log("old_desc_blocks = 1, new_desc_blocks = 1");
        task.log(format!("The filesystem on /dev/loop0 is now {blocks} (4k) blocks long."));
    } else {
        task.log("e2fsck 1.47.2 (1-Jan-2025)");
        let passes = [
            "Checking inodes, blocks, and sizes",
            "Checking directory structure",
            "Checking directory connectivity",
            "Checking reference counts",
            "Checking group summary information",
        ];
        passes.iter().enumerate().for_each(|(n, what)| task.log(format!("Pass {}: {what}", n + 1)));
        task.log(format!(
            "{shown}: 68/{} files (0.0% non-contiguous), {}/{old_blocks} blocks",
            before / 16_384,
            old_blocks / 20
        ));
        task.log("resize2fs 1.47.2 (1-Jan-2025)");
        task.log(format!("Resizing the filesystem on {shown} to {blocks} (4k) blocks."));
        task.log(format!("The filesystem on {shown} is now {blocks} (4k) blocks long."));
    }
    task.log("");
    Ok(())
}

/// `POST …/template`
///
/// # Errors
/// When it is locked, running, has snapshots or is one already.
pub fn template(call: &Call<'_>) -> Reply {
    let vmid = call.vmid()?;
    let world = call.node.world();
    let config = world.guests.get(vmid)?.clone();
    unlocked(&config)?;
    if !config.snapshots.is_empty() {
        die!("unable to create template, because CT contains snapshots");
    }
    if config.main.flag("template") {
        die!("you can't convert a template to a template");
    }
    if call.node.power.is_running(vmid) {
        die!("you can't convert a CT to template if the CT is running");
    }
    drop(world);
    // The answer does not wait for the worker, and does not name it.
    call.spawn("vztemplate", &vmid.to_string(), move |task| {
        task.pace("converting")?;
        task.node.world().guests.change(vmid, |config| {
            unlocked(config)?;
            config.main.set("template", "1");
            Ok(())
        })?;
        Ok(())
    })?;
    NOTHING
}

/// `POST …/move_volume`
///
/// # Errors
/// In the real order.
pub fn move_volume(call: &Call<'_>) -> Reply {
    let vmid = call.vmid()?;
    let key = call.need("volume")?;
    let both = |msg: &str| {
        Refusal::params(
            [("storage".to_owned(), msg.to_owned()), ("target-vmid".to_owned(), msg.to_owned())].into(),
        )
    };
    match (call.text("storage"), call.number("target-vmid").and_then(|id| u32::try_from(id).ok())) {
        (Some(_), Some(_)) => Err(Refusal::die("either set storage or target-vmid, but not both")),
        (None, None) => Err(both("both 'storage' and 'target-vmid' missing, either needs to be set")),
        (Some(storage), None) => {
            let bwlimit_kib_s = call.number("bwlimit").unwrap_or_default();
            to_storage(call, vmid, key, ToStorage { storage, delete: call.flag("delete"), bwlimit_kib_s })
        }
        (None, Some(target)) => to_guest(call, vmid, key, target),
    }
}

/// The goal of moving a volume to another storage.
#[derive(Debug)]
struct ToStorage {
    storage: String,
    delete: bool,
    /// The limit as it is passed to the copying program.
    bwlimit_kib_s: i64,
}

fn to_storage(call: &Call<'_>, vmid: u32, key: String, goal: ToStorage) -> Reply {
    {
        let mut world = call.node.world();
        world.judge(&call.who).need(&format!("/storage/{}", goal.storage), &["Datastore.AllocateSpace"])?;
        let mut config = world.guests.get(vmid)?.clone();
        unlocked(&config)?;
        if call.node.power.is_running(vmid) {
            die!("cannot move volumes of a running container");
        }
        if numbered(&key, "unused").is_some() {
            die!("cannot move volume '{key}', only configured volumes can be moved to another storage");
        }
        let mount = Mount::parse_or_die(&call.node.table, &key, config.main.get(&key).unwrap_or_default())?;
        if goal.delete && in_snapshots(call.node, &config, mount.volume()) {
            die!("you can't move a volume with snapshots and delete the source");
        }
        super::config::same_digest(call.text("digest"), &config.digest())?;
        config.main.set("lock", "disk");
        world.guests.put(vmid, config)?;
    }
    call.spawn("move_volume", &vmid.to_string(), move |task| {
        let result = copy(task, vmid, &key, &goal);
        if !matches!(result, Err(Halt::Killed)) {
            task.node.world().guests.change(vmid, |config| {
                config.main.unset("lock");
                Ok(())
            })?;
        }
        result
    })
}

fn copy(task: &Task, vmid: u32, key: &str, goal: &ToStorage) -> Outcome {
    let (from, to, mut mount, old, new) = {
        let world = task.node.world();
        let store = world.store();
        let mount = Mount::parse_or_die(
            &task.node.table,
            key,
            world.guests.get(vmid)?.main.get(key).unwrap_or_default(),
        )?;
        let old = mount.volume().to_owned();
        let from = store.tree(&old)?;
        let bytes = store.size(&old)?;
        let storage = &goal.storage;
        if !world.storage.get(storage)?.holds("rootdir") {
            return Err(Refusal::die(format!(
                "content type 'rootdir' is not available or configured on storage '{storage}'"
            ))
            .into());
        }
        let new = store.allocate_sparse(storage, vmid, bytes)?;
        let at = store.locate(&new)?;
        if at.definition.kind == "dir" && bytes > 0 {
            task.log(format!(
                "Formatting '{}', fmt=raw size={bytes} preallocation=off",
                store.shown_path(&at)
            ));
        }
        if bytes > 0 {
            mkfs::lines(bytes, &crate::call::token::fresh_uuid(&task.node))
                .into_iter()
                .for_each(|line| task.log(line));
        }
        (from, store.tree(&new)?, mount, old, new)
    };
    let copied = fill(task, vmid, goal, (&from, &to));
    if let Err(Halt::Failed(_)) = &copied {
        // The partial copy is removed; only a killed worker leaves it behind.
        let _ = task.node.world().store().free(&new)?;
    }
    copied?;
    let mut world = task.node.world();
    mount.props.insert("volume".to_owned(), new);
    let printed = mount.print(&task.node.table);
    world.guests.change(vmid, |config| {
        config.main.set(key, printed);
        if !goal.delete {
            GuestConfig::add_unused(&mut config.main, &old);
        }
        Ok(())
    })?;
    if goal.delete {
        world.store().free(&old)?;
    }
    Ok(())
}

/// Copies the files. That there is no room shows only here.
fn fill(task: &Task, vmid: u32, goal: &ToStorage, (from, to): (&Path, &Path)) -> Outcome {
    if task.node.world().store().filled(&goal.storage).is_some_and(|percent| percent >= 100) {
        let place = format!("/var/lib/lxc/{vmid}/.copy-volume");
        let file = std::fs::read_dir(from).ok().and_then(|mut entries| entries.next()?.ok());
        let file = file.map(|entry| entry.file_name().to_string_lossy().into_owned()).unwrap_or_default();
        task.log(format!(
            "rsync: [receiver] write failed on \"{place}-1/{file}\": No space left on device (28)"
        ));
        task.log("rsync error: error in file IO (code 11) at receiver.c(657) [receiver=3.5.0]");
        task.log("rsync: [sender] write error: Broken pipe (32)");
        let bwlimit = goal.bwlimit_kib_s;
        return Err(Refusal::die(format!(
            "command 'rsync --stats -X -A --numeric-ids -aH --whole-file --sparse --one-file-system '--bwlimit={bwlimit}' {place}-2/ {place}-1' failed: exit code 11"
        ))
        .into());
    }
    std::fs::remove_dir(to).map_err(|error| crate::fail::host("copy of volume", &error))?;
    copy_tree(from, to)?;
    task.pace("copied")
}

fn to_guest(call: &Call<'_>, vmid: u32, key: String, target: u32) -> Reply {
    let target_key = call.text("target-volume").unwrap_or_else(|| key.clone());
    let goal = Reassign {
        vmid,
        key,
        target,
        target_key,
        digest: call.text("digest"),
        target_digest: call.text("target-digest"),
    };
    {
        let world = call.node.world();
        let judge = world.judge(&call.who);
        if !call.who.is_root() {
            judge.need(&format!("/vms/{target}"), &["VM.Config.Disk"])?;
        }
        let mount = goal.check(call.node, &world)?;
        let (storage, _) = mount.volume().split_once(':').unwrap_or_default();
        judge.need(&format!("/storage/{storage}"), &["Datastore.AllocateSpace"])?;
    }
    let id = format!("{}-{}>{}-{}", goal.vmid, goal.key, goal.target, goal.target_key);
    call.spawn("move_volume", &id, move |task| goal.run(task))
}

/// A volume that changes its owner.
#[derive(Debug)]
struct Reassign {
    vmid: u32,
    key: String,
    target: u32,
    target_key: String,
    digest: Option<String>,
    target_digest: Option<String>,
}

impl Reassign {
    fn check(&self, node: &crate::node::Node, world: &World) -> Fallible<Mount> {
        let Self { vmid, key, target, target_key, .. } = self;
        if key == "rootfs" || target_key == "rootfs" {
            die!("Cannot move to/from 'rootfs'");
        }
        let unused = |key: &str| numbered(key, "unused").is_some();
        if unused(key) && !unused(target_key) {
            die!("Moving an unused volume to a used one is not possible");
        }
        for id in [vmid, target] {
            if !world.guests.has(*id) {
                die!("could not find CT {id}");
            }
        }
        let (source, other) = (world.guests.get(*vmid)?, world.guests.get(*target)?);
        unlocked(source)?;
        unlocked(other)?;
        if source.main.flag("template") || other.main.flag("template") {
            die!("Can't move volumes from or to template CT");
        }
        for (id, seen, now) in [(vmid, &self.digest, source), (target, &self.target_digest, other)] {
            super::config::same_digest(seen.clone(), &now.digest())
                .map_err(|refusal| Refusal::die(format!("Container {id}: {}", refusal.message)))?;
        }
        let Some(value) = source.main.get(key) else {
            die!("volume '{key}' for container '{vmid}' does not exist")
        };
        if other.main.get(target_key).is_some() {
            die!("Target volume key '{target_key}' is already in use for container '{target}'");
        }
        let mount = if unused(key) {
            Mount { key: key.clone(), props: [("volume".to_owned(), value.to_owned())].into() }
        } else {
            Mount::parse_or_die(&node.table, key, value)?
        };
        if in_snapshots(node, source, mount.volume()) {
            die!("Cannot move volume used by a snapshot to another container");
        }
        if mount.origin() != Origin::Volume {
            die!("Cannot move a bindmount or device mount to another container");
        }
        if node.power.is_running(*vmid) && !unused(key) {
            die!("Cannot move in-use volume while the source CT is running - detach or shutdown first");
        }
        if mount.volume().ends_with(SUBVOLUME) {
            die!("Storage does not support moving of this disk to another container");
        }
        Ok(mount)
    }

    fn run(&self, task: &Task) -> Outcome {
        let Self { vmid, key, target, target_key, .. } = self;
        let mut world = task.node.world();
        let mut mount = self.check(&task.node, &world)?;
        task.log(format!("moving volume '{key}' from container '{vmid}' to '{target}'"));
        let new = world.store().rename(mount.volume(), *target)?;
        mount.props.insert("volume".to_owned(), new.clone());
        task.log(format!("removing volume '{key}' from container '{vmid}' config"));
        world.guests.change(*vmid, |config| {
            config.main.unset(key);
            Ok(())
        })?;
        let mut config = world.guests.get(*target)?.clone();
        if numbered(target_key, "unused").is_some() {
            config.main.set(target_key, new);
        } else {
            let running = if task.node.power.is_running(*target) { Run::Up } else { Run::Down };
            mount.key.clone_from(target_key);
            let printed = mount.print(&task.node.table);
            if running == Run::Up {
                // A running container cannot apply it: it stays pending, and the task logs that.
                config.pending.insert(target_key.clone(), printed);
                task.warn(&format!(
                    "unable to hotplug {target_key}: failed to change apparmor profile: Invalid argument"
                ));
            } else {
                let change = Change { node: &task.node, store: world.store(), vmid: *target, running };
                let faults = change.apply(&mut config, &[(target_key.clone(), printed)].into(), &[], &[])?;
                faults.values().for_each(|fault| task.warn(fault.trim_end()));
            }
        }
        world.guests.put(*target, config)?;
        low_level(&task.node, &world.guests.get(*target)?.main)?;
        task.log(format!("target container '{target}' updated with '{target_key}'"));
        Ok(())
    }
}
