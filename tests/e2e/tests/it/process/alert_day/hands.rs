//! Operators, accidents and their effects on a host and its hub.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::super::stand::Stand;

/// Little use, in percent.
const CALM: u64 = 10;

/// Changes the node by hand.
pub fn by_hand(stand: &Stand, orders: &[Value]) {
    let file = stand.stage.folder().join("orders");
    let lines: String = orders.iter().map(|order| format!("{order}\n")).collect();
    std::fs::write(&file, lines).unwrap();
    stand.stage.fault(&["script", file.to_str().unwrap()]).unwrap();
}

/// An order to change something by hand.
pub fn edit(edit: &Value) -> Value {
    json!({ "edit": edit })
}

/// The machine that plays the host may be busy or full. The host is not.
pub fn calm(stand: &Stand) {
    uses(stand, None, Some([CALM, CALM, CALM]));
}

/// How much CPU time, memory and root disk a guest or the node shows to use, in percent.
pub fn uses(stand: &Stand, vmid: Option<u32>, percent: Option<[u64; 3]>) {
    let percent = percent.map(|[cpu, memory, disk]| json!({ "cpu": cpu, "memory": memory, "disk": disk }));
    by_hand(stand, &[edit(&json!({ "edit": "use", "vmid": vmid, "percent": percent }))]);
}

/// Sends a signal to the simulator.
pub fn signal(stand: &Stand, signal: Signal) {
    let pid = i32::try_from(stand.stage.simulator_pid().unwrap()).unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

/// A brake that lets documents stop no guest.
pub fn hold_every_stop(stand: &Stand) {
    let config = stand.stage.state().with_file_name("agent.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    let lines = text.lines().map(|line| match line.split_once(" = ") {
        Some((key @ ("at_least" | "share_percent"), _)) => format!("{key} = 0\n"),
        _ => format!("{line}\n"),
    });
    std::fs::write(&config, lines.collect::<String>()).unwrap();
}

/// Writes a file that every user can read, with the folders above it.
pub fn write(file: &Path, text: &str) {
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, text).unwrap();
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o644)).unwrap();
}

/// The number of a guest in Proxmox.
pub fn vmid(stand: &Stand, name: &str) -> u32 {
    configuration(stand, name).0
}

/// The number of a guest in Proxmox, and its configuration.
pub fn configuration(stand: &Stand, name: &str) -> (u32, String) {
    let line = format!("hostname: {name}");
    let all = stand.stage.configurations().unwrap();
    all.into_iter().find(|(_, text)| text.lines().any(|one| one == line)).unwrap()
}

/// The records of an agent that does not run. Its files are its user's again when this is dropped.
pub fn records(stand: &Stand) -> rusqlite::Connection {
    rusqlite::Connection::open(stand.stage.state().join("agent.db")).unwrap()
}

/// What the programs under test take for now, since 1970.
pub fn now() -> Duration {
    UNIX_EPOCH.elapsed().unwrap()
}
