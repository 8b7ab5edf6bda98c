//! Tests of each fault.
#![forbid(unsafe_code)]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    dead_code,
    reason = "the helpers of a test fail the test, and not every test uses every helper"
)]

use std::path::Path;

use crate::client::{Client, open};
use pve_sim::fault::admin::{Edit, apply};
use pve_sim::fault::control::{Order, Outcome, obey};
use pve_sim::fault::mishap::{Mishap, Origin, Target, heal};
use pve_sim::fault::{Aim, Fault};
use pve_sim::{Opened, wire::Spoil};

/// An instance with one restored guest, 150, on snapshot-capable storage.
fn with_guest(state: &Path) -> (Opened, Client) {
    let opened = open(state);
    let client = Client::of(&opened);
    let archive = "backup2:backup/vzdump-lxc-140-2026_11_21-04_00_56.tar.zst";
    let form = format!("vmid=150&restore=1&ostemplate={archive}&storage=labbtrfs&pool=labpool");
    assert_eq!(client.task("POST", "/nodes/pve1/lxc", &form), "OK");
    (opened, client)
}

fn any() -> Aim {
    Aim { method: String::new(), path: String::new() }
}

fn archives(client: &Client) -> usize {
    let (_, body) = client.ask("GET", "/nodes/pve1/storage/backup2/content?content=backup&vmid=150", "");
    body["data"].as_array().expect("a list").len()
}

#[test]
fn answers_that_are_not_the_daemons() {
    let state = tempfile::tempdir().expect("folder");
    let opened = open(state.path());
    let client = Client::of(&opened);
    let faults = [
        (Fault::Unauthorised { on: any() }, 401, "Authentication failed!"),
        (Fault::Unavailable { on: any() }, 503, "Service Unavailable"),
        (
            Fault::NoClusterFiles { on: any() },
            500,
            "RPCEnvironment init request failed: Unable to load access control list: Connection refused",
        ),
        (Fault::DaemonDown { on: any() }, 595, "Connection refused"),
    ];
    for (fault, status, reason) in faults {
        opened.node.faults.arm(fault.clone());
        let response = client.send("GET", "/version", "");
        assert_eq!((response.status, response.reason.as_str()), (status, reason), "{fault:?}");
        assert_eq!(client.send("GET", "/version", "").status, 200, "once only: {fault:?}");
    }
    opened.node.faults.arm(Fault::Outage { calls: 3 });
    for _ in 0..3 {
        assert_eq!(client.send("GET", "/version", "").spoil, Spoil::Drop);
    }
    assert_eq!(client.send("GET", "/version", "").status, 200);
}

#[test]
fn a_task_says_one_thing_and_the_world_another() {
    let state = tempfile::tempdir().expect("folder");
    let (opened, client) = with_guest(state.path());
    let faults = &opened.node.faults;

    faults.arm(Fault::NoGrow { vmid: 150 });
    assert_eq!(client.task("PUT", "/nodes/pve1/lxc/150/resize", "disk=rootfs&size=3G"), "OK");
    let size = |client: &Client| {
        let (_, body) = client.ask("GET", "/nodes/pve1/lxc/150/config", "");
        body["data"]["rootfs"].as_str().expect("a disk").to_owned()
    };
    assert!(size(&client).ends_with("size=1G"), "{}", size(&client));
    assert_eq!(client.task("PUT", "/nodes/pve1/lxc/150/resize", "disk=rootfs&size=3G"), "OK");
    assert!(size(&client).ends_with("size=3G"), "{}", size(&client));

    faults.arm(Fault::NoArchive { vmid: 150 });
    assert_eq!(client.task("POST", "/nodes/pve1/vzdump", "vmid=150&storage=backup2"), "OK");
    assert_eq!(archives(&client), 0);

    faults.arm(Fault::WarnWorker { task: "vzsnapshot".into() });
    assert_eq!(client.task("POST", "/nodes/pve1/lxc/150/snapshot", "snapname=aa"), "WARNINGS: 1");

    faults.arm(Fault::UnknownEnd { task: "vzdelsnapshot".into() });
    assert_eq!(client.task("DELETE", "/nodes/pve1/lxc/150/snapshot/aa", ""), "unexpected status");
    assert!(opened.node.world().guests.get(150).expect("guest").snapshots.is_empty(), "it was done");

    faults.arm(Fault::VanishTask { task: "vzstart".into() });
    let upid = client.ended("POST", "/nodes/pve1/lxc/150/status/start", "");
    assert!(opened.node.power.is_running(150) && opened.node.tasks.ended(&upid).is_none());
    assert_eq!(client.ask("GET", &format!("/nodes/pve1/tasks/{upid}/status"), "").0, 400);
    assert_eq!(client.task("POST", "/nodes/pve1/lxc/150/status/stop", ""), "OK");

    faults.arm(Fault::KeepVolume { vmid: 150 });
    assert_eq!(client.task("DELETE", "/nodes/pve1/lxc/150", ""), "OK");
    let (_, left) = client.ask("GET", "/nodes/pve1/storage/labbtrfs/content?vmid=150", "");
    assert_eq!(left["data"].as_array().expect("a list").len(), 1, "{left}");
    assert!(faults.armed().is_empty());
}

#[test]
fn backups_that_go_wrong() {
    let state = tempfile::tempdir().expect("folder");
    let (opened, client) = with_guest(state.path());
    let faults = &opened.node.faults;
    let dump = || client.task("POST", "/nodes/pve1/vzdump", "vmid=150&storage=backup2");

    faults.arm(Fault::HeldBackups);
    assert_eq!(dump(), "can't acquire lock '/var/run/vzdump.lock' - got timeout");

    faults.arm(Fault::FailWorker {
        task: "vzdump".into(),
        phase: "copy".into(),
        text: "No space left".into(),
    });
    assert_eq!(dump(), "job errors");
    assert_eq!(opened.node.world().guests.get(150).expect("guest").lock(), None, "it cleaned up");
    assert_eq!(archives(&client), 0);

    faults.arm(Fault::OrphanBackup { vmid: 150, after_ms: 20 });
    assert_eq!(dump(), "unexpected status");
    assert_eq!(opened.node.world().guests.get(150).expect("guest").lock(), Some("backup"));
    // Only the worker gives a local archive its name: what its orphans write stays unfinished.
    assert_eq!(archives(&client), 0);
}

#[test]
fn a_worker_killed_in_the_snapshot_leaves_a_frozen_guest_that_is_said_to_run() {
    let state = tempfile::tempdir().expect("folder");
    let (opened, client) = with_guest(state.path());
    assert_eq!(client.task("POST", "/nodes/pve1/lxc/150/status/start", ""), "OK");
    opened.node.faults.arm(Fault::KillWorker { task: "vzdump".into(), phase: "snapshotting".into() });
    let end = client.task("POST", "/nodes/pve1/vzdump", "vmid=150&storage=backup2&mode=snapshot");
    assert_eq!(end, "unexpected status");
    let (_, seen) = client.ask("GET", "/nodes/pve1/lxc/150/status/current", "");
    assert_eq!(seen["data"]["status"], "running");
    assert!(opened.node.power.running(150).expect("running").frozen);
    assert_eq!(opened.node.world().guests.get(150).expect("guest").lock(), Some("snapshot"));
    assert_eq!(client.task("POST", "/nodes/pve1/lxc/150/status/stop", ""), "CT is locked (snapshot)");
}

#[test]
fn the_node_is_not_as_it_should_be() {
    let state = tempfile::tempdir().expect("folder");
    let (opened, client) = with_guest(state.path());
    let edit = |edit: Edit| apply(&opened.node, &edit).expect("an edit");

    edit(Edit::StorageFill { storage: "labbtrfs".into(), percent: Some(97) });
    let (_, full) = client.ask("GET", "/nodes/pve1/storage/labbtrfs/status", "");
    let share = full["data"]["used"].as_f64().expect("used") / full["data"]["total"].as_f64().expect("total");
    assert!((0.96..0.98).contains(&share), "{full}");
    edit(Edit::StorageFill { storage: "labbtrfs".into(), percent: Some(100) });
    let end = client.task("POST", "/nodes/pve1/lxc/150/snapshot", "snapname=aa");
    assert_eq!(end, "storage 'labbtrfs': No space left on device");
    edit(Edit::StorageFill { storage: "labbtrfs".into(), percent: None });
    assert_eq!(client.task("POST", "/nodes/pve1/lxc/150/snapshot", "snapname=aa"), "OK");

    edit(Edit::Quorum { held: false });
    let (status, body) = client.ask("PUT", "/nodes/pve1/lxc/150/config", "memory=99");
    assert_eq!(status, 500);
    assert!(body["message"].as_str().expect("text").ends_with("Permission denied\n"), "{body}");
    edit(Edit::Quorum { held: true });
    assert_eq!(client.ask("PUT", "/nodes/pve1/lxc/150/config", "memory=99").0, 200);

    let before_s = opened.node.clock.now_s();
    edit(Edit::Clock { ahead_s: 7_200 });
    assert!(opened.node.clock.now_s() >= before_s + 7_200);
    edit(Edit::Clock { ahead_s: 0 });

    edit(Edit::TokenExpiry { id: "agent@pve!hostagent".into(), expire: 1 });
    assert_eq!(client.send("GET", "/version", "").status, 401);
    edit(Edit::TokenExpiry { id: "agent@pve!hostagent".into(), expire: 0 });
    assert_eq!(client.send("GET", "/version", "").status, 200);
}

#[test]
fn hands_on_a_guest() {
    let state = tempfile::tempdir().expect("folder");
    let (opened, client) = with_guest(state.path());
    let attach =
        Edit::Attach { vmid: 150, key: "mp9".into(), storage: "labbtrfs".into(), mount: "/x".into() };
    apply(&opened.node, &attach).expect("a volume");
    assert!(apply(&opened.node, &attach).is_err(), "the place is taken");
    let (_, body) = client.ask("GET", "/nodes/pve1/lxc/150/config", "");
    assert!(body["data"]["mp9"].as_str().expect("a volume").contains("mp=/x"), "{body}");
    apply(&opened.node, &Edit::Reuse { vmid: 150, storage: "labdir".into() }).expect("a newcomer");
    let world = opened.node.world();
    let newcomer = world.guests.get(150).expect("a newcomer");
    assert_eq!(newcomer.main.get("hostname"), Some("newcomer"));
    assert!(newcomer.main.get("mp9").is_none() && world.store().exists("labdir:150/vm-150-disk-0.raw"));
}

/// The list for seeds: every mishap can be brought about, and the node can be healed of all of them.
#[test]
fn every_mishap_strikes_and_heals() {
    for mishap in Mishap::ALL {
        let state = tempfile::tempdir().expect("folder");
        let (opened, client) = match mishap.origin() {
            Origin::Hand => with_guest(state.path()),
            _ => {
                let opened = open(state.path());
                let client = Client::of(&opened);
                (opened, client)
            }
        };
        let target = Target {
            vmid: 150,
            storage: "labbtrfs".into(),
            backups: "backup2".into(),
            token: "agent@pve!hostagent".into(),
        };
        let mut number = 0;
        let orders = mishap.orders(&target, &mut || {
            number += 1;
            number
        });
        assert!(!orders.is_empty());
        for order in orders {
            assert_eq!(obey(&opened.node, &order), Outcome::Done, "{mishap:?}: {order:?}");
            assert_eq!(
                matches!(order, Order::Arm(_)),
                matches!(mishap.origin(), Origin::Wire | Origin::Worker)
            );
        }
        for order in heal(&target) {
            assert_eq!(obey(&opened.node, &order), Outcome::Done, "{mishap:?}: {order:?}");
        }
        assert!(opened.node.faults.armed().is_empty());
        assert_eq!(client.send("GET", "/version", "").status, 200, "{mishap:?}");
        assert!(opened.node.world().store().activate("labbtrfs").is_ok(), "{mishap:?}");
    }
}
