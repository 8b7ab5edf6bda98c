//! A btrfs of its own for everything that the stage keeps: snapshots of volumes share their blocks there, as on the storages
//! that Proxmox takes snapshots on, so what a guest waits for is a snapshot and not a copy.

use std::path::{Path, PathBuf};

use e2e::place::{Place, User};

/// Sparse: what is not written takes no room.
const SIZE: &str = "40G";

/// It is there until it is dropped.
pub struct Disk {
    image: PathBuf,
    mount: PathBuf,
}

impl Disk {
    /// Makes the file, and mounts it on an empty folder.
    pub fn new(image: &Path, mount: &Path) -> Self {
        // One that a killed run left is only a file: the kernel keeps what is still mounted of it.
        let _ = std::fs::remove_file(image);
        std::fs::create_dir_all(mount).unwrap();
        run("truncate", &["--size", SIZE, path(image)]);
        run("mkfs.btrfs", &["--quiet", path(image)]);
        run("mount", &["-o", "loop,noatime", path(image), path(mount)]);
        Self { image: image.to_owned(), mount: mount.to_owned() }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let mut umount = Place::default().command("umount", User::Same);
        match umount.arg(&self.mount).status() {
            Ok(status) if status.success() => drop(std::fs::remove_file(&self.image)),
            other => eprintln!("{} stays mounted: {other:?}", self.mount.display()),
        }
    }
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A program of this machine, to its end.
pub fn run(program: &str, words: &[&str]) -> String {
    let output = Place::default().command(program, User::Same).args(words).output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {}: {}\n{err}", words.join(" "), output.status);
    String::from_utf8(output.stdout).unwrap()
}
