//! Tests of an unreachable backup server.
#![forbid(unsafe_code)]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    dead_code,
    reason = "the helpers of a test fail the test, and not every test uses every helper"
)]

use std::path::{Path, PathBuf};

use crate::client::{Client, open};
use serde_json::{Value, json};

const SECRET: &str = "11111111-2222-3333-4444-555555555555";
const CONTENT: &str = "/nodes/pve1/storage/off1/content";

/// A server with its entry and one backup of guest 200.
struct Ground {
    _state: tempfile::TempDir,
    client: Client,
    server: PathBuf,
    secrets: PathBuf,
    volid: String,
}

impl Ground {
    fn new() -> Self {
        let state = tempfile::tempdir().expect("folder");
        let server = state.path().join("run/outside/10.66.0.1");
        std::fs::create_dir_all(server.join("pvestore/ns/hf")).expect("namespace");
        let print = vec!["86"; 32].join(":");
        write(&server.join("fingerprint"), &print);
        write(&server.join("secret"), SECRET);
        let opened = open(state.path());
        let client = Client::of(&opened);
        let form = format!(
            "storage=off1&type=pbs&server=10.66.0.1&datastore=pvestore&namespace=hf&username=pve%40pbs%21bk&password={SECRET}&fingerprint={}&content=backup&encryption-key=autogen",
            print.to_uppercase().replace(':', "%3A")
        );
        assert_eq!(client.ask("POST", "/storage", &form).0, 200);
        let secrets = state.path().join("root/etc/pve/priv/storage");
        let mut ground = Self { _state: state, client, server, secrets, volid: String::new() };
        ground.back_up("");
        ground.volid = ground.listed()[0]["volid"].as_str().expect("a name").to_owned();
        ground
    }

    fn back_up(&self, more: &str) {
        let end = self.client.task("POST", "/nodes/pve1/vzdump", &format!("vmid=200&storage=off1{more}"));
        assert_eq!(end, "OK");
    }

    fn listed(&self) -> Vec<Value> {
        let (status, body) = self.client.ask("GET", CONTENT, "");
        assert_eq!(status, 200, "{body}");
        body["data"].as_array().expect("a list").clone()
    }

    fn said(&self, path: &str) -> (u16, String) {
        let (status, body) = self.client.ask("GET", path, "");
        (status, body["message"].as_str().unwrap_or_default().trim_end_matches('\n').to_owned())
    }

    fn looked_into(&self) -> (u16, String) {
        let volume = self.volid.replace('/', "%2F").replace(':', "%3A");
        self.said(&format!("/nodes/pve1/vzdump/extractconfig?volume={volume}"))
    }

    /// The end of a restore and its log.
    fn restored(&self) -> (String, Vec<String>) {
        let form = format!("vmid=299&ostemplate={}&restore=1&storage=labdir", self.volid);
        let upid = self.client.ended("POST", "/nodes/pve1/lxc", &form);
        let end = self.client.node.tasks.ended(&upid).expect("an end").status;
        let (_, log) = self.client.ask("GET", &format!("/nodes/pve1/tasks/{upid}/log?limit=500"), "");
        let lines = log["data"].as_array().expect("lines").iter();
        (end, lines.map(|line| line["t"].as_str().expect("a line").to_owned()).collect())
    }

    /// The refusal contains the client's message, and the attempt leaves nothing behind.
    fn refused(&self, complaint: &[&str]) {
        let last = complaint.last().expect("a line");
        assert_eq!(self.looked_into(), (500, format!("proxmox-backup-client failed: {last}")));
        let (end, log) = self.restored();
        assert!(
            end.starts_with("unable to restore CT 299 - command '/usr/bin/proxmox-backup-client restore "),
            "{end}"
        );
        assert!(end.ends_with(" --ns hf' failed: exit code 255"), "{end}");
        assert_eq!(log[1..log.len() - 1], *complaint);
        assert!(!self.client.node.world().guests.has(299));
    }
}

fn write(file: &Path, text: &str) {
    std::fs::write(file, text).expect("a file");
}

#[test]
fn what_is_in_the_way_the_node_says_where_it_readies_the_storage_and_the_client_elsewhere() {
    let ground = Ground::new();
    let offline = |why: &str| {
        let (_, status) = ground.client.ask("GET", "/nodes/pve1/storage/off1/status", "");
        assert_eq!((&status["data"]["active"], &status["data"]["total"]), (&json!(0), &json!(0)));
        assert_eq!(ground.said(CONTENT), (500, format!("off1: error fetching datastores - {why}")));
        let end = ground.client.task("POST", "/nodes/pve1/vzdump", "vmid=200&storage=off1");
        assert_eq!(
            end,
            format!("could not activate storage 'off1': off1: error fetching datastores - {why}")
        );
    };
    let away = ground.server.with_extension("away");
    std::fs::rename(&ground.server, &away).expect("away");
    offline("500 Can't connect to 10.66.0.1:8007 (Connection refused)");
    ground.refused(&[
        "Error: client error (Connect)",
        "",
        "Caused by:",
        "    error connecting to https://10.66.0.1:8007/ - tcp connect error",
    ]);
    std::fs::rename(&away, &ground.server).expect("back");

    write(&ground.secrets.join("off1.pw"), "another\n");
    offline("401 Unauthorized");
    ground.refused(&["Error: authentication failed"]);
    write(&ground.secrets.join("off1.pw"), SECRET);

    let held = std::fs::read_to_string(ground.server.join("fingerprint")).expect("a fingerprint");
    write(&ground.server.join("fingerprint"), &vec!["aa"; 32].join(":"));
    offline(&format!("fingerprint '{}' not verified, abort!", vec!["AA"; 32].join(":")));
    let (_, log) = ground.restored();
    assert_eq!(log[1], "WARNING: certificate fingerprint does not match expected fingerprint!");
    write(&ground.server.join("fingerprint"), &held);
    assert_eq!((ground.looked_into().0, ground.restored().0), (200, "OK".to_owned()));
}

#[test]
fn a_retention_is_the_servers_and_asks_for_its_right() {
    let ground = Ground::new();
    ground.back_up("&protected=1");
    ground.back_up("");
    let prune = "/nodes/pve1/storage/off1/prunebackups?prune-backups=keep-last%3D1&vmid=200";
    assert_eq!(ground.said(prune), (500, "error pruning backups - check log".to_owned()));
    assert_eq!(ground.client.task("DELETE", prune, ""), "error pruning backups - check log");
    assert_eq!(ground.listed().len(), 3);
    write(&ground.server.join("role"), "DatastorePowerUser");
    let (_, reported) = ground.client.ask("GET", prune, "");
    let marks: Vec<&str> =
        reported["data"].as_array().expect("marks").iter().filter_map(|row| row["mark"].as_str()).collect();
    assert_eq!(marks, ["remove", "protected", "keep"]);
    assert_eq!(ground.client.task("DELETE", prune, ""), "OK");
    let left: Vec<bool> = ground.listed().iter().map(|row| row["protected"] == 1).collect();
    assert_eq!(left.len(), 2);
    assert!(left.contains(&true) && left.contains(&false));
    let group = ground.client.task(
        "DELETE",
        "/nodes/pve1/storage/off1/prunebackups?prune-backups=keep-last%3D1&vmid=4711&type=lxc",
        "",
    );
    assert_eq!(group, "error pruning backups - check log");
}

/// A verification found a damaged chunk: the server renames it.
#[test]
fn what_lacks_a_chunk_is_looked_into_and_not_restored() {
    let ground = Ground::new();
    let snapshot = ground.volid.split_once("backup/").expect("a name").1;
    let verified = ground.server.join(format!("pvestore/ns/hf/{snapshot}.tar.verified"));
    write(&verified, &json!({ "state": "failed", "upid": "UPID:x" }).to_string());
    assert_eq!(ground.looked_into().0, 200, "the configuration is no chunk");
    let (end, log) = ground.restored();
    assert!(end.ends_with("failed: exit code 255"), "{end}");
    let said = log.iter().find(|line| line.contains("/.chunks/")).expect("it is said");
    assert!(said.starts_with("Error: error extracting archive - reading file"), "{said}");
    assert!(said.ends_with(" failed: No such file or directory (os error 2)"), "{said}");
    assert!(!ground.client.node.world().guests.has(299));
}

#[test]
fn a_cut_connection_and_a_missing_password_are_in_the_log() {
    let ground = Ground::new();
    let dump = || {
        let upid = ground.client.ended("POST", "/nodes/pve1/vzdump", "vmid=200&storage=off1");
        let (_, log) = ground.client.ask("GET", &format!("/nodes/pve1/tasks/{upid}/log?limit=500"), "");
        let lines = log["data"].as_array().expect("lines").iter();
        let lines: Vec<String> = lines.map(|line| line["t"].as_str().expect("a line").to_owned()).collect();
        (ground.client.node.tasks.ended(&upid).expect("an end").status, lines)
    };
    ground.client.node.faults.arm(pve_sim::fault::Fault::CutUpload { vmid: 200 });
    let (end, log) = dump();
    assert_eq!(end, "job errors");
    assert!(log.iter().any(|line| line == "INFO: Error: stream closed because of a broken pipe"), "{log:?}");
    assert_eq!(ground.client.node.world().guests.get(200).expect("guest").lock(), None);
    assert_eq!(dump().0, "OK", "once");

    std::fs::remove_file(ground.secrets.join("off1.pw")).expect("gone");
    let (end, log) = dump();
    assert_eq!(end, "could not activate storage 'off1': off1: error fetching datastores - 401 Unauthorized");
    assert!(log[0].starts_with("Use of uninitialized value $password "), "{log:?}");
    // A wrong certificate is found before the password is sent.
    write(&ground.server.join("fingerprint"), &vec!["aa"; 32].join(":"));
    let (end, log) = dump();
    assert!(end.contains("not verified, abort!"), "{end}");
    assert!(log[0].starts_with("Use of uninitialized value $password "), "{log:?}");
}
