//! Tests of backups through the API.
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::fault::Fault;
use crate::http::entry::serve;
use crate::node::Node;
use crate::sim::{Opened, Sim};
use crate::wire::Request;

const AGENT: &str = "agent@pve!hostagent";

struct Lab {
    opened: Opened,
}

impl Lab {
    /// A fresh lab with the given guests running.
    fn new(running: &[u32]) -> Self {
        let opened = Sim::builder().pace(Duration::ZERO).open().expect("opened");
        let lab = Self { opened };
        for vmid in running {
            lab.done("POST", &format!("/nodes/pve1/lxc/{vmid}/status/start"), &[]);
        }
        lab
    }

    fn node(&self) -> &Arc<Node> {
        &self.opened.node
    }

    /// A call by the agent's token: status and body.
    fn call(&self, method: &str, path: &str, params: &[(&str, &str)]) -> (u16, Value) {
        let secret = self.node().world().secrets.tokens.get(AGENT).cloned().expect("a token");
        let form: Vec<String> = params
            .iter()
            .map(|(name, value)| {
                let value = percent_encoding::utf8_percent_encode(value, percent_encoding::NON_ALPHANUMERIC);
                format!("{name}={value}")
            })
            .collect();
        let form = form.join("&");
        let body = matches!(method, "POST" | "PUT");
        let request = Request {
            method: method.to_owned(),
            target: format!(
                "/api2/json{path}{}{}",
                if body { "" } else { "?" },
                if body { "" } else { &form }
            ),
            headers: vec![
                ("authorization".to_owned(), format!("PVEAPIToken={AGENT}={secret}")),
                ("content-type".to_owned(), "application/x-www-form-urlencoded".to_owned()),
            ],
            body: if body { form.into_bytes() } else { Vec::new() },
        };
        let response = serve(self.node(), &request);
        (response.status, serde_json::from_slice(&response.body).unwrap_or(Value::Null))
    }

    /// A call that starts a task: its UPID.
    fn started(&self, method: &str, path: &str, params: &[(&str, &str)]) -> String {
        let (status, body) = self.call(method, path, params);
        assert_eq!(status, 200, "{body}");
        body["data"].as_str().expect("a UPID").to_owned()
    }

    /// Waits for a task's end: exit status and log.
    fn ended(&self, upid: &str) -> (String, String) {
        let deadline = Instant::now() + Duration::from_secs(30);
        while self.node().tasks.running(upid).is_some() {
            assert!(Instant::now() < deadline, "{upid} does not end");
            std::thread::yield_now();
        }
        let (_, body) = self.call("GET", &format!("/nodes/pve1/tasks/{upid}/status"), &[]);
        let (_, log) = self.call("GET", &format!("/nodes/pve1/tasks/{upid}/log"), &[("limit", "0")]);
        let lines = log["data"].as_array().expect("a log").iter().filter_map(|line| line["t"].as_str());
        let text = lines.collect::<Vec<_>>().join("\n");
        (body["data"]["exitstatus"].as_str().unwrap_or("-").to_owned(), text)
    }

    fn done(&self, method: &str, path: &str, params: &[(&str, &str)]) -> String {
        let (exit, log) = self.ended(&self.started(method, path, params));
        assert_eq!(exit, "OK", "{log}");
        log
    }

    /// Waits until the log of a running task has a line.
    fn reached(&self, upid: &str, line: &str) {
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            let (_, log) = self.call("GET", &format!("/nodes/pve1/tasks/{upid}/log"), &[("limit", "0")]);
            if log.to_string().contains(line) {
                return;
            }
            assert!(Instant::now() < deadline, "{upid} does not reach {line}: {log}");
            std::thread::yield_now();
        }
    }

    fn state(&self, vmid: u32) -> Value {
        let (_, config) = self.call("GET", &format!("/nodes/pve1/lxc/{vmid}/config"), &[]);
        let (_, status) = self.call("GET", &format!("/nodes/pve1/lxc/{vmid}/status/current"), &[]);
        let (_, snapshots) = self.call("GET", &format!("/nodes/pve1/lxc/{vmid}/snapshot"), &[]);
        let names: Vec<&str> = snapshots["data"]
            .as_array()
            .expect("a list")
            .iter()
            .filter_map(|row| row["name"].as_str())
            .collect();
        json!({"lock": config["data"]["lock"], "status": status["data"]["status"], "snapshots": names})
    }

    fn rootfs(&self, vmid: u32) -> std::path::PathBuf {
        let world = self.node().world();
        let config = world.guests.get(vmid).expect("a guest");
        let volume = config.main.get("rootfs").and_then(|value| value.split(',').next()).expect("a volume");
        world.store().tree(volume).expect("its files")
    }

    fn dump(&self) -> Vec<String> {
        let folder = self.node().world().store().real("/mnt/backup2/dump");
        let entries = std::fs::read_dir(folder).expect("a folder").flatten();
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.retain(|name| name.starts_with("vzdump-lxc-100-"));
        names.sort();
        names
    }
}

fn hold(task: &str, phase: &str) -> Fault {
    Fault::HoldWorker { task: task.to_owned(), phase: phase.to_owned(), hold_ms: 20_000 }
}

#[test]
fn what_a_running_guest_holds_comes_back_from_its_backup() {
    let lab = Lab::new(&[100]);
    std::fs::write(lab.rootfs(100).join("precious"), b"data").expect("written");
    let log = lab.done(
        "POST",
        "/nodes/pve1/vzdump",
        &[
            ("vmid", "100"),
            ("storage", "backup2"),
            ("compress", "zstd"),
            ("mode", "snapshot"),
            ("notes-template", "{{guestname}}"),
            ("protected", "1"),
        ],
    );
    let lines: Vec<&str> = log.lines().collect();
    assert!(
        lines[0].starts_with("INFO: starting new backup job: vzdump 100 --compress zstd --mode snapshot")
    );
    let expected = [
        "INFO: Starting Backup of VM 100 (lxc)",
        "INFO: status = running",
        "INFO: CT Name: ct100",
        "INFO: including mount point rootfs ('/') in backup",
        "INFO: backup mode: snapshot",
        "INFO: ionice priority: 7",
        "INFO: create storage snapshot 'vzdump'",
        "INFO: adding notes to backup",
        "INFO: marking backup as protected",
        "INFO: cleanup temporary 'vzdump' snapshot",
        "INFO: Backup job finished successfully",
        "INFO: notified via target `mail-to-root`",
        "TASK OK",
    ];
    let mut rest = lines.iter();
    for line in expected {
        assert!(rest.any(|found| *found == line), "{line} in its place in {log}");
    }
    assert_eq!(lab.state(100), json!({"lock": null, "status": "running", "snapshots": ["current"]}));
    let names = lab.dump();
    assert_eq!(names.len(), 4, "{names:?}");
    let archive = names.iter().find(|name| name.ends_with(".tar.zst")).expect("an archive");
    let volid = format!("backup2:backup/{archive}");
    let (_, inside) = lab.call("GET", "/nodes/pve1/vzdump/extractconfig", &[("volume", &volid)]);
    let config = inside["data"].as_str().expect("text");
    assert!(config.contains("hostname: ct100\n") && !config.contains("lock:"), "{config}");

    let restore = [("vmid", "150"), ("ostemplate", &volid), ("restore", "1"), ("storage", "labbtrfs")];
    lab.done("POST", "/nodes/pve1/lxc", &restore);
    assert_eq!(std::fs::read(lab.rootfs(150).join("precious")).expect("restored"), b"data");
}

#[test]
fn a_stopped_backup_leaves_no_archive_and_the_guest_as_it_was() {
    for (mode, undone) in [
        ("snapshot", "INFO: cleanup temporary 'vzdump' snapshot"),
        ("suspend", "INFO: resuming guest"),
        ("stop", "INFO: restarting vm"),
    ] {
        let lab = Lab::new(&[100]);
        lab.node().faults.arm(hold("vzdump", "copy"));
        let params = [("vmid", "100"), ("storage", "backup2"), ("mode", mode), ("compress", "gzip")];
        let upid = lab.started("POST", "/nodes/pve1/vzdump", &params);
        lab.reached(&upid, "creating vzdump archive");
        assert_eq!(lab.state(100)["lock"], "backup", "{mode}");
        assert_eq!(lab.state(100)["status"], if mode == "stop" { "stopped" } else { "running" });
        lab.call("DELETE", &format!("/nodes/pve1/tasks/{upid}"), &[]);
        let (exit, log) = lab.ended(&upid);
        assert_eq!(exit, "job errors", "{log}");
        assert!(log.contains(undone), "{log}");
        assert!(
            log.contains("| gzip --rsyncable >/mnt/backup2/dump/") && log.contains("interrupted by signal")
        );
        assert_eq!(
            lab.state(100),
            json!({"lock": null, "status": "running", "snapshots": ["current"]}),
            "{mode}"
        );
        let names = lab.dump();
        assert!(names.iter().all(|name| name.ends_with(".log")), "{names:?}");
    }
}

#[test]
fn a_killed_worker_leaves_lock_and_guest_as_they_were_in_that_moment() {
    let lab = Lab::new(&[100]);
    lab.node().faults.arm(Fault::KillWorker { task: "vzdump".to_owned(), phase: "copy".to_owned() });
    let params = [("vmid", "100"), ("storage", "backup2"), ("mode", "stop")];
    let (exit, log) = lab.ended(&lab.started("POST", "/nodes/pve1/vzdump", &params));
    assert_eq!(exit, "unexpected status");
    assert!(log.ends_with(".tar'"), "the log just ends: {log}");
    assert_eq!(lab.state(100), json!({"lock": "backup", "status": "stopped", "snapshots": ["current"]}));
    let (exit, log) = lab.ended(&lab.started("POST", "/nodes/pve1/vzdump", &params));
    assert_eq!(exit, "job errors");
    assert!(log.contains("ERROR: Backup of VM 100 failed - CT is locked (backup)"), "{log}");
}

#[test]
fn one_guest_that_fails_does_not_keep_the_next_from_its_backup() {
    let lab = Lab::new(&[]);
    let params = [("vmid", "9999,100"), ("storage", "backup2"), ("mode", "stop"), ("compress", "lzo")];
    let upid = lab.started("POST", "/nodes/pve1/vzdump", &params);
    assert!(upid.contains(":vzdump::"), "several guests have no id: {upid}");
    let (exit, log) = lab.ended(&upid);
    assert_eq!(exit, "job errors");
    assert!(log.contains("ERROR: Backup of VM 9999 failed - unable to find VM '9999'"), "{log}");
    assert!(log.contains("INFO: Finished Backup of VM 100 (00:00:0"), "{log}");
    assert!(log.contains("INFO: Backup job finished with errors"), "{log}");
}

#[test]
fn a_second_job_waits_for_the_first() {
    let lab = Lab::new(&[]);
    lab.node().faults.arm(hold("vzdump", "copy"));
    let params = [("vmid", "100"), ("storage", "backup2"), ("mode", "stop")];
    let first = lab.started("POST", "/nodes/pve1/vzdump", &params);
    lab.reached(&first, "creating vzdump archive");
    let second = lab.started("POST", "/nodes/pve1/vzdump", &[("vmid", "200"), ("storage", "backup2")]);
    lab.reached(&second, "trying to get global lock - waiting...");
    lab.call("DELETE", &format!("/nodes/pve1/tasks/{first}"), &[]);
    let (exit, log) = lab.ended(&second);
    assert_eq!(exit, "OK", "{log}");
    assert!(log.contains("INFO: got global lock\nINFO: starting new backup job"), "{log}");
}

#[test]
fn what_may_not_be_asked_for_is_refused_before_a_task_begins() {
    let lab = Lab::new(&[]);
    let table = [
        (vec![("storage", "backup2")], 400, "vmid"),
        (vec![("vmid", "100"), ("dumpdir", "/tmp")], 400, "dumpdir"),
        (vec![("vmid", "100"), ("script", "/bin/true")], 400, "script"),
        (vec![("vmid", "100"), ("storage", "backup2"), ("stdout", "1")], 400, "stdout"),
        (vec![("vmid", "100"), ("storage", "backup2"), ("bwlimit", "1000")], 403, "(/, Sys.Modify)"),
        (vec![("vmid", "100"), ("storage", "backup2"), ("stop", "1")], 403, "(/nodes/pve1, Sys.Modify)"),
    ];
    for (params, status, text) in table {
        let (found, body) = lab.call("POST", "/nodes/pve1/vzdump", &params);
        assert_eq!(found, status, "{params:?}: {body}");
        assert!(body.to_string().contains(text), "{params:?}: {body}");
    }
    let (running, ended) = lab.node().tasks.all();
    assert!(running.is_empty() && ended.is_empty());
    let (exit, log) =
        lab.ended(&lab.started("POST", "/nodes/pve1/vzdump", &[("vmid", "100"), ("storage", "offline")]));
    assert!(exit.starts_with("could not activate storage 'offline': unable to activate"), "{exit}");
    assert!(log.starts_with("INFO: notified via target"), "{log}");
}

/// The last lines of a log after the job's end.
fn notices(log: &str) -> Vec<&str> {
    let end = log.lines().position(|line| line.starts_with("INFO: Backup job finished")).expect("an end");
    log.lines().skip(end + 1).filter(|line| !line.starts_with("TASK ")).collect()
}

#[test]
fn only_the_old_way_without_an_address_sends_nothing() {
    let lab = Lab::new(&[100]);
    let log = |params: &[(&str, &str)]| {
        let all = [&[("vmid", "100"), ("storage", "backup2")], params].concat();
        lab.done("POST", "/nodes/pve1/vzdump", &all)
    };
    let (legacy, to) = (("notification-mode", "legacy-sendmail"), ("mailto", "ops@example.invalid"));
    let failure = ("mailnotification", "failure");
    let root = "INFO: notified via target `mail-to-root`";
    let mailed = "INFO: notified via target `<ops@example.invalid>`";
    assert_eq!(notices(&log(&[legacy])), Vec::<&str>::new());
    assert_eq!(notices(&log(&[legacy, to])), [mailed]);
    assert_eq!(notices(&log(&[legacy, to, failure])), Vec::<&str>::new());
    assert_eq!(notices(&log(&[to])), [mailed]);
    assert_eq!(notices(&log(&[failure])), [root]);
    assert_eq!(notices(&log(&[])), [root]);
    lab.node().world().access.users.get_mut("root@pam").expect("root").email.clear();
    let log = log(&[]);
    assert!(notices(&log)[0].starts_with("WARN: 'root@pam' does not have a configured email"), "{log}");
    assert!(notices(&log)[1].ends_with("no recipients provided for the mail, cannot send it."), "{log}");
}
