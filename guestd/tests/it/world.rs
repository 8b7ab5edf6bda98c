//! Fake programs and units of a test guest, as files.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::guest::Guest;

/// Two stacks that run, one of which has a part that a person stopped, and a third that is stopped on purpose.
const STACKS: &str = r#"
[stack.app]
driver = "compose"
directory = "/srv/app"
after = ["db"]
stop_timeout_s = 1
start_timeout_s = 20

[stack.app.hooks]
pre_quiesce = ["BIN/hook", "pre"]
post_resume = ["BIN/hook", "post"]
timeout_s = 20

[stack.db]
driver = "systemd"
units = ["db.service", "spare.service"]
stop_timeout_s = 1
start_timeout_s = 20

[stack.idle]
driver = "compose"
directory = "/srv/idle"
stop_timeout_s = 1
"#;

const APP: &str = r#"{"name":"app","services":{"web":{"depends_on":{"cache":{}}},"cache":{},"tool":{}}}"#;

/// Whether Docker remembers something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    Yes,
    NoLonger,
}

/// The folder beneath a guest's root.
pub struct World {
    root: PathBuf,
}

impl World {
    pub fn of(guest: &Guest) -> Self {
        let root = guest.path("");
        for folder in [
            "world/c",
            "world/u",
            "world/timers",
            "world/judges",
            "world/fail",
            "world/hold",
            "bin",
            "etc/holdfast",
            "run",
            "var/lib/dpkg",
            "srv/app",
            "srv/idle",
        ] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/fake_programs.sh");
        for name in ["docker", "systemctl", "systemd-run", "dpkg-query", "apt-get", "hook"] {
            symlink(&script, root.join("bin").join(name)).unwrap();
        }
        let world = Self { root };
        let bin = world.root.join("bin");
        fs::write(world.path("etc/holdfast/stacks.toml"), STACKS.replace("BIN", bin.to_str().unwrap()))
            .unwrap();
        fs::write(world.path("world/config-app.json"), APP).unwrap();
        fs::write(world.path("world/config-idle.json"), r#"{"services":{"idle":{}}}"#).unwrap();
        fs::write(world.path("world/log"), "").unwrap();
        fs::write(world.path("var/lib/dpkg/lock-frontend"), "").unwrap();
        world.set_packages("installed apt\nconfig-files old\n");
        for (id, text) in [
            ("web1", "app web running"),
            ("web2", "app web running"),
            ("cache1", "app cache running"),
            ("tool1", "app tool exited"),
            ("idle1", "idle idle exited"),
        ] {
            fs::write(world.path(&format!("world/c/{id}")), format!("{text}\n")).unwrap();
        }
        fs::write(world.path("world/u/db.service"), "active\n").unwrap();
        fs::write(world.path("world/u/spare.service"), "inactive\n").unwrap();
        world.set_time(1_000);
        world.set_boot("boot-a");
        world
    }

    pub fn path(&self, below: &str) -> PathBuf {
        self.root.join(below)
    }

    fn put(&self, below: &str, text: &str) {
        let path = self.path(below);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let new = path.with_extension("new");
        fs::write(&new, text).unwrap();
        fs::rename(&new, &path).unwrap();
    }

    /// Seconds since the boot.
    pub fn set_time(&self, seconds: u64) {
        self.put("proc/uptime", &format!("{seconds}.00 0.00\n"));
    }

    /// Another boot of the guest.
    pub fn set_boot(&self, id: &str) {
        self.put("proc/sys/kernel/random/boot_id", id);
    }

    pub fn set_stacks(&self, text: &str) {
        self.put("etc/holdfast/stacks.toml", text);
    }

    /// The package states as dpkg reports them.
    pub fn set_packages(&self, list: &str) {
        self.put("world/packages", list);
    }

    /// What apt would upgrade, and what packages do to this guest when they change.
    pub fn set_upgrades(&self, packages: &[&str], acts: &str) {
        let line = |name: &&str| format!("Inst {name} [1] (2 Debian-Security:13/stable-security [amd64])\n");
        self.put("world/upgrades", &packages.iter().map(line).collect::<String>());
        self.put("world/apt-acts", acts);
        let (guestd, root) = (env!("CARGO_BIN_EXE_guestd"), self.root.display());
        let hook = format!("{guestd} apt-hook --root {root} --source-address 127.0.7.9\n");
        self.put("world/apt-hook", &hook);
    }

    /// dpkg's frontend lock, as apt has it; it is released when this is dropped.
    pub fn changes_packages(&self) -> fs::File {
        let path = self.path("var/lib/dpkg/lock-frontend");
        let file = fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
        rustix::fs::fcntl_lock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive).unwrap();
        file
    }

    /// The units that systemd was asked to start after packages change, in the order of the calls.
    pub fn judges(&self) -> Vec<Vec<String>> {
        let mut units: Vec<PathBuf> =
            fs::read_dir(self.path("world/judges")).unwrap().map(|entry| entry.unwrap().path()).collect();
        units.sort();
        let words = |unit| fs::read_to_string(unit).unwrap().lines().map(str::to_owned).collect();
        units.into_iter().map(words).collect()
    }

    /// Sets the state of a unit.
    pub fn set_unit(&self, unit: &str, state: &str) {
        self.put(&format!("world/u/{unit}"), &format!("{state}\n"));
    }

    /// Another unit, which runs, is part of this one.
    pub fn consists(&self, unit: &str, part: &str) {
        self.put(&format!("world/parts/{unit}"), part);
        self.set_unit(part, "active");
    }

    /// Other units need this one; their states are set separately.
    pub fn needed(&self, unit: &str, by: &str) {
        self.put(&format!("world/needed/{unit}"), by);
    }

    /// A target pulls these units in; their states do not change.
    pub fn wants(&self, target: &str, units: &str) {
        self.put(&format!("world/wants/{target}"), units);
    }

    /// Sets the state of a container; without a state it is removed.
    pub fn set_container(&self, id: &str, is_suspended: Option<&str>) {
        match is_suspended {
            Some(is_suspended) => {
                fs::write(self.path("world/new"), format!("{is_suspended}\n")).unwrap();
                fs::rename(self.path("world/new"), self.path(&format!("world/c/{id}"))).unwrap();
            }
            None => fs::remove_file(self.path(&format!("world/c/{id}"))).unwrap(),
        }
    }

    /// A container does not end on a stop request: it is killed in the end.
    pub fn set_deaf(&self, id: &str) {
        self.put(&format!("world/deaf/{id}"), "");
    }

    /// A container fails as soon as it is up; or it does so no longer.
    pub fn set_falls(&self, id: &str, falls: bool) {
        match falls {
            true => self.put(&format!("world/falls/{id}"), ""),
            false => fs::remove_file(self.path(&format!("world/falls/{id}"))).unwrap(),
        }
    }

    /// How long Docker would wait for a container, in seconds.
    pub fn set_grace(&self, id: &str, seconds: u64) {
        self.put(&format!("world/grace/{id}"), &seconds.to_string());
    }

    /// The result of a unit when it is stopped.
    pub fn set_result(&self, unit: &str, result: &str) {
        self.put(&format!("world/result/{unit}"), result);
    }

    /// What Docker does by itself when a container ends.
    pub fn set_policy(&self, id: &str, policy: &str) {
        self.put(&format!("world/policy/{id}"), policy);
    }

    /// A container was stopped by hand, as Docker remembers it; or Docker has forgotten that.
    pub fn set_stopped(&self, id: &str, known: Existing) {
        match known {
            Existing::Yes => self.put(&format!("world/stopped/{id}"), ""),
            Existing::NoLonger => fs::remove_file(self.path(&format!("world/stopped/{id}"))).unwrap(),
        }
    }

    /// With which code a unit's program ended.
    pub fn set_status(&self, unit: &str, code: u8) {
        self.put(&format!("world/status/{unit}"), &code.to_string());
    }

    /// `fail` or `hold`, an act and what it is about.
    pub fn fault(&self, kind: &str, act: &str) {
        fs::write(self.path(&format!("world/{kind}/{act}")), "").unwrap();
    }

    pub fn no_trouble(&self, kind: &str, act: &str) {
        fs::remove_file(self.path(&format!("world/{kind}/{act}"))).unwrap();
    }

    /// The state of every container and unit.
    pub fn states(&self) -> BTreeMap<String, String> {
        let mut states = BTreeMap::new();
        for folder in ["world/c", "world/u"] {
            for entry in fs::read_dir(self.path(folder)).unwrap() {
                let path = entry.unwrap().path();
                let name = path.file_name().unwrap().to_str().unwrap().to_owned();
                let Ok(text) = fs::read_to_string(&path) else { continue };
                if !name.ends_with(".new") {
                    states.insert(name, text.split_whitespace().last().unwrap_or_default().to_owned());
                }
            }
        }
        states
    }

    pub fn log(&self) -> Vec<String> {
        fs::read_to_string(self.path("world/log")).unwrap().lines().map(str::to_owned).collect()
    }

    /// The calls that changed something.
    pub fn acts(&self) -> Vec<String> {
        let changes = |line: &String| {
            ["docker stop", "docker start", "systemctl stop -- db", "systemctl start", "BARE", "hook"]
                .iter()
                .any(|verb| line.starts_with(verb))
        };
        self.log().into_iter().filter(changes).collect()
    }

    /// What the armed timer would start.
    pub fn timer(&self) -> Option<Vec<String>> {
        let entry = fs::read_dir(self.path("world/timers")).unwrap().next()?;
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        Some(text.lines().map(str::to_owned).collect())
    }

    /// Timers live in the memory of PID 1.
    pub fn lose_timers(&self) {
        for entry in fs::read_dir(self.path("world/timers")).unwrap() {
            fs::remove_file(entry.unwrap().path()).unwrap();
        }
    }

    pub fn marker(&self) -> bool {
        self.path("var/lib/holdfast/quiesce.json").exists()
    }

    /// Nothing was stopped without marker and timer.
    pub fn was_guarded(&self) -> bool {
        self.log().iter().all(|line| !line.starts_with("BARE"))
    }
}
