//! A booted guest, seen from outside.
//!
//! Commands are run by the guest's own systemd, in the guest's own control group: whatever holds the guest still holds them.

use std::path::{Path, PathBuf};
use std::process::Output;

use e2e::place::{Place, User};

pub struct Guest {
    pub vmid: u32,
    /// Its root file system.
    pub tree: PathBuf,
}

impl Guest {
    /// By its number; `sim` is the simulator's folder.
    pub fn new(sim: &Path, vmid: u32) -> Self {
        let tree = sim.join(format!("root/mnt/tank/images/{vmid}/vm-{vmid}-disk-0/tree"));
        assert!(tree.is_dir(), "guest {vmid} has its root on tank: {}", tree.display());
        Self { vmid, tree }
    }

    /// A path in it, as seen from outside.
    pub fn path(&self, inside: &str) -> PathBuf {
        self.tree.join(inside.trim_start_matches('/'))
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

    /// Runs a program in it, and gives how it ended.
    pub fn tries(&self, words: &[&str]) -> Output {
        self.attempts(words).unwrap_or_else(|| panic!("guest {} does not run", self.vmid))
    }

    /// The same of a guest that may be going down or coming up: none where it does not run.
    pub fn attempts(&self, words: &[&str]) -> Option<Output> {
        let init = self.init()?;
        let mut command = Place::default().command("nsenter", User::Same);
        command.arg(format!("--target={init}")).args(["--all", "--wd=/", "--"]);
        command.args(["systemd-run", "--quiet", "--pipe", "--wait", "--collect", "--"]).args(words);
        Some(command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").output().unwrap())
    }

    /// The same, and it must end well.
    pub fn run(&self, words: &[&str]) -> String {
        let output = self.tries(words);
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{}: {}\n{out}{err}", words.join(" "), output.status);
        out.into_owned()
    }

    /// Whether it runs.
    pub fn is_up(&self) -> bool {
        self.attempts(&["systemctl", "is-system-running", "--wait"]).is_some_and(|up| {
            // `degraded` is up, too: a container lacks some of what Debian starts.
            matches!(String::from_utf8_lossy(&up.stdout).trim(), "running" | "degraded")
        })
    }

    /// The process that is number 1 in it: a child of the nspawn that was given its tree. Each start has another; none while it
    /// is down.
    pub fn init(&self) -> Option<u32> {
        let directory = format!("--directory={}", self.tree.display());
        let is_ours = |pid: &u32| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let mut words = line.split(|byte| *byte == 0);
            words.next().is_some_and(|word| word.ends_with(b"systemd-nspawn"))
                && words.any(|word| word == directory.as_bytes())
        };
        let nspawn = processes().find(is_ours)?.to_string();
        processes().find(|pid| {
            let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name));
            let last =
                |name: &str| field(name).and_then(|text| text.split_whitespace().last().map(str::to_owned));
            last("PPid:").as_deref() == Some(&nspawn) && last("NSpid:").as_deref() == Some("1")
        })
    }
}

fn processes() -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}
