//! The places on a root disk where customers keep data.
//!
//! In: the guest's folders, and the lists of its packages. Out: each place with what a walk found there.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use holdfast_protocol::root_disk::{RootDiskItem, RootDiskKind};

use super::walk::{Amount, Walk};
use super::{docker, reportable};
use crate::file::{self, Eyes};
use crate::paths::Paths;

/// Folders of databases below `/var/lib`.
const DATABASES: [&str; 16] = [
    "cassandra",
    "clickhouse",
    "couchdb",
    "elasticsearch",
    "grafana",
    "influxdb",
    "ldap",
    "mariadb",
    "mongodb",
    "mysql",
    "neo4j",
    "postgresql",
    "prometheus",
    "rabbitmq",
    "redis",
    "valkey",
];

/// Folders whose entries are places of their own.
const FOLDERS: [&str; 3] = ["/srv", "/opt", "/var/www"];

/// What every home directory has, or gets by being used.
const USUAL_AT_HOME: [&str; 9] = [
    ".bash_history",
    ".bash_logout",
    ".bashrc",
    ".cache",
    ".lesshst",
    ".profile",
    ".sudo_as_admin_successful",
    ".viminfo",
    ".wget-hsts",
];

/// The lists of packages: how many, how large.
const PACKAGES_MAX: usize = 4_096;
const LIST_BYTES_MAX: usize = 4 * 1024 * 1024;

/// All of them. What matters most is looked at first, should a limit end the search.
pub fn find(paths: &Paths, walk: &mut Walk) -> Vec<RootDiskItem> {
    let mut found = Vec::new();
    let mut add = |kind, path: &Path, amount: Amount| {
        if amount.files > 0 {
            let item = |path| RootDiskItem { kind, path, bytes: amount.bytes };
            found.extend(reportable(path).map(item));
        }
    };
    let everything = |_: &Path| false;
    for name in DATABASES {
        let path = Path::new("/var/lib").join(name);
        add(RootDiskKind::Database, &path, walk.measure(&path, &everything));
    }
    for path in docker::volumes(paths, walk) {
        add(RootDiskKind::DockerVolume, &path, walk.measure(&path, &everything));
    }
    let packaged = packaged(paths, walk);
    let packaged = |path: &Path| packaged.contains(path);
    for folder in FOLDERS.map(Path::new) {
        let (folders, loose): (Vec<PathBuf>, Vec<PathBuf>) = walk
            .children(folder)
            .into_iter()
            .partition(|path| walk.on_root_disk(path).is_some_and(|about| about.is_dir()));
        let mut at_its_top = Amount::default();
        for path in loose {
            let one = walk.measure(&path, &packaged);
            at_its_top.files += one.files;
            at_its_top.bytes = at_its_top.bytes.saturating_add(one.bytes);
        }
        add(RootDiskKind::Files, folder, at_its_top);
        for path in folders {
            add(RootDiskKind::Files, &path, walk.measure(&path, &packaged));
        }
    }
    for path in docker::binds(paths, walk) {
        add(RootDiskKind::DockerBind, &path, walk.measure(&path, &everything));
    }
    let mut homes = walk.children(Path::new("/home"));
    homes.push("/root".into());
    for home in homes {
        let usual = |path: &Path| {
            let name = path.strip_prefix(&home).ok().and_then(Path::to_str);
            name.is_some_and(|name| USUAL_AT_HOME.contains(&name))
        };
        add(RootDiskKind::Home, &home, walk.measure(&home, &usual));
    }
    found
}

/// Files of packages in those folders.
fn packaged(paths: &Paths, walk: &mut Walk) -> HashSet<PathBuf> {
    let lists = walk.children(Path::new("/var/lib/dpkg/info"));
    let lists = lists.into_iter().filter(|path| path.extension().is_some_and(|ending| ending == "list"));
    let mut all = HashSet::new();
    for (index, list) in lists.enumerate() {
        let text = file::read(&paths.inside(&list), LIST_BYTES_MAX, Eyes::All).ok().flatten();
        let Some(text) = text.filter(|_| index < PACKAGES_MAX) else {
            walk.missed();
            continue;
        };
        let text = String::from_utf8_lossy(&text).into_owned();
        let is_there = |line: &&str| FOLDERS.iter().any(|folder| line.starts_with(&format!("{folder}/")));
        // A folder of a package may hold files of no package: only what is no folder is left out.
        let files = text.lines().filter(is_there).map(PathBuf::from);
        all.extend(files.filter(|path| walk.on_root_disk(path).is_some_and(|about| about.is_file())));
    }
    all
}
