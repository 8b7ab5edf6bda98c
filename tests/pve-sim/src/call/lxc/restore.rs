//! The task behind a creation: volumes, files, configuration.
//!
//! ```text
//! locked config --> (restore: configuration from the archive, its nets and privileges judged) --> volumes made --> old guest destroyed
//!   --> archive unpacked --> configurations merged --> written without lock --> pool --> (start)
//! ```
//! On a failure the volumes made here are freed, and the configuration too unless it was there before and is untouched. On a kill nothing is
//! cleaned up. In: a [`Plan`]. Out: a guest, or nothing.
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::from_server::{self, CLIENT_ENDS, Part, is_on_server, unlock};
use super::mkfs;
use crate::access::credential::Caller;
use crate::archive;
use crate::die;
use crate::fail::{Fallible, Refusal};
use crate::guest::change::{Change, Run, gib_to_bytes};
use crate::guest::config::{GuestConfig, Section};
use crate::guest::options::{Mount, Origin, is_volume_key, mounts, numbered};
use crate::guest::rights::bridge_access;
use crate::guest::spec::volumes;
use crate::schema::property;
use crate::storage::volume::missing;
use crate::task::worker::Outcome;
use crate::task::{Halt, Task};

/// The largest content that is unpacked for one guest: far beyond any test, far below a disk.
const UNPACKED_BYTES_MAX: u64 = 64 << 30;
/// The error of a restore on a node that goes down: `timedatectl` no longer reports the time zone.
const NO_BUS: &str = "command 'timedatectl show '--property=Timezone' --value' failed: exit code 1";
/// The largest raw image the real tool makes: 2^53 bytes.
const IMAGE_BYTES_MAX: u64 = 1 << 53;

/// The guest to be made.
#[derive(Debug)]
pub struct Plan {
    pub vmid: u32,
    pub who: Caller,
    /// Template or backup.
    pub archive: String,
    /// From a backup.
    pub restore: bool,
    /// A guest of that number was there.
    pub exists: bool,
    /// As requested, or by default.
    pub unprivileged: Option<bool>,
    /// Fresh hardware addresses.
    pub unique: bool,
    /// Start it afterwards.
    pub start: bool,
    /// Put it there at the end.
    pub pool: Option<String>,
    /// The storage of volumes that name no other.
    pub storage: String,
    /// Wanted volumes by key.
    pub disks: BTreeMap<String, String>,
    /// The known part of the configuration.
    pub config: GuestConfig,
    /// Names of all parameters that were given.
    pub given: BTreeSet<String>,
}

/// Runs the task.
///
/// # Errors
/// The error text of the failed step, with the operation in front.
pub fn run(task: &Task, mut plan: Plan) -> Outcome {
    let mut made = Vec::new();
    let mut touched = !plan.exists;
    let result = build(task, &mut plan, &mut made, &mut touched);
    if let Err(Halt::Failed(refusal)) = result {
        let refusal = if task.node.is_going_down() { Refusal::die(NO_BUS) } else { refusal };
        clean_up(task, &plan, &made, touched);
        let verb = if plan.restore { "restore" } else { "create" };
        return Err(Refusal::die(format!("unable to {verb} CT {} - {}", plan.vmid, refusal.in_task())).into());
    }
    result?;
    if let Some(pool) = &plan.pool {
        let mut world = task.node.world();
        if let Some(held) = world.access.pools.get_mut(pool) {
            held.vms.insert(plan.vmid);
        }
        world.save_access()?;
    }
    if plan.start {
        super::power::start_task(&task.node, &task.upid.owner, plan.vmid, false)?;
    }
    Ok(())
}

fn clean_up(task: &Task, plan: &Plan, made: &[String], touched: bool) {
    let mut world = task.node.world();
    for volid in made {
        if let Err(refusal) = world.store().free(volid) {
            task.log(refusal.message);
        }
    }
    let cleaned = if touched {
        world.guests.remove(plan.vmid)
    } else {
        world.guests.change(plan.vmid, |config| {
            config.main.unset("lock");
            Ok(())
        })
    };
    if let Err(refusal) = cleaned {
        task.log(refusal.message);
    }
}

fn build(task: &Task, plan: &mut Plan, made: &mut Vec<String>, touched: &mut bool) -> Outcome {
    let old = task.node.world().guests.get(plan.vmid)?.clone();
    let mut delayed = BTreeMap::new();
    let mut backed_up = None;
    if plan.restore {
        let recovered = recover(task, plan, &old)?;
        if plan.disks.is_empty() {
            let (disks, later) = disks_of(task, plan, &recovered)?;
            plan.disks = disks;
            delayed = later;
        }
        backed_up = Some(recovered);
    } else if plan.disks.is_empty() {
        // Without a request the root filesystem gets four gibibytes.
        plan.disks.insert("rootfs".to_owned(), format!("{}:4", plan.storage));
    }
    *touched = true;
    for (key, value) in in_order(&plan.disks) {
        let mount = make(task, plan.vmid, key, value, made)?;
        plan.config.main.set(key, mount.print(&task.node.table));
        task.pace("allocated")?;
    }
    if old.main.values.len() > 1 {
        replace(task, plan.vmid, &old)?;
    }
    let first = unpack(task, plan)?;
    task.pace("unpacked")?;
    match backed_up {
        // The configuration that is in the root now counts: the one that was unpacked first, which may differ from the shown one.
        Some(recovered) => {
            merge(task, plan, &first.map_or(recovered, |text| GuestConfig::parse(&text).main))?;
        }
        None => detect(task, plan)?,
    }
    plan.config.main.values.entry("hostname".to_owned()).or_insert_with(|| format!("CT{}", plan.vmid));
    plan.config.main.values.entry("memory".to_owned()).or_insert_with(|| "512".to_owned());
    plan.config.main.values.entry("swap".to_owned()).or_insert_with(|| "512".to_owned());
    plan.config.main.values.extend(delayed);
    task.pace("configured")?;
    Ok(task.node.world().guests.put(plan.vmid, plan.config.clone())?)
}

/// `rootfs` first, then by number.
fn in_order(disks: &BTreeMap<String, String>) -> Vec<(&String, &String)> {
    let mut all: Vec<_> = disks.iter().collect();
    all.sort_by_key(|(key, _)| numbered(key, "mp").map_or(0, |n| n + 1));
    all
}

/// The archive's file, when its storage and itself are there.
fn file(task: &Task, volid: &str) -> Fallible<(PathBuf, String)> {
    let world = task.node.world();
    let store = world.store();
    let at = store.locate(volid)?;
    store.activate(at.storage)?;
    let place = store.place(&at);
    if place.is_file() { Ok((place, store.shown_path(&at))) } else { Err(missing(volid)) }
}

/// What a client or tar runs in.
pub(super) fn userns(plan: &Plan) -> &'static str {
    if plan.config.main.flag("unprivileged") {
        "lxc-usernsexec -m u:0:100000:65536 -m g:0:100000:65536 -- "
    } else {
        ""
    }
}

/// The backed-up configuration, judged before any volume is made.
fn recover(task: &Task, plan: &mut Plan, old: &GuestConfig) -> Result<Section, Halt> {
    task.log(format!("recovering backed-up configuration from '{}'", plan.archive));
    let on_server = is_on_server(task, &plan.archive)?;
    let found = if on_server { None } else { Some(file(task, &plan.archive)?.0) };
    task.pace("recovering")?;
    let place = match found {
        Some(place) => place,
        None => unlock(task, plan, Part::Config)?,
    };
    let embedded = archive::read_config(&place).map_err(|error| {
        tracing::debug!(%error, "no configuration in archive");
        Refusal::die("ERROR: archive contains no configuration file")
    });
    let embedded = embedded?;
    if !on_server && is_cut(&place) {
        task.log("/*stdin*\\ : Read error (39) : premature end ");
    }
    let recovered = GuestConfig::parse(&embedded.config).main;
    let world = task.node.world();
    let judge = world.judge(&plan.who);
    for (key, value) in recovered
        .values
        .iter()
        .filter(|(key, _)| numbered(key, "net").is_some() && !plan.given.contains(*key))
    {
        tracing::trace!(key, "bridge of the archive");
        bridge_access(&task.node.table, &judge, value)?;
    }
    if plan.who.is_root() {
        plan.config.main.lxc.clone_from(&recovered.lxc);
    }
    if plan.unprivileged.is_none() && recovered.flag("unprivileged") {
        plan.config.main.set("unprivileged", "1");
    }
    let privileged = !plan.config.main.flag("unprivileged");
    if privileged && (!plan.exists || old.main.flag("unprivileged")) {
        judge.need("/", &["Sys.Modify"])?;
    }
    Ok(recovered)
}

/// Whether an archive ends before its end. Its head may still be readable, and then the real tools complain twice.
fn is_cut(place: &std::path::Path) -> bool {
    archive::list(place).is_err()
}

type Disks = BTreeMap<String, String>;

/// Volumes as the archive's configuration has them, on the given storage; binds come later, and only for root.
fn disks_of(task: &Task, plan: &Plan, recovered: &Section) -> Fallible<(Disks, Disks)> {
    let (mut disks, mut delayed) = (Disks::new(), Disks::new());
    if recovered.get("rootfs").is_none() {
        die!("rootfs configuration could not be recovered, please check and specify manually!");
    }
    for mut mount in mounts(&task.node.table, recovered) {
        let key = mount.key.clone();
        if mount.origin() == Origin::Volume {
            let Some(bytes) = mount.size() else {
                die!("unable to detect disk size - please specify {key} (size)")
            };
            mount.props.remove("size");
            #[expect(clippy::cast_precision_loss, reason = "a disk size in bytes is far below 2^53")]
            let gib = bytes as f64 / f64::from(1 << 30);
            mount.props.insert("volume".to_owned(), format!("{}:{gib}", plan.storage));
            disks.insert(key, mount.print(&task.node.table));
        } else {
            let word = mount.origin().word();
            if key == "rootfs" {
                die!("restoring rootfs to {word} mount is only possible by specifying -rootfs manually!");
            }
            if !plan.who.is_root() {
                die!("restoring '{key}' to {word} mount is only possible for root");
            }
            delayed.insert(key, mount.print(&task.node.table));
        }
    }
    Ok((disks, delayed))
}

/// Makes one wanted volume, or takes the given one as it is.
fn make(task: &Task, vmid: u32, key: &str, value: &str, made: &mut Vec<String>) -> Fallible<Mount> {
    let mut mount = Mount::parse_or_die(&task.node.table, key, value)?;
    let Some((storage, gib)) = mount.goal().map(|(storage, gib)| (storage.to_owned(), gib)) else {
        return Ok(mount);
    };
    let bytes = gib_to_bytes(gib);
    let uuid = crate::call::token::fresh_uuid(&task.node);
    let world = task.node.world();
    let store = world.store();
    let volid = store.allocate(&storage, vmid, bytes)?;
    made.push(volid.clone());
    let at = store.locate(&volid)?;
    let shown = store.shown_path(&at);
    if bytes > 0 {
        if at.definition.kind == "dir" {
            task.log(format!("Formatting '{shown}', fmt=raw size={bytes} preallocation=off"));
        }
        if bytes >= IMAGE_BYTES_MAX {
            die!(
                "unable to create image: qemu-img: {shown}: The image size is too large for file format 'raw'"
            );
        }
        mkfs::lines(bytes, &uuid).into_iter().for_each(|line| task.log(line));
    }
    mount.props.insert("volume".to_owned(), volid);
    mount.props.insert("size".to_owned(), bytes.to_string());
    Ok(mount)
}

/// Removes the volumes of the guest that was there; its configuration is only the lock from now on.
fn replace(task: &Task, vmid: u32, old: &GuestConfig) -> Fallible<()> {
    let mut world = task.node.world();
    let change = Change { node: &task.node, store: world.store(), vmid, running: Run::Down };
    for volid in super::destroy::volumes_of(&task.node.table, old) {
        change.free(&volid)?;
    }
    let mut bare = GuestConfig::default();
    bare.main.set("lock", "create");
    world.guests.put(vmid, bare)
}

/// Unpacks the archive and returns the configuration that was found among the files.
fn unpack(task: &Task, plan: &Plan) -> Result<Option<String>, Halt> {
    let own: Vec<Mount> = mounts(&task.node.table, &plan.config.main);
    let targets = {
        let world = task.node.world();
        for mount in own.iter().filter(|mount| mount.origin() == Origin::Volume) {
            if !world.store().exists(mount.volume()) {
                return Err(missing(mount.volume()).into());
            }
        }
        volumes(world.store(), &own, |_| true)?
    };
    let from_server = plan.restore && is_on_server(task, &plan.archive)?;
    let found = if from_server { Ok(None) } else { file(task, &plan.archive).map(Some) };
    let found = match found {
        Ok(found) => found,
        Err(refusal) => {
            task.log(&refusal.message);
            return Err(refusal.into());
        }
    };
    if plan.restore {
        task.log(format!("restoring '{}' now..", plan.archive));
    }
    let (place, shown) = match found {
        Some((place, shown)) => {
            task.log(format!("extracting archive '{shown}'"));
            (place, shown)
        }
        None => (unlock(task, plan, Part::Files)?, String::new()),
    };
    // A stop here is reported as the failure of the command that ran, because the signal reached that command.
    let begun = task.pace("unpacking");
    if task.is_killed() {
        return Err(Halt::Killed);
    }
    if task.is_stopping() {
        return Err(unpacking_failed(task, plan, &shown, "received interrupt")?.into());
    }
    begun?;
    match archive::extract(&place, &targets, UNPACKED_BYTES_MAX, &|| task.is_ending()) {
        Err(archive::ExtractError::Cancelled) if task.is_killed() => Err(Halt::Killed),
        Err(archive::ExtractError::Cancelled) => {
            Err(unpacking_failed(task, plan, &shown, "received interrupt")?.into())
        }
        // Its configuration is a part of its own; what a guest keeps under that name is the guest's.
        Ok(_) if from_server => Ok(None),
        Ok(done) => {
            let bytes = done.total_bytes_read;
            task.log(format!(
                "Total bytes read: {bytes} ({}, {}/s)",
                human(bytes),
                human(bytes.saturating_mul(80))
            ));
            if !plan.restore {
                task.log("Detected container architecture: amd64");
            }
            Ok(done.config)
        }
        Err(error) => {
            tracing::debug!(?error, "archive not unpacked");
            if from_server {
                task.log("Error: error extracting archive - OpenSSL error");
                return Err(from_server::client_failed(task, plan, Part::Files, CLIENT_ENDS)?.into());
            }
            for line in [
                "/*stdin*\\ : Read error (39) : premature end ",
                "tar: Unexpected EOF in archive",
                "tar: Unexpected EOF in archive",
                "tar: Error is not recoverable: exiting now",
            ] {
                task.log(line);
            }
            Err(unpacking_failed(task, plan, &shown, "exit code 2")?.into())
        }
    }
}

/// The error text of the unpacking command: the client of a backup server, or tar.
fn unpacking_failed(task: &Task, plan: &Plan, shown: &str, how: &str) -> Fallible<Refusal> {
    if plan.restore && is_on_server(task, &plan.archive)? {
        return from_server::client_failed(task, plan, Part::Files, how);
    }
    Ok(Refusal::die(tar_failed(plan, shown, how)))
}

fn tar_failed(plan: &Plan, shown: &str, how: &str) -> String {
    let mapped = userns(plan);
    let option = match shown.rsplit('.').next() {
        Some("zst") => " --zstd",
        Some("gz") => " -z",
        Some("lzo") => " --lzop",
        _ => "",
    };
    format!(
        "command '{mapped}tar xpf -{option} --totals --one-file-system -p --sparse --numeric-owner --acls --xattrs '--xattrs-include=user.*' '--xattrs-include=security.capability' '--warning=no-file-ignored' '--warning=no-xattr-write' -C /var/lib/lxc/{}/rootfs --skip-old-files --anchored --exclude './dev/*'' failed: {how}",
        plan.vmid
    )
}

/// Bytes as tar prints them.
#[must_use]
pub fn human(bytes: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    let mut value = bytes as f64;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if value < 1024.0 {
            return if value < 10.0 && unit != "B" {
                format!("{value:.1}{unit}")
            } else {
                format!("{value:.0}{unit}")
            };
        }
        value /= 1024.0;
    }
    format!("{value:.1}TiB")
}

/// Takes over options that the archive has and the call does not.
fn merge(task: &Task, plan: &mut Plan, recovered: &Section) -> Fallible<()> {
    task.log("merging backed-up and given configuration..");
    if is_on_server(task, &plan.archive)? {
        unlock(task, plan, Part::Config)?;
    }
    let restricted = !plan.who.is_root();
    if restricted && !recovered.lxc.is_empty() {
        let entries: String = recovered.lxc.iter().map(|(key, value)| format!("{key}: {value}\n")).collect();
        let line = "--------------------------------";
        task.warn(&format!(
            "skipping custom lxc options, restore manually as root:\n{line}\n{entries}{line}"
        ));
    }
    for (key, value) in &recovered.values {
        let skipped = matches!(key.as_str(), "rootfs" | "unprivileged" | "parent" | "template")
            || is_volume_key(key)
            || numbered(key, "unused").is_some();
        let privileged_now = recovered.flag("unprivileged") && !plan.config.main.flag("unprivileged");
        if skipped || (restricted && key == "features" && privileged_now) {
            continue;
        }
        if plan.unique && numbered(key, "net").is_some() {
            plan.config.main.set(key, fresh_address(task, value));
        } else if plan.config.main.get(key).is_none() {
            plan.config.main.set(key, value);
        }
    }
    remove_embedded(task, plan)
}

fn fresh_address(task: &Task, value: &str) -> String {
    let table = &task.node.table;
    let Some(format) = table.format("net") else { return value.to_owned() };
    let mut net = property::parse(table, format, value).unwrap_or_default();
    net.insert("hwaddr".to_owned(), task.node.fresh_mac());
    net.insert("type".to_owned(), "veth".to_owned());
    property::print(format, &net)
}

/// The configuration that travelled inside does not stay in the guest.
fn remove_embedded(task: &Task, plan: &Plan) -> Fallible<()> {
    let world = task.node.world();
    let own = mounts(&task.node.table, &plan.config.main);
    let root = volumes(world.store(), &own, |mount| mount.key == "rootfs")?.rootfs;
    for name in ["pct.conf", "pct.fw"] {
        // The folder may be a hostile link; only a plain file in a plain folder is removed.
        let folder = root.join("etc/vzdump");
        let plain = [root.join("etc"), folder.clone()]
            .iter()
            .all(|path| path.symlink_metadata().is_ok_and(|meta| meta.is_dir()));
        if plain && folder.join(name).symlink_metadata().is_ok_and(|meta| meta.is_file()) {
            std::fs::remove_file(folder.join(name))
                .map_err(|error| crate::fail::host("removal of pct.conf", &error))?;
        }
    }
    Ok(())
}

/// What a template is.
fn detect(task: &Task, plan: &mut Plan) -> Fallible<()> {
    let world = task.node.world();
    let own = mounts(&task.node.table, &plan.config.main);
    let root = volumes(world.store(), &own, |mount| mount.key == "rootfs")?.rootfs;
    let release = std::fs::read_to_string(root.join("etc/os-release")).unwrap_or_default();
    let id = release
        .lines()
        .find_map(|line| line.strip_prefix("ID="))
        .unwrap_or_default()
        .trim_matches('"')
        .to_owned();
    let known = [
        "debian",
        "devuan",
        "ubuntu",
        "centos",
        "fedora",
        "opensuse",
        "archlinux",
        "alpine",
        "gentoo",
        "nixos",
    ];
    let kind = if root.join("etc/debian_version").exists() && id != "ubuntu" && id != "devuan" {
        "debian".to_owned()
    } else {
        id
    };
    let kind = if known.contains(&kind.as_str()) { kind } else { "unmanaged".to_owned() };
    plan.config.main.values.entry("ostype".to_owned()).or_insert(kind);
    plan.config.main.values.entry("arch".to_owned()).or_insert_with(|| "amd64".to_owned());
    let said = crate::guest::systemd::warning(&task.node.table, &plan.config.main, &root);
    said.into_iter().for_each(|text| task.warn(&text));
    if root.join("etc/ssh").is_dir() {
        host_keys(task);
    }
    Ok(())
}

/// On a real node a guest made from a template gets its own SSH host keys, and the log says so. Here only the log lines are
/// written, and no keys are made.
fn host_keys(task: &Task) {
    for kind in ["rsa", "ecdsa", "ed25519"] {
        task.log(format!("Creating SSH host key 'ssh_host_{kind}_key' - this may take some time ..."));
    }
}
