//! What must outlive a restart of the simulator, over the real wire.
#![forbid(unsafe_code)]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "the helpers of a test fail the test"
)]

use crate::client::{Client, open};
use serde_json::Value;

#[test]
fn guests_rights_tasks_and_pins_survive() {
    let state = tempfile::tempdir().expect("folder");
    let (digest, pin, log) = {
        let first = open(state.path());
        let client = Client::of(&first);
        let archive = "backup2:backup/vzdump-lxc-140-2026_11_21-04_00_56.tar.zst";
        assert_eq!(
            client.task(
                "POST",
                "/nodes/pve1/lxc",
                &format!("vmid=150&restore=1&ostemplate={archive}&storage=labbtrfs&pool=labpool")
            ),
            "OK"
        );
        assert_eq!(client.task("POST", "/nodes/pve1/lxc/150/status/start", ""), "OK");
        assert_eq!(client.task("POST", "/nodes/pve1/lxc/150/snapshot", "snapname=s1"), "OK");
        let (_, config) = client.ask("GET", "/nodes/pve1/lxc/150/config", "");
        let (_, tasks) = client.ask("GET", "/nodes/pve1/tasks", "");
        assert_eq!(tasks["total"], 3);
        (config["data"]["digest"].clone(), first.identity.spki_sha256, tasks["data"][0]["upid"].clone())
    };
    let second = open(state.path());
    let client = Client::of(&second);
    assert_eq!(second.identity.spki_sha256, pin);
    let (_, config) = client.ask("GET", "/nodes/pve1/lxc/150/config", "");
    assert_eq!(config["data"]["digest"], digest);
    let (_, current) = client.ask("GET", "/nodes/pve1/lxc/150/status/current", "");
    assert_eq!(current["data"]["status"], "running");
    let (_, pool) = client.ask("GET", "/pools/labpool", "");
    assert_eq!(pool["data"]["members"][0]["vmid"], 150);
    let (_, lines) =
        client.ask("GET", &format!("/nodes/pve1/tasks/{}/log", log.as_str().expect("a name")), "");
    assert_eq!(lines["data"][0]["t"], "TASK OK");
}

#[test]
fn a_task_that_ran_when_the_simulator_died_ended_unexpectedly() {
    let state = tempfile::tempdir().expect("folder");
    let upid = "UPID:pve1:00000FFF:0005DA34:6B011677:vzrestore:150:agent@pve!hostagent:";
    drop(open(state.path()));
    std::fs::write(state.path().join("tasks/active"), format!("{upid}\n")).expect("mark");
    let again = open(state.path());
    let (status, body) = Client::of(&again).ask("GET", &format!("/nodes/pve1/tasks/{upid}/status"), "");
    assert_eq!((status, &body["data"]["exitstatus"]), (200, &Value::from("unexpected status")));
}

#[test]
fn a_killed_restore_leaves_a_locked_shell_that_only_a_hand_can_clear() {
    use pve_sim::fault::Fault;
    use pve_sim::fault::admin::{Edit, apply};
    let state = tempfile::tempdir().expect("folder");
    let opened = open(state.path());
    let client = Client::of(&opened);
    opened.node.faults.arm(Fault::KillWorker { task: "vzrestore".into(), phase: "unpacking".into() });
    let form = "vmid=150&restore=1&ostemplate=backup2:backup/vzdump-lxc-140-2026_11_21-04_00_56.tar.zst&storage=labdir";
    assert_eq!(client.task("POST", "/nodes/pve1/lxc", form), "unexpected status");
    assert_eq!(opened.node.world().guests.get(150).expect("shell").print(), "lock: create\n");
    let (status, body) = client.ask("POST", "/nodes/pve1/lxc", form);
    assert_eq!((status, body["message"].as_str()), (500, Some("CT 150 already exists on node 'pve1'\n")));
    let (status, body) = client.ask("DELETE", "/nodes/pve1/lxc/150", "");
    assert_eq!((status, body["message"].as_str()), (500, Some("CT is locked (create)\n")));
    apply(&opened.node, &Edit::Destroy { vmid: 150 }).expect("by hand");
    assert_eq!(client.ask("GET", "/cluster/nextid?vmid=150", "").0, 200);
}
