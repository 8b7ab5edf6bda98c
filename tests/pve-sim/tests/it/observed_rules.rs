//! Tests of rules seen on genuine nodes.
#![forbid(unsafe_code)]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "the helpers of a test fail the test"
)]

use std::sync::Arc;

use pve_sim::Opened;
use pve_sim::fault::Fault;
use pve_sim::fault::admin::{Edit, apply};
use pve_sim::node::Figures;
use serde_json::{Value, json};

use crate::client::{Client, builder, open, wait_until};

const ARCHIVE: &str = "backup2:backup/vzdump-lxc-140-2026_11_21-04_00_56.tar.zst";

fn restore_form(vmid: u32) -> String {
    format!("vmid={vmid}&restore=1&ostemplate={ARCHIVE}&storage=labbtrfs&pool=labpool")
}

fn with_guest(opened: &Opened) -> Client {
    let client = Client::of(opened);
    assert_eq!(client.task("POST", "/nodes/pve1/lxc", &restore_form(150)), "OK");
    client
}

fn log(client: &Client, upid: &str) -> Vec<String> {
    let (_, log) = client.ask("GET", &format!("/nodes/pve1/tasks/{upid}/log?limit=500"), "");
    let lines = log["data"].as_array().expect("lines").iter();
    lines.map(|line| line["t"].as_str().expect("a line").to_owned()).collect()
}

/// Starts a task that stays in a phase until it is released or ended; returns its name.
fn held(client: &Client, (task, phase): (&str, &str), call: (&str, &str, &str)) -> String {
    let hold = Fault::HoldWorker { task: task.to_owned(), phase: phase.to_owned(), hold_ms: 600_000 };
    client.node.faults.arm(hold);
    let (status, body) = client.ask(call.0, call.1, call.2);
    assert_eq!(status, 200, "{body}");
    // The fault is used up when the worker has reached the phase.
    wait_until("the phase", || client.node.faults.armed().is_empty());
    body["data"].as_str().expect("a task").to_owned()
}

fn end(client: &Client, upid: &str) -> String {
    wait_until("the task to end", || client.node.tasks.running(upid).is_none());
    client.node.tasks.ended(upid).expect("an end").status
}

#[test]
fn a_restore_that_is_stopped_ends_with_its_command_and_one_that_is_killed_without_a_word() {
    let state = tempfile::tempdir().expect("folder");
    let opened = open(state.path());
    let client = Client::of(&opened);
    let call = ("POST", "/nodes/pve1/lxc", restore_form(151));
    let upid = held(&client, ("vzrestore", "unpacking"), (call.0, call.1, &call.2));
    assert_eq!(client.ask("DELETE", &format!("/nodes/pve1/tasks/{upid}"), "").0, 200);
    let reported = end(&client, &upid);
    assert!(
        reported.starts_with("unable to restore CT 151 - command '") && reported.contains("tar xpf - "),
        "{reported}"
    );
    assert!(reported.ends_with("' failed: received interrupt"), "{reported}");
    assert!(!opened.node.world().guests.has(151), "configuration and disks are gone");

    let call = ("POST", "/nodes/pve1/lxc", restore_form(152));
    let upid = held(&client, ("vzrestore", "unpacking"), (call.0, call.1, &call.2));
    opened.node.tasks.running(&upid).expect("it runs").kill();
    assert_eq!(end(&client, &upid), "unexpected status");
    assert_eq!(
        opened.node.world().guests.get(152).expect("left").lock(),
        Some("create"),
        "nothing is cleaned up"
    );
}

#[test]
fn what_runs_on_a_node_that_goes_down_ends_each_in_its_own_way() {
    let state = tempfile::tempdir().expect("folder");
    let opened = open(state.path());
    let client = with_guest(&opened);
    let form = restore_form(153);
    let restore = held(&client, ("vzrestore", "unpacking"), ("POST", "/nodes/pve1/lxc", &form));
    let dump = held(&client, ("vzdump", "copy"), ("POST", "/nodes/pve1/vzdump", "vmid=150&storage=backup2"));
    let start = held(&client, ("vzstart", "start"), ("POST", "/nodes/pve1/lxc/200/status/start", ""));
    let going_down = Arc::clone(&opened.node);
    apply(&going_down, &Edit::ShutDown).expect("a reboot");
    assert_eq!(
        end(&client, &restore),
        "unable to restore CT 153 - command 'timedatectl show '--property=Timezone' --value' failed: exit code 1"
    );
    assert!(!opened.node.world().guests.has(153));
    assert_eq!(
        (end(&client, &dump), end(&client, &start)),
        ("job errors".to_owned(), "unexpected status".to_owned())
    );
    assert!(log(&client, &dump).iter().any(|line| line.ends_with("failed: interrupted by signal")));
    assert_eq!(opened.node.world().guests.get(150).expect("guest").lock(), None, "its lock is off");
    // It is up again.
    assert_eq!(client.task("POST", "/nodes/pve1/lxc", &restore_form(154)), "OK");
}

#[test]
fn two_interfaces_of_one_name_keep_a_guest_down_and_the_log_says_why() {
    let state = tempfile::tempdir().expect("folder");
    let opened = open(state.path());
    let client = with_guest(&opened);
    for key in ["net0", "net1"] {
        let value = "name=eth0,bridge=vmbr0,hwaddr=BC:24:11:00:00:01,type=veth".to_owned();
        apply(&opened.node, &Edit::Set { vmid: 150, key: key.to_owned(), value }).expect("an edit");
    }
    let upid = client.ended("POST", "/nodes/pve1/lxc/150/status/start", "");
    assert_eq!(end(&client, &upid), "startup for container '150' failed");
    let lines = log(&client, &upid);
    let said = lines.iter().position(|line| {
        line.contains("__netdev_configure_container_common: ") && line.contains("File exists")
    });
    assert_eq!(said.map(|at| lines[at + 1].as_str()), Some("TASK ERROR: startup for container '150' failed"));
    assert!(!opened.node.power.is_running(150));
}

#[test]
fn the_list_of_resources_is_as_old_as_the_last_round() {
    let state = tempfile::tempdir().expect("folder");
    // No round but the first within the time of a test.
    let opened = builder(state.path()).figures(Figures::Every(3_600)).open().expect("an instance");
    let client = with_guest(&opened);
    let row = |client: &Client, vmid: u32| -> Value {
        let (_, body) = client.ask("GET", "/cluster/resources?type=vm", "");
        let rows = body["data"].as_array().expect("a list");
        rows.iter().find(|row| row["vmid"] == vmid).cloned().unwrap_or_default()
    };
    assert_eq!(row(&client, 150)["status"], "stopped");
    assert_eq!(client.task("POST", "/nodes/pve1/lxc/150/status/start", ""), "OK");
    apply(&opened.node, &Edit::Set { vmid: 150, key: "tags".into(), value: "new".into() }).expect("an edit");
    apply(&opened.node, &Edit::Set { vmid: 150, key: "lock".into(), value: "backup".into() })
        .expect("an edit");
    let seen = row(&client, 150);
    assert_eq!((&seen["status"], &seen["uptime"]), (&json!("stopped"), &json!(0)), "as it was");
    assert_eq!(
        (&seen["tags"], &seen["lock"], &seen["pool"]),
        (&json!("new"), &json!("backup"), &json!("labpool"))
    );
    assert_eq!(client.task("POST", "/nodes/pve1/lxc", &restore_form(155)), "OK");
    let unknown = row(&client, 155);
    assert_eq!(
        (&unknown["status"], unknown.get("name")),
        (&json!("unknown"), None),
        "not seen yet: {unknown}"
    );
    let (_, list) = client.ask("GET", "/nodes/pve1/lxc", "");
    let live = list["data"].as_array().expect("a list").iter().find(|row| row["vmid"] == 150).cloned();
    assert_eq!(live.expect("listed")["status"], "running", "the node's own list is live");
}

#[test]
fn a_guest_from_a_template_with_ssh_gets_host_keys_and_one_without_none() {
    let state = tempfile::tempdir().expect("folder");
    let opened = open(state.path());
    let client = Client::of(&opened);
    let cache = state.path().join("root/mnt/labdir/template/cache");
    std::fs::create_dir_all(&cache).expect("folder");
    for (name, folder) in [("with", "./etc/ssh/"), ("without", "./etc/")] {
        let file = std::fs::File::create(cache.join(format!("{name}.tar"))).expect("a file");
        let mut tar = tar::Builder::new(file);
        for (entry, kind, text) in [
            (folder, tar::EntryType::Directory, ""),
            ("./etc/debian_version", tar::EntryType::Regular, "13\n"),
        ] {
            let mut header = tar::Header::new_gnu();
            header.set_entry_type(kind);
            header.set_mode(0o755);
            header.set_size(text.len() as u64);
            header.set_uid(0);
            header.set_gid(0);
            header.set_mtime(0);
            tar.append_data(&mut header, entry, text.as_bytes()).expect("an entry");
        }
        tar.into_inner().expect("a template");
    }
    for (vmid, name, keys) in [(160, "with", 3), (161, "without", 0)] {
        let form = format!(
            "vmid={vmid}&ostemplate=labdir:vztmpl/{name}.tar&storage=labbtrfs&pool=labpool&unprivileged=1"
        );
        let upid = client.ended("POST", "/nodes/pve1/lxc", &form);
        let reported_end = end(&client, &upid);
        assert!(reported_end == "OK" || reported_end.starts_with("WARNINGS"), "{reported_end}");
        let reported = log(&client, &upid).iter().filter(|line| line.contains("SSH host key")).count();
        assert_eq!(reported, keys, "{name}");
    }
}
