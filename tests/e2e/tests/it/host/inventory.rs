//! An inventory of a root file system.
//!
//! In: a folder. Out: for each path its type, its owner, and a hash of its contents. Paths that Debian itself changes
//! while packages are installed and removed are left out, each with its reason.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// Places that are not ours to keep clean.
const LEFT_OUT: &[(&str, &str)] = &[
    ("dev", "the kernel's"),
    ("proc", "the kernel's"),
    ("run", "gone at the next boot"),
    ("sys", "the kernel's"),
    ("tmp", "gone at the next boot"),
    ("etc/ld.so.cache", "ldconfig's, with times in it"),
    ("etc/group", "compared by its lines"),
    ("etc/group-", "the one before"),
    ("etc/gshadow", "goes with group"),
    ("etc/gshadow-", "the one before"),
    ("etc/passwd", "compared by its lines"),
    ("etc/passwd-", "the one before"),
    ("etc/shadow", "goes with passwd"),
    ("etc/shadow-", "the one before"),
    ("root", "the administrator's own"),
    ("srv/packages", "where this test puts the packages"),
    ("var/cache", "can be made again"),
    ("var/lib/apt", "apt's books"),
    ("var/lib/dpkg", "dpkg's books"),
    ("var/lib/pve-sim", "Proxmox's own"),
    ("var/lib/systemd", "systemd's books, and its clock"),
    ("var/log", "logs outlive what wrote them"),
    ("var/tmp", "gone after a while"),
];

/// Paths with what they are.
pub type Inventory = BTreeMap<PathBuf, String>;

/// Lists everything below `root`.
pub fn take(root: &Path) -> Inventory {
    let mut found = Inventory::new();
    walk(root, root, &mut found);
    found
}

fn walk(root: &Path, folder: &Path, found: &mut Inventory) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let inside = path.strip_prefix(root).unwrap().to_owned();
        if LEFT_OUT.iter().any(|(place, _)| Path::new(place) == inside) {
            continue;
        }
        let meta = path.symlink_metadata().unwrap();
        found.insert(
            inside,
            format!("{} {:o} {}:{}", content(&path, &meta), meta.mode(), meta.uid(), meta.gid()),
        );
        if meta.is_dir() {
            walk(root, &path, found);
        }
    }
}

fn content(path: &Path, meta: &Metadata) -> String {
    let kind = meta.file_type();
    if kind.is_symlink() {
        format!("link to {}", std::fs::read_link(path).unwrap().display())
    } else if kind.is_file() {
        let sum = Sha256::digest(std::fs::read(path).unwrap());
        format!("file {}", sum.iter().take(8).map(|byte| format!("{byte:02x}")).collect::<String>())
    } else if kind.is_dir() {
        "folder".to_owned()
    } else {
        format!("special, a socket: {}, a pipe: {}", kind.is_socket(), kind.is_fifo())
    }
}

/// Paths that were added, removed or changed.
pub fn differences(before: &Inventory, after: &Inventory) -> Vec<String> {
    let came = after.iter().filter(|(path, _)| !before.contains_key(*path));
    let went = before.iter().filter(|(path, _)| !after.contains_key(*path));
    let changed = before.iter().filter_map(|(path, was)| {
        let is = after.get(path).filter(|is| *is != was)?;
        Some(format!("changed: {}: {was} → {is}", path.display()))
    });
    came.map(|(path, is)| format!("came: {}: {is}", path.display()))
        .chain(went.map(|(path, was)| format!("went: {}: {was}", path.display())))
        .chain(changed)
        .collect()
}
