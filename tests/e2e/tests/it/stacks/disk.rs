//! A btrfs for the guests' volumes.

use std::path::{Path, PathBuf};

use e2e::place::{Place, User};

/// Half as much again as it holds at most. All of it is allocated at the beginning, so that a machine without room
/// fails before anything is written to a disk that then fails.
const SIZE: &str = "18G";

/// The prefix of the folders of the suite's runs.
pub const PREFIX: &str = "holdfast-stacks-";

/// It is there until it is dropped.
pub struct Disk {
    image: PathBuf,
    mount: PathBuf,
}

impl Disk {
    /// Makes the file, and mounts it on an empty folder.
    pub fn new(image: &Path, mount: &Path) -> Self {
        left_over(&std::env::temp_dir().join(PREFIX));
        let _ = std::fs::remove_file(image);
        std::fs::create_dir_all(mount).unwrap();
        run("fallocate", &["--length", SIZE, path(image)]);
        run("mkfs.btrfs", &["--quiet", "--nodiscard", path(image)]);
        run("mount", &["-o", "loop,noatime,nodiscard", path(image), path(mount)]);
        Self { image: image.to_owned(), mount: mount.to_owned() }
    }

    /// How much of it is in use, for people.
    pub fn used(&self) -> String {
        run("df", &["--human-readable", "--output=used", path(&self.mount)])
            .lines()
            .last()
            .unwrap()
            .trim()
            .to_owned()
    }
}

/// Unmounts what killed runs left mounted. The kernel refuses when a process uses it.
fn left_over(prefix: &Path) {
    let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let points = table.lines().filter_map(|line| line.split(' ').nth(4));
    for point in points.filter(|point| point.starts_with(path(prefix))) {
        let _refused = Place::default().command("umount", User::Same).arg(point).output();
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
