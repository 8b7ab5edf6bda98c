//! Paths under the root directory of the guest.

use std::path::{Path, PathBuf};

/// A guest's root directory.
#[derive(Clone, Debug)]
pub struct Paths {
    root: PathBuf,
}

impl Paths {
    /// The guest at this directory; `/` for the one we run in.
    pub fn new(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    /// The environment of PID 1, which carries the bootstrap token.
    pub fn environ(&self) -> PathBuf {
        self.root.join("proc/1/environ")
    }

    /// What outlives a restart.
    pub fn state_dir(&self) -> PathBuf {
        self.root.join("var/lib/holdfast")
    }

    /// What does not.
    pub fn run_dir(&self) -> PathBuf {
        self.root.join("run/holdfast")
    }

    /// What the kernel says of PID 1.
    pub fn first_process(&self) -> PathBuf {
        self.root.join("proc/1/stat")
    }

    /// A path of the guest, seen from here.
    pub fn inside(&self, path: &Path) -> PathBuf {
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// What stacks there are.
    pub fn stacks_file(&self) -> PathBuf {
        self.root.join("etc/holdfast/stacks.toml")
    }

    /// What is mounted. A directory guest has its own list, or none is mounted.
    pub fn mounts(&self) -> PathBuf {
        self.root.join("proc/self/mountinfo")
    }

    /// Seconds since the boot, on the clock that runs through suspend. A directory guest has a file of its own, which is
    /// then the only one that counts, or none.
    pub fn uptime(&self) -> PathBuf {
        let own = self.root.join("proc/uptime");
        if own.exists() { own } else { Path::new("/proc/uptime").to_owned() }
    }

    /// Units of systemd that outlive a restart of the guest.
    pub fn units(&self) -> PathBuf {
        self.root.join("etc/systemd/system")
    }

    /// The guest's root directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where the boot id may be. A directory guest has no `/proc` of its own unless one is made there.
    pub fn boot_ids(&self) -> [PathBuf; 2] {
        let below = "proc/sys/kernel/random/boot_id";
        [self.root.join(below), Path::new("/").join(below)]
    }
}
