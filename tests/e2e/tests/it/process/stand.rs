//! A running stage for one test.

use std::path::{Path, PathBuf};

use e2e::place::User;
use e2e::programs::Programs;
use e2e::stage::{Golden, Options, Runtime, Stage};
use tempfile::TempDir;

/// A stage and its folder.
pub struct Stand {
    // Dropped in this order: the stage ends before its folder is removed.
    pub stage: Stage,
    folder: TempDir,
}

/// A test that failed leaves its folder, with all logs in it. One that passed must not have sent a forbidden
/// request, and must not have written a secret to a log.
impl Drop for Stand {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.folder.disable_cleanup(true);
            eprintln!("kept: {}", self.folder.path().display());
        } else {
            self.stage.nothing_forbidden_was_sent().unwrap();
            self.stage.no_secret_was_logged().unwrap();
        }
    }
}

fn named(variable: &str) -> PathBuf {
    std::env::var_os(variable)
        .unwrap_or_else(|| panic!("{variable} is not set: run `cargo xtask e2e`"))
        .into()
}

/// A foreign guest that is on the host from the beginning.
pub const FOREIGN_VMID: u32 = 5500;

const FOREIGN: &str = "arch: amd64\nhostname: somebody-elses\nmemory: 256\nostype: debian\n\
                       rootfs: tank:5500/vm-5500-disk-0.raw,size=1G\nswap: 0\nunprivileged: 1\n";

fn seed(folder: &Path) -> PathBuf {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../pve-sim/demo-seed");
    let seed = folder.join("seed");
    std::fs::create_dir(&seed).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), seed.join(entry.file_name())).unwrap();
    }
    std::fs::write(seed.join(format!("{FOREIGN_VMID}.conf")), FOREIGN).unwrap();
    seed
}

/// Everything up to the enrolled agent, which does not run yet.
pub fn enrolled() -> Stand {
    enrol(laid())
}

/// The same on a host that is a network namespace, whose guests are only marked as running.
pub fn enrolled_in(namespace: &str) -> Stand {
    let mut stand = laid_with(Runtime::Inert);
    stand.stage.stand_in(Path::new("/run/netns").join(namespace));
    enrol(stand)
}

/// Starts simulator and hub, and enrols the agent.
pub fn enrol(mut stand: Stand) -> Stand {
    let stage = &mut stand.stage;
    stage.start_simulator().unwrap();
    stage.start_hub().unwrap();
    stage.log_in().unwrap();
    stage.set_up_agent().unwrap();
    stage.enrol_agent().unwrap();
    stand
}

/// A stage on which nothing runs yet.
pub fn laid() -> Stand {
    laid_with(Runtime::Process)
}

fn laid_with(runtime: Runtime) -> Stand {
    let folder = tempfile::Builder::new().prefix("holdfast-e2e-").tempdir().unwrap();
    let root = rustix_uid() == 0;
    open(folder.path());
    let programs = Programs::in_folder(&named("HOLDFAST_E2E_PROGRAMS")).unwrap();
    let options = Options {
        programs,
        folder: folder.path().to_owned(),
        runtime,
        golden: Golden::read(&named("HOLDFAST_E2E_GOLDEN")).unwrap(),
        seed: seed(folder.path()),
        agent_user: if root { User::Unprivileged } else { User::Same },
    };
    Stand { stage: Stage::new(options).unwrap(), folder }
}

/// The same, with the agent running.
pub fn running() -> Stand {
    let mut stand = enrolled();
    stand.stage.start_agent(None).unwrap();
    stand
}

fn open(folder: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn rustix_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Managed, running, and its controller was heard.
pub fn well(guest: &serde_json::Value) -> bool {
    guest["status"] == "managed" && guest["run"] == "running" && !guest["controller"].is_null()
}
