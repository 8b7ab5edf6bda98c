//! A booted guest of the suite, seen from outside.

use std::path::{Path, PathBuf};
use std::process::Output;

use e2e::booted_guest::BootedGuest;

pub struct Guest {
    pub vmid: u32,
    booted: BootedGuest,
}

impl Guest {
    /// By its number; `sim` is the simulator's folder.
    pub fn new(sim: &Path, vmid: u32) -> Self {
        let root = sim.join(format!("root/mnt/tank/images/{vmid}/vm-{vmid}-disk-0/tree"));
        assert!(root.is_dir(), "guest {vmid} has its root on tank: {}", root.display());
        Self { vmid, booted: BootedGuest { root } }
    }

    /// A path in it, as seen from outside.
    pub fn path(&self, inside: &str) -> PathBuf {
        self.booted.root.join(inside.trim_start_matches('/'))
    }

    /// A file of it.
    pub fn read(&self, inside: &str) -> String {
        let path = self.path(inside);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// Writes a file of root's into it.
    pub fn write(&self, inside: &str, text: &str) {
        let path = self.path(inside);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
    }

    /// Runs a program in it, and gives how it ended: none where it does not run, as one that is going down or coming up.
    pub fn attempts(&self, words: &[&str]) -> Option<Output> {
        self.booted.attempt(words).unwrap()
    }

    /// The same, and it must run and end well; gives what it printed.
    pub fn run(&self, words: &[&str]) -> String {
        self.booted.run(words).unwrap_or_else(|error| panic!("guest {}: {error:#}", self.vmid))
    }

    /// Whether it runs.
    pub fn is_up(&self) -> bool {
        self.attempts(&["systemctl", "is-system-running", "--wait"]).is_some_and(|up| {
            // `degraded` is up, too: a container lacks some of what Debian starts.
            matches!(String::from_utf8_lossy(&up.stdout).trim(), "running" | "degraded")
        })
    }

    /// Its process number 1.
    pub fn init(&self) -> Option<u32> {
        self.booted.init()
    }
}
