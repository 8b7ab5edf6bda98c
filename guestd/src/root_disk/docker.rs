//! Volumes and mounts of Docker on the root disk.
//!
//! In: the files of Docker, as its daemon keeps them. Out: paths of the guest. Docker is not asked: it may be stopped, and a
//! container that is stopped has data too.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::walk::Walk;
use crate::file::{self, Eyes};
use crate::paths::Paths;

const FOLDER: &str = "/var/lib/docker";
const SETTINGS: &str = "/etc/docker/daemon.json";
const BYTES_MAX: usize = 1024 * 1024;
/// More containers, and more mounts of all of them, are not looked at.
const CONTAINERS_MAX: usize = 512;
const BINDS_MAX: usize = 256;

/// What is mounted from there is the kernel's, or of one boot, or of the image.
const NO_DATA: [&str; 8] = ["/dev", "/etc", "/proc", "/run", "/sys", "/tmp", "/usr", "/var/run"];

#[derive(Debug, Default, Deserialize)]
struct Settings {
    #[serde(rename = "data-root")]
    data_root: Option<PathBuf>,
}

/// A container as Docker keeps it; only what is read of it.
#[derive(Debug, Default, Deserialize)]
struct Container {
    #[serde(default, rename = "MountPoints")]
    mounts: std::collections::BTreeMap<String, MountPoint>,
}

#[derive(Debug, Deserialize)]
struct MountPoint {
    #[serde(default, rename = "Type")]
    kind: String,
    #[serde(default, rename = "Source")]
    source: PathBuf,
    #[serde(default, rename = "RW")]
    writable: bool,
}

/// The folders of its volumes.
pub fn volumes(paths: &Paths, walk: &mut Walk) -> Vec<PathBuf> {
    let folder = folder(paths, walk).join("volumes");
    let volumes = walk.children(&folder);
    volumes.into_iter().filter(|path| walk.on_root_disk(path).is_some_and(|about| about.is_dir())).collect()
}

/// What containers have mounted from the guest and may write to.
pub fn binds(paths: &Paths, walk: &mut Walk) -> Vec<PathBuf> {
    let folder = folder(paths, walk).join("containers");
    let containers = walk.children(&folder);
    if containers.len() > CONTAINERS_MAX {
        walk.missed();
    }
    let mut binds = Vec::new();
    for container in containers.iter().take(CONTAINERS_MAX) {
        let Some(read) = json::<Container>(paths, &container.join("config.v2.json"), walk) else { continue };
        let counts = |mount: &MountPoint| mount.kind == "bind" && mount.writable && counts(&mount.source);
        binds.extend(read.mounts.into_values().filter(counts).map(|mount| mount.source));
    }
    binds.sort();
    binds.dedup();
    if binds.len() > BINDS_MAX {
        walk.missed();
        binds.truncate(BINDS_MAX);
    }
    binds
}

/// The path of a mount is a container's own word.
fn counts(source: &Path) -> bool {
    let plain = source.is_absolute() && source != Path::new("/");
    let plain = plain && source.components().all(|part| part != std::path::Component::ParentDir);
    plain && !NO_DATA.iter().any(|folder| source.starts_with(folder))
}

fn folder(paths: &Paths, walk: &mut Walk) -> PathBuf {
    let settings = json::<Settings>(paths, Path::new(SETTINGS), walk).unwrap_or_default();
    settings.data_root.filter(|path| path.is_absolute()).unwrap_or_else(|| FOLDER.into())
}

/// None where there is no such file. One that cannot be read leaves the search incomplete.
fn json<T: serde::de::DeserializeOwned>(paths: &Paths, path: &Path, walk: &mut Walk) -> Option<T> {
    let bytes = match file::read(&paths.inside(path), BYTES_MAX, Eyes::All) {
        Ok(bytes) => bytes?,
        Err(_) => {
            walk.missed();
            return None;
        }
    };
    let read = serde_json::from_slice(&bytes).ok();
    if read.is_none() {
        walk.missed();
    }
    read
}
