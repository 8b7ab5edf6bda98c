//! Tests of the Proxmox client against a misbehaving server.
#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::pve_peer::{Peer, Turn, answer, data};
use agentd::port::pve::change::Description;
use agentd::port::pve::config::Digest;
use agentd::port::pve::error::{PveError, RetryClass, Sent};
use agentd::port::pve::retry::Pause;
use agentd::port::pve::snapshot::SnapshotListing;
use agentd::port::pve::task::{Patience, TaskEnd, Unclear};
use agentd::port::pve::{
    ApiToken, CanSnapshot, ConfigChange, ConfigUpdate, LogWindow, NewSnapshot, OwnSnapshot, Pace, Pve,
    PveClient, PveSettings, Role, TaskKind, TaskOutcome, TaskQuery, Upid, VmidUse, follow_task,
};
use holdfast_protocol::id::{SnapshotName, Vmid};
use holdfast_protocol::pin::{Pin, PinKind, PinSet};
use holdfast_protocol::secret::Secret;
use net::tls::Trust;

/// A clock whose time passes only during a sleep.
#[derive(Default)]
struct Quick(Mutex<Duration>);

impl Pace for Quick {
    fn now(&self) -> Duration {
        *self.0.lock().unwrap()
    }
    fn sleep(&self, pause: Duration) -> Pause<'_> {
        *self.0.lock().unwrap() += pause;
        Box::pin(std::future::ready(()))
    }
    fn chance_percent(&self) -> u32 {
        50
    }
}

fn settings(peer: &Peer, pin: Pin) -> PveSettings {
    let token =
        |role: Role| ApiToken { id: format!("hf@pve!{role}"), secret: Secret::new(format!("secret-{role}")) };
    PveSettings {
        url: format!("https://{}", peer.address),
        node: "pve1".parse().unwrap(),
        trust: Trust::Pins(PinSet::from(pin)),
        tokens: [Role::Observe, Role::Operate, Role::Allocate].map(|role| (role, token(role))).into(),
    }
}

fn client(peer: &Peer) -> PveClient {
    PveClient::new(&settings(peer, peer.pin), Arc::new(Quick::default())).unwrap()
}

fn vmid(number: u32) -> Vmid {
    Vmid::try_from(number).unwrap()
}

fn update() -> ConfigUpdate {
    let digest = Digest::parse("0efe9d8b6dd8ab19dfd1c70300537ee86bad8bf0").unwrap();
    ConfigUpdate::new(digest, vec![ConfigChange::Protect, ConfigChange::Memory(512.try_into().unwrap())])
        .unwrap()
}

const UPID: &str = "UPID:pve1:00000CEA:000654F7:6B0117B2:vzstart:300:hf@pve!operate:";
const VERSION: &str = r#"{"version":"9.2.11","release":"9.2","repoid":"14a22df35955d97d"}"#;

#[tokio::test]
async fn a_read_as_it_goes_over_the_wire() {
    let peer = Peer::start(vec![data(VERSION), data(r#"{"/vms/300":{"VM.Audit":0}}"#)]);
    let client = client(&peer);
    assert!(client.version().await.unwrap().is_supported());
    let path = agentd::port::pve::AclPath::guest(vmid(300));
    assert!(client.permissions(Role::Operate, Some(path.clone())).await.unwrap().holds(&path, "VM.Audit"));
    let asked = peer.asked();
    assert_eq!(asked[0].line(), "GET /api2/json/version");
    assert!(
        asked[0].head.contains("authorization: PVEAPIToken=hf@pve!observe=secret-observe\r\n"),
        "{}",
        asked[0].head
    );
    assert_eq!(asked[1].line(), "GET /api2/json/access/permissions?path=%2Fvms%2F300");
    assert!(asked[1].head.contains("hf@pve!operate="));
    assert_eq!(asked[0].connection, asked[1].connection, "reads share a connection");
}

#[tokio::test]
async fn writes_each_take_a_fresh_connection_and_repeat_the_digest() {
    let peer = Peer::start(vec![data("null"), data("null"), data(&format!("{UPID:?}"))]);
    let client = client(&peer);
    client.configure(vmid(300), &update()).await.unwrap();
    client.configure(vmid(300), &update()).await.unwrap();
    assert_eq!(client.start(vmid(300)).await.unwrap().as_str(), UPID);
    let asked = peer.asked();
    assert_eq!(asked[0].line(), "PUT /api2/json/nodes/pve1/lxc/300/config");
    assert_eq!(asked[0].body, "protection=1&memory=512&digest=0efe9d8b6dd8ab19dfd1c70300537ee86bad8bf0");
    assert!(asked[0].head.contains("content-type: application/x-www-form-urlencoded\r\n"));
    let connections: Vec<usize> = asked.iter().map(|a| a.connection).collect();
    assert_eq!(connections, [0, 1, 2]);
}

const TAKING: &str = "UPID:pve1:00000640:0006332B:6B01175B:vzsnapshot:300:hf@pve!operate:";

/// Each with the token that is permitted, and without a parameter that could do more than was requested.
#[tokio::test]
async fn snapshots_as_they_go_over_the_wire() {
    let listed = r#"[{"name":"s1","description":"line\n","snaptime":1795233627},{"name":"current","description":"You are here!"}]"#;
    let task = || data(&format!("{TAKING:?}"));
    let config = r#"{"digest":"0efe9d8b6dd8ab19dfd1c70300537ee86bad8bf0","snaptime":1795233627}"#;
    let peer =
        Peer::start(vec![data(r#"{"hasFeature":0}"#), task(), data(listed), data(config), task(), task()]);
    let client = client(&peer);
    let name: SnapshotName = "s1".parse().unwrap();
    assert_eq!(client.can_snapshot(vmid(300)).await.unwrap(), CanSnapshot::No);
    let line = Description::try_from("line".to_owned()).unwrap();
    client.snapshot(vmid(300), &NewSnapshot { name: name.clone(), line }).await.unwrap();
    let rows = client.snapshots(vmid(300)).await.unwrap();
    let SnapshotListing::Whole(own) = OwnSnapshot::find(vmid(300), &name, "line", &rows) else {
        panic!("{rows:?}")
    };
    client.snapshot_config(vmid(300), &name).await.unwrap();
    client.roll_back(&own).await.unwrap();
    client.remove_snapshot(&own).await.unwrap();
    let said: Vec<(String, String, bool)> = peer
        .asked()
        .iter()
        .map(|asked| {
            let by_operate = asked.head.contains("hf@pve!operate=");
            (asked.line().replace("/api2/json/nodes/pve1", ""), asked.body.clone(), by_operate)
        })
        .collect();
    let wanted = [
        ("GET /lxc/300/feature?feature=snapshot", "", false),
        ("POST /lxc/300/snapshot", "snapname=s1&description=line", true),
        ("GET /lxc/300/snapshot", "", false),
        ("GET /lxc/300/config?snapshot=s1", "", true),
        ("POST /lxc/300/snapshot/s1/rollback", "", true),
        ("DELETE /lxc/300/snapshot/s1", "", true),
    ];
    assert_eq!(said, wanted.map(|(line, body, by)| (line.to_owned(), body.to_owned(), by)));
}

#[tokio::test]
async fn reason_phrases_and_odd_statuses_arrive() {
    let peer = Peer::start(vec![
        answer("500 CT is locked (backup)", r#"{"message":"CT is locked (backup)\n","data":null}"#),
        answer("401 Authentication failed!", ""),
        answer("403 Permission check failed (/vms/300, VM.Config.Options)", r#"{"data":null}"#),
        answer("595 Connection refused", ""),
        answer("301 Moved Permanently", ""),
    ]);
    let client = client(&peer);
    let mut errors = Vec::new();
    for _ in 0..5 {
        errors.push(client.configure(vmid(300), &update()).await.unwrap_err());
    }
    assert!(matches!(&errors[0], PveError::Locked { kind } if kind == "backup"), "{:?}", errors[0]);
    assert!(matches!(&errors[1], PveError::Unauthorised { role: Role::Operate }), "{:?}", errors[1]);
    assert!(
        matches!(&errors[2], PveError::Permission { path: Some(path), .. } if path == "/vms/300"),
        "{:?}",
        errors[2]
    );
    assert!(
        errors[3].may_have_happened() && errors[3].retry_class() == RetryClass::LookFirst,
        "{:?}",
        errors[3]
    );
    assert!(matches!(&errors[4], PveError::Other { status: 301, .. }), "{:?}", errors[4]);
    assert_eq!(peer.asked().len(), 5, "no write was sent twice and no redirect followed");
}

#[tokio::test]
async fn a_lost_answer_repeats_a_read_and_never_a_write() {
    let peer =
        Peer::start(vec![Turn::HangUp, answer("596 Connection timed out", ""), data(VERSION), Turn::HangUp]);
    let client = client(&peer);
    client.version().await.unwrap();
    assert_eq!(peer.asked().len(), 3);
    let lost = client.configure(vmid(300), &update()).await.unwrap_err();
    assert!(matches!(lost, PveError::Unreachable { sent: Sent::Perhaps, .. }), "{lost:?}");
    assert!(lost.may_have_happened());
    assert_eq!(peer.asked().len(), 4);
}

#[tokio::test]
async fn a_write_that_never_left_is_tried_again_and_then_given_up() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let peer = Peer::start(Vec::new());
    let settings = PveSettings { url: format!("https://{address}"), ..settings(&peer, peer.pin) };
    let pace = Arc::new(Quick::default());
    let client = PveClient::new(&settings, Arc::clone(&pace) as Arc<dyn Pace>).unwrap();
    let refused = client.configure(vmid(300), &update()).await.unwrap_err();
    assert!(matches!(refused, PveError::Unreachable { sent: Sent::No, .. }), "{refused:?}");
    assert!(!refused.may_have_happened());
    assert_eq!(pace.now(), Duration::from_millis(200 + 800 + 3200), "four tries");
}

#[tokio::test]
async fn a_server_with_another_key_hears_nothing_at_all() {
    let (peer, other) = (Peer::start(vec![data(VERSION)]), Peer::start(Vec::new()));
    let client = PveClient::new(&settings(&peer, other.pin), Arc::new(Quick::default())).unwrap();
    let refused = client.version().await.unwrap_err();
    assert!(matches!(refused, PveError::PinMismatch { offered } if offered == peer.pin), "{refused:?}");
    assert_eq!(refused.retry_class(), RetryClass::Never);
    assert!(peer.asked().is_empty());
    assert_eq!(peer.pin.kind(), PinKind::Spki);
}

#[tokio::test]
async fn what_is_too_long_or_no_answer_is_reported_apart() {
    let peer = Peer::start(vec![
        Turn::Endless,
        data(r#"{"version":["9"]}"#),
        answer("200 OK", "<html>"),
        answer("200 OK", r#"{"total":1}"#),
    ]);
    let client = client(&peer);
    let too_large = client.version().await.unwrap_err();
    assert!(matches!(too_large, PveError::TooLarge { limit, .. } if limit == 512 << 10), "{too_large:?}");
    for _ in 0..3 {
        let garbled = client.version().await.unwrap_err();
        assert!(matches!(garbled, PveError::Garbled { call: "GET /version", .. }), "{garbled:?}");
    }
}

#[tokio::test]
async fn a_role_without_a_token_sends_nothing() {
    let peer = Peer::start(Vec::new());
    let client = client(&peer);
    let error = client.permissions(Role::Scratch, None).await.unwrap_err();
    assert!(matches!(error, PveError::NoToken { role: Role::Scratch }));
    assert!(peer.asked().is_empty());
}

#[tokio::test]
async fn a_taken_vmid_is_an_answer() {
    let taken = r#"{"errors":{"vmid":"VM 150 already exists"},"data":null,"message":"Parameter verification failed.\n"}"#;
    let peer = Peer::start(vec![data("\"150\""), answer("400 Parameter verification failed.", taken)]);
    let client = client(&peer);
    assert_eq!(client.vmid_use(vmid(150)).await.unwrap(), VmidUse::Free);
    assert_eq!(client.vmid_use(vmid(150)).await.unwrap(), VmidUse::Taken);
}

fn status(text: &str) -> Turn {
    data(&format!(r#"{{"upid":"{UPID}","type":"vzstart","pid":1,"user":"hf@pve",{text}}}"#))
}

fn log(from: u64, lines: &[&str]) -> Turn {
    let rows: Vec<String> =
        (from + 1..).zip(lines).map(|(n, text)| format!(r#"{{"n":{n},"t":"{text}"}}"#)).collect();
    answer_owned(format!(r#"{{"data":[{}],"total":{}}}"#, rows.join(","), from + lines.len() as u64))
}

fn answer_owned(body: String) -> Turn {
    Turn::Answer { status: "200 OK", body }
}

const NO_TASK: &str =
    r#"{"errors":{"upid":"no such task"},"data":null,"message":"Parameter verification failed.\n"}"#;

async fn followed(
    turns: Vec<Turn>,
    patience: Patience,
) -> (Result<TaskOutcome, PveError>, Vec<String>, Vec<String>) {
    let peer = Peer::start(turns);
    let client = client(&peer);
    let mut lines = Vec::new();
    let upid: Upid = UPID.parse().unwrap();
    let mut on_line = |line: &str| lines.push(line.to_owned());
    let outcome = follow_task(&client, &Quick::default(), &upid, patience, &mut on_line).await;
    let asked = peer.asked().iter().map(|a| a.line().to_owned()).collect();
    for request in peer.asked() {
        assert!(
            request.head.contains("hf@pve!operate="),
            "a task is followed with the token that started it"
        );
    }
    (outcome, lines, asked)
}

#[tokio::test]
async fn a_task_is_followed_to_its_end_line_by_line() {
    let turns = vec![
        answer("400 Parameter verification failed.", NO_TASK),
        status(r#""status":"running""#),
        log(0, &["one"]),
        status(r#""status":"running""#),
        log(1, &[]),
        status(r#""status":"stopped","exitstatus":"WARNINGS: 2""#),
        log(1, &["two", "TASK WARNINGS: 2"]),
    ];
    let (outcome, lines, asked) = followed(turns, Patience::up_to(Duration::from_secs(60))).await;
    assert_eq!(outcome.unwrap(), TaskOutcome::Warnings(2));
    assert_eq!(lines, ["one", "two", "TASK WARNINGS: 2"]);
    assert!(asked[6].ends_with("/log?start=1&limit=500"), "{}", asked[6]);
}

#[tokio::test]
async fn the_four_outcomes() {
    let end = |text: &str| vec![status(&format!(r#""status":"stopped",{text}"#)), log(0, &[])];
    let patience = Patience::up_to(Duration::from_secs(60));
    for (turns, wanted) in [
        (end(r#""exitstatus":"OK""#), TaskOutcome::Ok),
        (
            end(r#""exitstatus":"CT is locked (backup)""#),
            TaskOutcome::Failed("CT is locked (backup)".to_owned()),
        ),
        (end(r#""exitstatus":"unexpected status""#), TaskOutcome::Unknown(Unclear::WorkerDied)),
        (end(r#""exitstatus":null"#), TaskOutcome::Unknown(Unclear::Silent)),
    ] {
        assert_eq!(followed(turns, patience).await.0.unwrap(), wanted);
    }
}

#[tokio::test]
async fn a_task_that_was_seen_and_is_gone_is_unknown_and_so_is_one_that_never_ends() {
    let patience = Patience::up_to(Duration::from_secs(3));
    let turns = vec![
        status(r#""status":"running""#),
        log(0, &[]),
        answer("400 Parameter verification failed.", NO_TASK),
    ];
    assert_eq!(followed(turns, patience).await.0.unwrap(), TaskOutcome::Unknown(Unclear::Vanished));
    let endless: Vec<Turn> = (0..20).flat_map(|_| [status(r#""status":"running""#), log(0, &[])]).collect();
    let outcome = followed(endless, patience).await.0.unwrap();
    assert!(matches!(outcome, TaskOutcome::Unknown(Unclear::StillRunning { after_s: 3.. })), "{outcome:?}");
}

#[tokio::test]
async fn trouble_while_following_is_waited_out_but_a_closed_socket_is_not() {
    let passing = vec![
        answer(
            "500 RPCEnvironment init request failed: Unable to load access control list: Connection refused",
            "",
        ),
        answer(
            "500 RPCEnvironment init request failed: Unable to load access control list: Connection refused",
            "",
        ),
        status(r#""status":"stopped","exitstatus":"OK""#),
        log(0, &[]),
    ];
    let patience = Patience::up_to(Duration::from_secs(60));
    assert_eq!(followed(passing, patience).await.0.unwrap(), TaskOutcome::Ok);
    let shut = followed(vec![answer("401 Authentication failed!", "")], patience).await.0;
    assert!(matches!(shut, Err(PveError::Unauthorised { .. })), "{shut:?}");
}

#[tokio::test]
async fn a_lost_task_is_found_among_those_of_others() {
    let row = |start: &str, kind: &str, id: &str, owner: &str, status: &str| {
        format!(
            r#"{{"upid":"UPID:pve1:00000CEA:000654F7:{start}:{kind}:{id}:{owner}:","starttime":1{status}}}"#
        )
    };
    let ended = r#","status":"OK","endtime":1"#;
    let rows = [
        row("6B0117B2", "vzrestore", "300", "hf@pve!allocate", ended),
        row("6B0117B9", "vzrestore", "300", "hf@pve!allocate", r#","status":"RUNNING""#),
        row("6B0117B9", "vzrestore", "300", "root@pam", ended),
        row("6B0117B9", "vzrestore", "301", "hf@pve!allocate", ended),
        row("6B0117B9", "vzdestroy", "300", "hf@pve!allocate", ended),
        row("6B0117B0", "vzrestore", "300", "hf@pve!allocate", ended),
    ];
    let peer = Peer::start(vec![data(&format!("[{}]", rows.join(",")))]);
    let query = TaskQuery {
        vmid: vmid(300),
        kind: TaskKind::Restore,
        role: Role::Allocate,
        since_epoch_s: 0x6B01_17B2,
    };
    let found = client(&peer).find_tasks(query).await.unwrap();
    let ends: Vec<_> = found.iter().map(|row| (row.upid.start_epoch_s(), row.end.clone())).collect();
    assert_eq!(ends, [(0x6B01_17B9, None), (0x6B01_17B2, Some(TaskEnd::Ok))]);
    assert_eq!(
        peer.asked()[0].line(),
        "GET /api2/json/nodes/pve1/tasks?vmid=300&source=all&typefilter=vzrestore&since=1795233714&limit=500"
    );
}

#[tokio::test]
async fn a_log_is_read_in_order_whatever_order_it_comes_in() {
    let body = r#"{"data":[{"t":"two","n":2},{"n":"1","t":"one"}],"total":"2"}"#;
    let peer = Peer::start(vec![answer("200 OK", body)]);
    let log =
        client(&peer).task_log(&UPID.parse().unwrap(), LogWindow { start: 0, limit: 500 }).await.unwrap();
    assert_eq!((log.lines, log.total), (vec!["one".to_owned(), "two".to_owned()], 2));
}
