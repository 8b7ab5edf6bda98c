//! Changes of a container's options: pending, then in force.
//!
//! ```text
//! set/delete/revert --> pending --> stopped: everything at once, volumes are made and detached
//!                              '--> running: what can be hot-changed; the rest stays pending until the next stop
//! ```
//! In: a configuration by reference, new values, deletions. Out: faults by option (then nothing is written), or a changed configuration.
use std::collections::{BTreeMap, BTreeSet};

use super::config::{GuestConfig, Section};
use super::hot_net;
use super::options::{Mount, Origin, is_volume_key, mounts, numbered};
use crate::die;
use crate::fail::{Fallible, Refusal};
use crate::node::Node;
use crate::schema::format::split_list;
use crate::schema::property;
use crate::storage::volume::Store;

/// Options that a running container takes at once.
const FAST: &[&str] =
    &["hostname", "onboot", "startup", "description", "protection", "hookscript", "cores", "tags", "lock"];

/// A change in the making.
#[derive(Debug)]
pub struct Change<'a> {
    pub node: &'a Node,
    pub store: Store<'a>,
    pub vmid: u32,
    /// Whether it runs.
    pub running: Run,
}

/// Whether a guest runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Run {
    Up,
    /// It does not.
    Down,
}

/// Faults by option.
pub type Faults = BTreeMap<String, String>;

impl Change<'_> {
    /// Puts new values, deletions and reverts into force as far as possible.
    ///
    /// # Errors
    /// When the change is not possible at all; faults of single options are returned.
    pub fn apply(
        &self,
        config: &mut GuestConfig,
        new: &BTreeMap<String, String>,
        delete: &[String],
        revert: &[String],
    ) -> Fallible<Faults> {
        for option in revert {
            config.pending.remove(option);
            config.unqueue_delete(option);
        }
        let mut touched = BTreeSet::new();
        for option in delete {
            self.queue_delete(config, option, &mut touched)?;
        }
        for (option, value) in new {
            touched.insert(option.clone());
            let value = self.accept(config, option, value)?;
            config.pending.insert(option.clone(), value);
            config.unqueue_delete(option);
        }
        config.cleanup_pending();
        Ok(match self.running {
            Run::Up => self.hotplug(config, &touched),
            Run::Down => self.settle(config, Some(&touched)),
        })
    }

    fn queue_delete(
        &self,
        config: &mut GuestConfig,
        option: &str,
        touched: &mut BTreeSet<String>,
    ) -> Fallible<()> {
        // This does not delete a pending change: that change takes effect at the next stop. Only a revert removes it.
        if config.main.get(option).is_none() {
            return Ok(());
        }
        touched.insert(option.to_owned());
        match option {
            "memory" | "rootfs" | "ostype" => die!("unable to delete required option '{option}'"),
            "unprivileged" => die!("unable to delete read-only option: '{option}'"),
            _ if numbered(option, "unused").is_some() || numbered(option, "mp").is_some() => {
                protected(&config.main, &format!("can't remove CT {} drive '{option}'", self.vmid))?;
            }
            _ => {}
        }
        config.queue_delete(option);
        Ok(())
    }

    /// A new value as it is kept.
    fn accept(&self, config: &GuestConfig, option: &str, value: &str) -> Fallible<String> {
        Ok(match option {
            "unprivileged" => die!("unable to modify read-only option: '{option}'"),
            "nameserver" | "searchdomain" => split_list(value).collect::<Vec<_>>().join(" "),
            "tags" => {
                let unique: BTreeSet<String> = split_list(value).map(str::to_lowercase).collect();
                unique.into_iter().collect::<Vec<_>>().join(";")
            }
            // Written as nothing, it is read as a blank.
            "features" if value.is_empty() => " ".to_owned(),
            _ if is_volume_key(option) => {
                protected(&config.main, &format!("can't update CT {} drive '{option}'", self.vmid))?;
                let mount = Mount::parse_or_die(&self.node.table, option, value)?;
                if mount.origin() == Origin::Volume {
                    let (storage, _) = mount.volume().split_once(':').ok_or_else(|| {
                        Refusal::die(format!("unable to parse volume ID '{}'", mount.volume()))
                    })?;
                    if !self.store.config.get(storage)?.holds("rootdir") {
                        die!("storage '{storage}' does not allow content type 'rootdir' (Container)");
                    }
                }
                value.to_owned()
            }
            _ => value.to_owned(),
        })
    }

    /// A network value in its full form: with type and hardware address.
    ///
    /// # Errors
    /// When it does not parse.
    pub fn full_net(&self, value: &str) -> Fallible<String> {
        let table = &self.node.table;
        let format = table.format("net").ok_or_else(|| Refusal::die("unknown format 'net'"))?;
        let mut net = property::parse(table, format, value)
            .map_err(|fault| Refusal::die(fault.text("").trim_end().to_owned()))?;
        net.insert("type".to_owned(), "veth".to_owned());
        net.entry("hwaddr".to_owned()).or_insert_with(|| self.node.fresh_mac());
        Ok(property::print(format, &net))
    }

    /// Applies all pending changes (or only the touched ones), for a stopped guest.
    pub fn settle(&self, config: &mut GuestConfig, touched: Option<&BTreeSet<String>>) -> Faults {
        let mut faults = Faults::new();
        let chosen = |option: &String| touched.is_none_or(|touched| touched.contains(option));
        let mut fault = |option: &str, refusal: &Refusal| {
            faults.insert(
                option.to_owned(),
                format!("unable to apply pending change {option} : {}\n", refusal.in_task()),
            );
        };
        let mut deletions = config.pending_delete.clone();
        deletions.sort();
        for option in deletions.into_iter().filter(chosen) {
            match self.drop_option(config, &option) {
                Ok(()) => {
                    config.main.unset(&option);
                    config.unqueue_delete(&option);
                }
                Err(refusal) => fault(&option, &refusal),
            }
        }
        config.cleanup_pending();
        let options: Vec<String> = config.pending.keys().filter(|option| chosen(option)).cloned().collect();
        for option in options {
            let Some(value) = config.pending.get(&option).cloned() else { continue };
            match self.final_value(config, &option, &value) {
                Ok(value) => {
                    config.pending.remove(&option);
                    config.main.set(&option, value);
                }
                Err(refusal) => fault(&option, &refusal),
            }
        }
        faults
    }

    fn final_value(&self, config: &mut GuestConfig, option: &str, value: &str) -> Fallible<String> {
        if numbered(option, "mp").is_some() {
            return self.mount(config, option, value);
        }
        if numbered(option, "net").is_some() {
            return self.full_net(value);
        }
        Ok(value.to_owned())
    }

    /// A detached volume becomes unused; a deleted unused one is freed.
    fn drop_option(&self, config: &mut GuestConfig, option: &str) -> Fallible<()> {
        let Some(value) = config.main.get(option).map(str::to_owned) else { return Ok(()) };
        if numbered(option, "mp").is_some() {
            let mount = Mount::parse_or_die(&self.node.table, option, &value)?;
            if mount.origin() == Origin::Volume
                && !attached_elsewhere(self.node, config, option, mount.volume())
            {
                GuestConfig::add_unused(&mut config.main, mount.volume());
            }
        } else if numbered(option, "unused").is_some() && !used_elsewhere(self.node, config, option, &value) {
            self.free(&value)?;
        }
        Ok(())
    }

    /// Frees a volume that belongs to this guest; a foreign one stays.
    ///
    /// # Errors
    /// When the storage fails.
    pub fn free(&self, volid: &str) -> Fallible<()> {
        let at = self.store.locate(volid)?;
        if at.name.owner() == Some(self.vmid) { self.store.free(volid).map(drop) } else { Ok(()) }
    }

    /// A mount point's final value; a wanted volume is made, the old one becomes unused.
    fn mount(&self, config: &mut GuestConfig, option: &str, value: &str) -> Fallible<String> {
        let mut mount = Mount::parse_or_die(&self.node.table, option, value)?;
        if mount.origin() == Origin::Volume {
            match mount.goal().map(|(storage, size)| (storage.to_owned(), size)) {
                Some((storage, size_gib)) => self.make(&mut mount, &storage, size_gib)?,
                // The size of a subvolume is not looked up: it is 0, whether the subvolume exists or not.
                None if mount.volume().ends_with(".subvol") => {
                    mount.props.insert("size".to_owned(), "0".to_owned());
                }
                None => match self.store.size(mount.volume()) {
                    Ok(size) => drop(mount.props.insert("size".to_owned(), size.to_string())),
                    Err(_) => drop(mount.props.remove("size")),
                },
            }
        }
        if let Some(old) = config.main.get(option).map(str::to_owned) {
            let old = Mount::parse_or_die(&self.node.table, option, &old)?;
            if old.origin() == Origin::Volume
                && old.volume() != mount.volume()
                && !attached_elsewhere(self.node, config, option, old.volume())
            {
                GuestConfig::add_unused(&mut config.main, old.volume());
            }
        }
        Ok(mount.print(&self.node.table))
    }

    /// Makes the volume that a mount requests.
    ///
    /// # Errors
    /// When the storage fails.
    pub fn make(&self, mount: &mut Mount, storage: &str, size_gib: f64) -> Fallible<()> {
        let bytes = gib_to_bytes(size_gib);
        let volid = self.store.allocate(storage, self.vmid, bytes)?;
        mount.props.insert("volume".to_owned(), volid);
        mount.props.insert("size".to_owned(), bytes.to_string());
        Ok(())
    }

    fn hotplug(&self, config: &mut GuestConfig, touched: &BTreeSet<String>) -> Faults {
        let mut faults = Faults::new();
        for option in FAST {
            if touched.contains(*option)
                && let Some(value) = config.pending.remove(*option)
            {
                config.main.set(option, value);
            }
        }
        let deletions: Vec<String> =
            config.pending_delete.iter().filter(|option| touched.contains(*option)).cloned().collect();
        for option in deletions {
            let hot = FAST.contains(&option.as_str())
                || matches!(option.as_str(), "swap" | "cpulimit" | "cpuunits")
                || numbered(&option, "net").is_some_and(|n| n < 10);
            let unused = numbered(&option, "unused").is_some();
            if !hot && !unused {
                continue;
            }
            match if unused { self.drop_option(config, &option) } else { Ok(()) } {
                Ok(()) => {
                    config.main.unset(&option);
                    config.unqueue_delete(&option);
                }
                Err(refusal) => {
                    drop(faults.insert(
                        option.clone(),
                        format!("unable to hotplug {option}: {}\n", refusal.in_task()),
                    ))
                }
            }
        }
        let options: Vec<String> =
            config.pending.keys().filter(|option| touched.contains(*option)).cloned().collect();
        for option in options {
            let Some(value) = config.pending.get(&option).cloned() else { continue };
            match self.hot_value(config, &option, &value) {
                Some(Ok(value)) => {
                    config.pending.remove(&option);
                    config.main.set(&option, value);
                }
                Some(Err(refusal)) => {
                    let why = hot_net::reported(config.main.get(&option), &refusal);
                    faults.insert(option.clone(), format!("unable to hotplug {option}: {why}\n"));
                }
                None => {}
            }
        }
        faults
    }

    /// `None` when the option has to wait for a stop.
    fn hot_value(&self, config: &mut GuestConfig, option: &str, value: &str) -> Option<Fallible<String>> {
        match option {
            "cpulimit" | "cpuunits" | "memory" | "swap" => Some(Ok(value.to_owned())),
            _ if numbered(option, "net").is_some() => Some(self.full_net(value).and_then(|value| {
                hot_net::check(self.node, (self.vmid, option), config.main.get(option), &value)?;
                Ok(value)
            })),
            _ if numbered(option, "mp").is_some() && config.main.get(option).is_none() => {
                if self.node.settings.hot_mounts == crate::node::HotMounts::NoAppArmor {
                    return Some(Err(Refusal::die("failed to change apparmor profile: Invalid argument")));
                }
                Some(self.mount(config, option, value))
            }
            _ => None,
        }
    }
}

/// Dies when the guest is protected.
///
/// # Errors
/// `<what> - protection mode enabled`
pub fn protected(main: &Section, what: &str) -> Fallible<()> {
    if main.flag("protection") {
        Err(Refusal::die(format!("{what} - protection mode enabled")))
    } else {
        Ok(())
    }
}

/// Dies when the guest is locked.
///
/// # Errors
/// `CT is locked (<lock>)`
pub fn unlocked(config: &GuestConfig) -> Fallible<()> {
    config.lock().map_or(Ok(()), |lock| Err(Refusal::die(format!("CT is locked ({lock})"))))
}

/// Whole mebibytes, as the real code rounds.
#[must_use]
pub fn gib_to_bytes(gib: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a size from a checked parameter: not negative, bounded by its digits"
    )]
    let mebibytes = (gib * 1024.0) as u64;
    mebibytes << 20
}

/// Whether a volume is named by another option or a snapshot.
fn used_elsewhere(node: &Node, config: &GuestConfig, except: &str, volid: &str) -> bool {
    attached_elsewhere(node, config, except, volid) || in_snapshots(node, config, volid)
}

/// Whether another option names the volume now. A volume that only a snapshot holds still gets onto the list of unused ones.
fn attached_elsewhere(node: &Node, config: &GuestConfig, except: &str, volid: &str) -> bool {
    mounts(&node.table, &config.main).iter().any(|mount| mount.key != except && mount.volume() == volid)
}

/// Whether a snapshot names a volume.
#[must_use]
pub fn in_snapshots(node: &Node, config: &GuestConfig, volid: &str) -> bool {
    config
        .snapshots
        .values()
        .any(|section| mounts(&node.table, section).iter().any(|mount| mount.volume() == volid))
}

/// Dies when a network's bridge is not there, or an MTU does not fit.
///
/// # Errors
/// `bridge 'x' does not exist`
pub fn bridge_exists(node: &Node, value: &str) -> Fallible<()> {
    let net = node
        .table
        .format("net")
        .and_then(|format| property::parse(&node.table, format, value).ok())
        .unwrap_or_default();
    let bridge = net.get("bridge").map_or("", String::as_str);
    if crate::call::node::has_bridge(node, bridge) {
        Ok(())
    } else {
        Err(Refusal::die(format!("bridge '{bridge}' does not exist")))
    }
}

/// What has to hold before a container's low-level configuration can be written: every bridge exists.
///
/// # Errors
/// The first missing bridge.
pub fn low_level(node: &Node, section: &Section) -> Fallible<()> {
    let nets = section.values.iter().filter(|(key, _)| numbered(key, "net").is_some());
    nets.map(|(_, value)| value).try_for_each(|value| bridge_exists(node, value))
}
