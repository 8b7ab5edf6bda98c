//! From a configuration to what a runtime needs to run it.
//!
//! In: a guest's values and the storages. Out: a [`GuestSpec`], or the real error text for what is missing.
use super::config::Section;
use super::options::{Mount, Origin, mounts, numbered};
use crate::archive::{GuestPath, MountDir, Volumes};
use crate::fail::{Fallible, Refusal};
use crate::runtime::{Features, GuestMount, GuestSpec, Link, Net};
use crate::schema::property;
use crate::schema::table::Table;
use crate::storage::volume::Store;

/// What runs.
///
/// # Errors
/// When a volume is not there.
pub fn spec(table: &Table, store: Store<'_>, vmid: u32, main: &Section) -> Fallible<GuestSpec> {
    let mut rootfs = None;
    let mut others = Vec::new();
    for mount in mounts(table, main).iter().filter(|mount| mount.origin() == Origin::Volume) {
        activate(&store, mount)?;
        let directory = store.tree(mount.volume())?;
        if mount.key == "rootfs" {
            rootfs = Some(directory);
        } else {
            others.push(GuestMount { at: guest_path(mount)?, directory });
        }
    }
    let env = main.get("env").unwrap_or_default().split('\0').filter_map(|pair| pair.split_once('='));
    Ok(GuestSpec {
        vmid,
        hostname: main.get("hostname").map_or_else(|| format!("CT{vmid}"), str::to_owned),
        rootfs: rootfs.ok_or_else(|| Refusal::die(format!("startup for container '{vmid}' failed")))?,
        mounts: others,
        env: env.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        nets: main
            .values
            .iter()
            .filter(|(key, _)| numbered(key, "net").is_some())
            .filter_map(|(_, value)| net(table, value))
            .collect(),
        ostype: main.get("ostype").unwrap_or("unmanaged").to_owned(),
        features: main.get("features").map(|value| features(table, value)).unwrap_or_default(),
    })
}

fn activate(store: &Store<'_>, mount: &Mount) -> Fallible<()> {
    mount.volume().split_once(':').map_or(Ok(()), |(storage, _)| store.activate(storage))
}

/// Where a mount is seen.
///
/// # Errors
/// When its path is not one.
pub fn guest_path(mount: &Mount) -> Fallible<GuestPath> {
    GuestPath::parse(mount.path()).map_err(|error| Refusal::die(error.to_string()))
}

/// The folders of a guest's volumes, for archives; `wanted` chooses.
///
/// # Errors
/// When a volume is not there.
pub fn volumes(store: Store<'_>, all: &[Mount], wanted: impl Fn(&Mount) -> bool) -> Fallible<Volumes> {
    let mut found = Volumes { rootfs: std::path::PathBuf::new(), mounts: Vec::new() };
    for mount in all.iter().filter(|mount| mount.origin() == Origin::Volume && wanted(mount)) {
        let directory = store.tree(mount.volume())?;
        if mount.key == "rootfs" {
            found.rootfs = directory;
        } else {
            found.mounts.push(MountDir { at: guest_path(mount)?, directory });
        }
    }
    Ok(found)
}

fn features(table: &Table, value: &str) -> Features {
    let held = table.format("features").and_then(|format| property::parse(table, format, value).ok());
    let on = |name: &str| held.as_ref().and_then(|held| held.get(name)).is_some_and(|word| word == "1");
    Features { nesting: on("nesting"), keyctl: on("keyctl") }
}

fn net(table: &Table, value: &str) -> Option<Net> {
    let held = property::parse(table, table.format("net")?, value).ok()?;
    Some(Net {
        name: held.get("name")?.clone(),
        bridge: held.get("bridge").cloned().unwrap_or_default(),
        hwaddr: held.get("hwaddr").cloned().unwrap_or_default(),
        ip: held.get("ip").and_then(|ip| ip.parse().ok()),
        gw: held.get("gw").and_then(|gw| gw.parse().ok()),
        link: if held.get("link_down").is_some_and(|down| down == "1") { Link::Down } else { Link::Up },
    })
}
