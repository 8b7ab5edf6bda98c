//! A whole Holdfast with booted guests.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use e2e::document;
use e2e::place::User;
use e2e::programs::Programs;
use e2e::stage::{Golden, HOST, Options, Runtime, Stage};
use e2e::wait;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::disk::{self, Disk};
use super::guest::Guest;

/// The guest's name.
pub const SHOP: &str = "shop";
/// A Debian is restored, booted and backed up once; nothing is measured by it.
const MADE: Duration = Duration::from_secs(600);
/// A restore of a guest with its data.
const JOB_S: &str = "600";

/// The whole stand. Dropped in this order: the stage ends before its disk is removed.
pub struct Stand {
    pub stage: Stage,
    /// The desired document of the operator.
    document: Mutex<Value>,
    key: PathBuf,
    disk: Disk,
    folder: TempDir,
    begun: Instant,
}

fn named(variable: &str) -> PathBuf {
    std::env::var_os(variable)
        .unwrap_or_else(|| panic!("{variable} is not set: run `cargo xtask stacks`"))
        .into()
}

impl Stand {
    /// Sets everything up, without guests.
    pub fn new() -> Self {
        let begun = Instant::now();
        let folder = tempfile::Builder::new().prefix(disk::PREFIX).tempdir().unwrap();
        open(folder.path());
        let mount = folder.path().join("disk");
        let disk = Disk::new(&named("HOLDFAST_STACKS_DISK"), &mount);
        let place = mount.join("stage");
        std::fs::create_dir(&place).unwrap();
        open(&place);
        let stage = Stage::new(Options {
            programs: Programs::in_folder(&named("HOLDFAST_E2E_PROGRAMS")).unwrap(),
            folder: place,
            runtime: Runtime::Nspawn,
            golden: Golden::read(&named("HOLDFAST_E2E_GOLDEN")).unwrap(),
            seed: Path::new(env!("CARGO_MANIFEST_DIR")).join("../pve-sim/demo-seed"),
            agent_user: User::Unprivileged,
        });
        let key = folder.path().join("key");
        let document = Mutex::new(json!({ "poll_interval_s": 5, "guests": [] }));
        let mut stand = Self { stage: stage.unwrap(), document, key, disk, folder, begun };
        stand.step("a Proxmox, a hub, an agent");
        stand.stage.start_simulator().unwrap();
        stand.stage.start_hub().unwrap();
        stand.stage.log_in().unwrap();
        stand.stage.set_up_agent().unwrap();
        stand.operator();
        stand.stage.enrol_agent().unwrap();
        stand.stage.start_agent(None).unwrap();
        stand
    }

    /// A guest that is made for it, booted and heard.
    pub fn made(&self, number: u8, name: &str) -> Guest {
        self.step(&format!("{name}: made, booted, heard and backed up"));
        let guest = document::guest(&self.stage.ground(), number, name, "acme");
        self.goal(name, |document| document["guests"].as_array_mut().unwrap().push(guest));
        let made = wait::until(name, MADE, || {
            Ok(self.reported(name)?.filter(well).map(|reported| reported["vmid"].clone()))
        });
        let vmid = u32::try_from(made.unwrap().as_u64().expect("a number")).unwrap();
        let guest = Guest::new(&self.sim(), vmid);
        wait::until("its boot", MADE, || Ok(guest.is_up().then_some(()))).unwrap();
        guest
    }

    /// Changes the desired document. The lock allows one change at a time, because the document is sent as a whole.
    pub fn goal(&self, reason: &str, change: impl FnOnce(&mut Value)) {
        let mut document = self.document.lock().unwrap();
        change(&mut document);
        self.stage.apply(&document, reason).unwrap();
    }

    /// What is reported to the hub of a guest.
    pub fn reported(&self, name: &str) -> anyhow::Result<Option<Value>> {
        Ok(self.stage.guests()?.into_iter().find(|guest| guest["name"] == name))
    }

    /// A program of ours, as it was built.
    pub fn program(name: &str) -> PathBuf {
        named("HOLDFAST_E2E_PROGRAMS").join(name)
    }

    /// The operator's key.
    pub fn key(&self) -> &Path {
        &self.key
    }

    /// A folder for files that a story needs in addition to the stage.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Makes the operator's key, and writes the operators file and the policy as root would.
    fn operator(&self) {
        let key = self.key.to_str().unwrap();
        disk::run("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-C", "ada", "-f", key]);
        let line = format!("ada {}", std::fs::read_to_string(self.key.with_extension("pub")).unwrap());
        let agent = self.stage.state().parent().unwrap().to_owned();
        std::fs::write(agent.join("operators"), line).unwrap();
        std::fs::write(agent.join("policy.toml"), "version = 1\n").unwrap();
    }

    /// Prints the heading of a step.
    pub fn step(&self, what: &str) {
        println!("{:6.1} s  {what}", self.begun.elapsed().as_secs_f32());
    }

    /// The simulator's folder.
    pub fn sim(&self) -> PathBuf {
        self.stage.folder().join("sim")
    }

    /// A guest's archives on the backup storage, by the time at which they were begun.
    pub fn archives(&self, of: &Guest) -> BTreeMap<std::time::SystemTime, PathBuf> {
        let entries = std::fs::read_dir(self.sim().join("root/mnt/backup2/dump")).unwrap();
        let begins = format!("vzdump-lxc-{}-", of.vmid);
        let is_one = |path: &PathBuf| {
            let name = path.file_name().unwrap().to_str().unwrap();
            name.starts_with(&begins) && name.ends_with(".tar.zst")
        };
        let archives = entries.map(|entry| entry.unwrap().path()).filter(is_one);
        archives.map(|path| (path.metadata().unwrap().created().unwrap(), path)).collect()
    }

    /// Restores an archive next to the guest, by a signature, and returns the copy, which is stopped.
    pub fn restore(&self, archive: &Path) -> Guest {
        let before = self.stage.configurations().unwrap();
        let volume = format!("backup2:backup/{}", archive.file_name().unwrap().to_str().unwrap());
        self.sign(&[SHOP, "--restore", &volume, "--confirm", SHOP], "what does it hold?");
        let after = self.stage.configurations().unwrap();
        // Guests of others may have been made meanwhile.
        let is_copy = |text: &str| text.lines().any(|line| line == format!("hostname: {SHOP}-copy"));
        let copies = after.iter().filter(|(vmid, text)| !before.contains_key(vmid) && is_copy(text));
        Guest::new(&self.sim(), *copies.map(|(vmid, _)| vmid).next().expect("a copy beside the guest"))
    }

    /// Has an operator sign, and follows what was signed to its end.
    pub fn sign(&self, what: &[&str], reason: &str) {
        let job = tempfile::Builder::new().prefix("job-").tempdir_in(self.folder.path()).unwrap();
        let file = job.path().join("job.json");
        let (key, file) = (self.key.to_str().unwrap(), file.to_str().unwrap());
        let with = ["--key", key, "--reason", reason, "--submit", "--out", file];
        let words = [&["sign", HOST], what, &with].concat();
        // The hub learns of the operators from a report.
        let mut signed: Option<Value> = None;
        wait::until("a signature", Duration::from_secs(60), || {
            signed = self.stage.holdfast(&words).ok();
            Ok(signed.is_some().then_some(()))
        })
        .unwrap();
        let id = signed.unwrap()["job"].as_str().unwrap().to_owned();
        let end = self.stage.holdfast(&["job", "watch", HOST, &id, "--timeout", JOB_S]).unwrap();
        assert_eq!(end["report"]["state"], "done", "{end:#}");
    }

    /// Ends it all in order.
    pub fn finish(mut self) {
        self.stage.stop_agent().unwrap();
        self.stage.stop_hub().unwrap();
        self.stage.nothing_forbidden_was_sent().unwrap();
        self.step(&format!("the end; {} of the disk in use", self.disk.used()));
    }
}

/// A failed test prints the last log lines of its programs. The disk is removed; otherwise it would stay mounted.
impl Drop for Stand {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = std::fs::read_to_string(self.stage.agent_log()).unwrap_or_default();
            let lines: Vec<&str> = log.lines().collect();
            eprintln!("the agent's last words:\n{}", lines[lines.len().saturating_sub(40)..].join("\n"));
        }
    }
}

fn open(folder: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// A guest in the desired document.
pub fn guest_in<'a>(document: &'a mut Value, name: &str) -> &'a mut Value {
    let guests = document["guests"].as_array_mut().expect("a list");
    guests.iter_mut().find(|guest| guest["name"] == name).expect("it is asked for")
}

/// Managed, running, its controller was heard.
fn well(guest: &Value) -> bool {
    guest["status"] == "managed" && guest["run"] == "running" && !guest["controller"].is_null()
}
