//! A whole Holdfast with one booted guest, and an operator who can sign.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
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
const RESTORED_S: &str = "600";

/// All of it. Dropped in this order: the stage ends before its disk goes.
pub struct Stand {
    pub stage: Stage,
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
    /// Sets everything up and waits for the guest.
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
        let mut stand = Self { stage: stage.unwrap(), key, disk, folder, begun };
        stand.step("a Proxmox, a hub, an agent");
        stand.stage.start_simulator().unwrap();
        stand.stage.start_hub().unwrap();
        stand.stage.log_in().unwrap();
        stand.stage.set_up_agent().unwrap();
        stand.operator();
        stand.stage.enrol_agent().unwrap();
        stand.stage.start_agent(None).unwrap();
        stand.step("a guest is made, booted, heard and backed up");
        let shop = document::guest(&stand.stage.ground(), 1, SHOP, "acme");
        stand.stage.apply(&json!({ "poll_interval_s": 5, "guests": [shop] }), "a shop").unwrap();
        wait::until("the guest", MADE, || Ok(stand.stage.guests()?.iter().any(well).then_some(()))).unwrap();
        stand
    }

    /// A key of the operator's, laid down by root where the agent's settings say.
    fn operator(&self) {
        let key = self.key.to_str().unwrap();
        disk::run("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-C", "ada", "-f", key]);
        let line = format!("ada {}", std::fs::read_to_string(self.key.with_extension("pub")).unwrap());
        let agent = self.stage.state().parent().unwrap().to_owned();
        std::fs::write(agent.join("operators"), line).unwrap();
        std::fs::write(agent.join("policy.toml"), "version = 1\n").unwrap();
    }

    /// A step begins.
    pub fn step(&self, what: &str) {
        println!("{:6.1} s  {what}", self.begun.elapsed().as_secs_f32());
    }

    /// The simulator's folder.
    pub fn sim(&self) -> PathBuf {
        self.stage.folder().join("sim")
    }

    /// The archives on the backup storage, by the time at which they were begun.
    pub fn archives(&self) -> BTreeMap<std::time::SystemTime, PathBuf> {
        let entries = std::fs::read_dir(self.sim().join("root/mnt/backup2/dump")).unwrap();
        let files = entries.map(|entry| entry.unwrap().path());
        let archives = files.filter(|path| path.to_str().unwrap().ends_with(".tar.zst"));
        archives.map(|path| (path.metadata().unwrap().created().unwrap(), path)).collect()
    }

    /// Restores an archive beside the guest, by a signature, and gives the copy, which stands still.
    pub fn restore(&self, archive: &Path) -> Guest {
        let before = self.stage.configurations().unwrap();
        let volume = format!("backup2:backup/{}", archive.file_name().unwrap().to_str().unwrap());
        let job = self.folder.path().join("job.json");
        let (key, file) = (self.key.to_str().unwrap(), job.to_str().unwrap());
        let mut words = vec!["sign", HOST, SHOP, "--key", key, "--restore", &volume, "--confirm", SHOP];
        words.extend(["--reason", "what does it hold?", "--submit", "--out", file]);
        // The hub hears of the operators with a report.
        let mut signed: Option<Value> = None;
        wait::until("a signature", Duration::from_secs(60), || {
            signed = self.stage.holdfast(&words).ok();
            Ok(signed.is_some().then_some(()))
        })
        .unwrap();
        let id = signed.unwrap()["job"].as_str().unwrap().to_owned();
        let end = self.stage.holdfast(&["job", "watch", HOST, &id, "--timeout", RESTORED_S]).unwrap();
        assert_eq!(end["report"]["state"], "done", "{end:#}");
        let _ = std::fs::remove_file(job);
        let after = self.stage.configurations().unwrap();
        let copy = after.keys().find(|vmid| !before.contains_key(vmid)).expect("a copy beside the guest");
        Guest::new(&self.sim(), *copy)
    }

    /// Ends it all in order.
    pub fn finish(mut self) {
        self.stage.stop_agent().unwrap();
        self.stage.stop_hub().unwrap();
        self.stage.nothing_forbidden_was_sent().unwrap();
        self.step(&format!("the end; {} of the disk in use", self.disk.used()));
    }
}

/// A test that failed tells the last words of its programs; the disk goes, or it would stay mounted.
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

/// Managed, running, its controller was heard.
fn well(guest: &Value) -> bool {
    guest["standing"] == "managed" && guest["run"] == "running" && !guest["controller"].is_null()
}
