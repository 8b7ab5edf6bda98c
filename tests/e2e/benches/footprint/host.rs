//! The measured host: a whole Holdfast of real programs.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use e2e::document;
use e2e::place::User;
use e2e::programs::Programs;
use e2e::stage::{Golden, Options, Runtime, Stage};
use e2e::wait;
use serde_json::{Value, json};
use tempfile::TempDir;

/// A hundred guests take minutes: two restores or backups at a time.
const MADE: Duration = Duration::from_secs(20 * 60);

/// Between two requests to the hub: each starts a program, which would itself be a load.
const ASK: Duration = Duration::from_secs(2);

pub struct Host {
    // Dropped in this order: the stage ends before its folder is removed.
    stage: Stage,
    _folder: TempDir,
}

/// A simulator, a hub and an enrolled agent that runs.
pub fn up() -> Result<Host> {
    let root = rustix::process::geteuid().is_root();
    let folder = tempfile::Builder::new().prefix("holdfast-footprint-").tempdir()?;
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755))?;
    let options = Options {
        programs: Programs::in_folder(&named("HOLDFAST_E2E_PROGRAMS")?)?,
        folder: folder.path().to_owned(),
        runtime: Runtime::Process,
        golden: Golden::read(&named("HOLDFAST_E2E_GOLDEN")?)?,
        seed: Path::new(env!("CARGO_MANIFEST_DIR")).join("../pve-sim/demo-seed"),
        agent_user: if root { User::Unprivileged } else { User::Same },
    };
    let mut stage = Stage::new(options)?;
    stage.start_simulator()?;
    stage.start_hub()?;
    stage.log_in()?;
    stage.set_up_agent()?;
    stage.enrol_agent()?;
    stage.start_agent(None)?;
    Ok(Host { stage, _folder: folder })
}

fn named(variable: &str) -> Result<PathBuf> {
    let value = std::env::var_os(variable);
    value.map(PathBuf::from).with_context(|| format!("{variable} is not set: run `cargo bench-all`"))
}

impl Host {
    /// Sets the desired number of guests, and waits until all run and their controllers were heard.
    pub fn goal(&self, count: u8) -> Result<()> {
        let ground = self.stage.ground();
        let guest = |number: u8| document::guest(&ground, number, &format!("g{number}"), "acme");
        let guests: Vec<Value> = (1..=count).map(guest).collect();
        self.stage.apply(&json!({ "poll_interval_s": 30, "guests": guests }), "a footprint")?;
        let mut reported = 0;
        wait::until(&format!("{count} guests"), MADE, || {
            let well = self.stage.guests()?.iter().filter(|guest| well(guest)).count();
            if well >= reported + 10 {
                eprintln!("{well} of {count} guests are up");
                reported = well;
            }
            if well == usize::from(count) {
                return Ok(Some(()));
            }
            std::thread::sleep(ASK);
            Ok(None)
        })
    }

    pub fn agent_pid(&self) -> Result<u32> {
        self.stage.agent_pid().context("no agent runs")
    }
}

/// Managed, running, and its controller was heard.
fn well(guest: &Value) -> bool {
    guest["status"] == "managed" && guest["run"] == "running" && !guest["controller"].is_null()
}
