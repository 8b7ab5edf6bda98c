//! The program `hubd`: output, shutdown, recovery after a kill.

use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use holdfast_protocol::checkin::{CheckinAnswer, CheckinRequest};
use holdfast_protocol::condition::{ConditionCode, ConditionSet, ReportedCondition, Subject};
use holdfast_protocol::id::GuestUid;
use holdfast_protocol::operator::{HostDetail, WhoAmI};
use holdfast_protocol::report::Sections;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::{Child, Command};
use uuid::Uuid;

use crate::world::{Client, Host, World};

/// A hub in a process of its own; killed when dropped.
pub struct Process {
    child: Child,
    printed: String,
    pub url: String,
}

pub fn hubd() -> Command {
    #[expect(clippy::disallowed_methods, reason = "the program under test")]
    let mut command = Command::new(env!("CARGO_BIN_EXE_hubd"));
    command.kill_on_drop(true).stdin(Stdio::null()).env_remove("NOTIFY_SOCKET");
    command
}

impl Process {
    pub async fn start(folder: &Path, listen: &str) -> Self {
        let mut command = hubd();
        command.args(["serve", "--listen", listen, "--dir"]).arg(folder);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut printed = String::new();
        let url = loop {
            let line = tokio::time::timeout(Duration::from_secs(20), lines.next_line()).await;
            let line = line.expect("the hub starts").unwrap().expect("the hub listens");
            printed.push_str(&line);
            printed.push('\n');
            if let Some((_, url)) = line.split_once("is reached at ") {
                break url.to_owned();
            }
        };
        Self { child, printed, url }
    }

    pub async fn stop(mut self) -> (ExitStatus, String) {
        self.signal("-TERM").await;
        let ended = tokio::time::timeout(Duration::from_secs(20), self.child.wait()).await;
        let mut log = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut log).await.unwrap();
        (ended.expect("the hub stops").unwrap(), log)
    }

    /// Sends a signal, as systemd does.
    pub async fn signal(&self, signal: &str) {
        let pid = self.child.id().unwrap().to_string();
        #[expect(clippy::disallowed_methods, reason = "a signal, as systemd sends it")]
        let sent = Command::new("kill").args([signal, &pid]).status().await.unwrap();
        assert!(sent.success());
    }

    async fn kill(mut self) {
        self.child.start_kill().unwrap();
        self.child.wait().await.unwrap();
    }
}

/// A hub in this process, to enrol a host in the folder; the client then talks to the other process.
async fn enrolled(folder: &Path) -> Host {
    let world = World::in_folder(folder.to_owned(), None).await;
    let host = world.enrol("box7").await;
    host.check_in(&host.full(1, 0), "0s").await.data(StatusCode::OK);
    world.stop().await;
    host
}

pub fn at(client: &Client, process: &Process) -> Client {
    Client { url: process.url.clone(), ..client.clone() }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_folder_becomes_a_hub_and_the_token_is_not_printed() {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().join("new/hub");
    let process = Process::start(&folder, "127.0.0.1:0").await;
    let token = std::fs::read_to_string(folder.join("admin-token")).unwrap().trim().to_owned();
    assert!(process.printed.contains("admin-token"), "{}", process.printed);
    assert!(process.printed.contains("its CA is leaf/sha256:"), "{}", process.printed);
    // A client of any world that trusts this hub's CA.
    let ca_pem = std::fs::read_to_string(folder.join("ca.pem")).unwrap();
    let client = crate::world::client(&ca_pem, &process.url, None);
    let admin = client.with("authorization", &format!("Bearer {token}"));
    let who: WhoAmI = admin.get("/v1/whoami").await.data(StatusCode::OK);
    assert_eq!(who.name.as_str(), "admin");
    // Another operator, made while the hub runs.
    let made = hubd().args(["operator", "add", "eve", "--role", "viewer", "--dir"]).arg(&folder).output();
    let made = made.await.unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let other = String::from_utf8(made.stdout).unwrap();
    let eve = client.with("authorization", &format!("Bearer {}", other.trim()));
    assert_eq!(eve.get::<WhoAmI>("/v1/whoami").await.data(StatusCode::OK).name.as_str(), "eve");
    let revoked = hubd().args(["operator", "revoke", "eve", "--dir"]).arg(&folder).status().await.unwrap();
    assert!(revoked.success());
    assert_eq!(eve.get::<WhoAmI>("/v1/whoami").await.status, StatusCode::UNAUTHORIZED);
    let (printed, (status, log)) = (process.printed.clone(), process.stop().await);
    assert!(status.success(), "{status}: {log}");
    for secret in [token.as_str(), other.trim()] {
        assert!(!printed.contains(secret) && !log.contains(secret));
    }
    for line in log.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(line["timestamp"].is_string() && line["level"].is_string(), "{line}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_outlives_a_kill() {
    let temp = tempfile::tempdir().unwrap();
    let host = enrolled(temp.path()).await;
    let mut last = 1;
    for _ in 0..3 {
        let process = Process::start(temp.path(), "127.0.0.1:0").await;
        let client = at(&host.client, &process);
        for _ in 0..20 {
            last += 1;
            let answer: CheckinAnswer = client
                .send(Method::POST, "/v1/agent/checkin?wait=0s", &host.full(last, 0))
                .await
                .data(StatusCode::OK);
            assert_eq!(answer.acknowledged, last);
        }
        process.kill().await;
        let connection = rusqlite::Connection::open(temp.path().join("hub.db")).unwrap();
        let check: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(check, "ok");
        let kept: u64 = connection
            .query_row("SELECT sequence FROM hosts", [], |row| row.get::<_, i64>(0))
            .unwrap()
            .try_into()
            .unwrap();
        assert_eq!(kept, last);
    }
    let process = Process::start(temp.path(), "127.0.0.1:0").await;
    let token = std::fs::read_to_string(temp.path().join("admin-token")).unwrap();
    let ca_pem = std::fs::read_to_string(temp.path().join("ca.pem")).unwrap();
    let client = crate::world::client(&ca_pem, &process.url, None);
    let admin = client.with("authorization", &format!("Bearer {}", token.trim()));
    let detail: HostDetail = admin.get("/v1/hosts/box7").await.data(StatusCode::OK);
    assert!(detail.sections.agent.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_entry_about_a_guest_names_its_customer() {
    let temp = tempfile::tempdir().unwrap();
    let host = enrolled(temp.path()).await;
    let process = Process::start(temp.path(), "127.0.0.1:0").await;
    let uid = GuestUid::new(Uuid::from_u128(7));
    let (code, subject) = (ConditionCode::GuestBroken, Subject::Guest { uid });
    let wrong = ReportedCondition::new(code, subject, "2026-11-01T00:00:00Z".parse().unwrap(), "as it is");
    let guests = json!([{ "uid": uid, "name": "web", "customer": "acme", "vmid": 101, "status": "managed",
        "run": "running" }]);
    let full = host.full(2, 0);
    let sections = Sections {
        guests: serde_json::from_value(guests).unwrap(),
        conditions: Some(ConditionSet::collect([wrong])),
        ..full.sections.clone()
    };
    let client = at(&host.client, &process);
    let request = CheckinRequest { sections, ..full };
    let checked: CheckinAnswer =
        client.send(Method::POST, "/v1/agent/checkin?wait=0s", &request).await.data(StatusCode::OK);
    assert_eq!(checked.acknowledged, 2);
    let (status, log) = process.stop().await;
    assert!(status.success(), "{log}");
    let entries = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let fired = entries.into_iter().find(|entry| entry["action"] == "incident_fired").expect(&log);
    let named = ["service", "host", "guest", "customer"].map(|name| fired[name].as_str().unwrap().to_owned());
    let host = host.enrolled.host_id.to_string();
    assert_eq!(named, ["hubd".to_owned(), host, uid.to_string(), "acme".to_owned()]);
    assert!(fired["correlation_id"].is_string(), "{fired}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_that_cannot_run_says_why_and_ends() {
    let temp = tempfile::tempdir().unwrap();
    let process = Process::start(temp.path(), "127.0.0.1:0").await;
    let cases: [(&[&str], &str); 3] = [
        (&["serve", "--dir"], "another hub runs"),
        (&["operator", "revoke", "nobody", "--dir"], "there is no operator nobody"),
        (&["serve", "--public-url", "http://hub", "--dir"], "https://name"),
    ];
    for (arguments, message) in cases {
        let output = hubd().args(arguments).arg(temp.path()).output().await.unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && error.contains(message), "{arguments:?}: {error}");
    }
    let lost = tempfile::tempdir().unwrap();
    Process::start(lost.path(), "127.0.0.1:0").await.kill().await;
    std::fs::remove_file(lost.path().join("ca.key")).unwrap();
    let output = hubd().args(["serve", "--listen", "127.0.0.1:0", "--dir"]).arg(lost.path()).output();
    let output = output.await.unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("restore it from the backup"));
    assert!(!output.status.success());
    let everywhere = tempfile::tempdir().unwrap();
    let output = hubd().args(["serve", "--listen", "0.0.0.0:0", "--dir"]).arg(everywhere.path()).output();
    assert!(String::from_utf8_lossy(&output.await.unwrap().stderr).contains("--public-url"));
    drop(process);
}
