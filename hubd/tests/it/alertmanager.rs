//! Alerts that are pushed to an Alertmanager.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use alerts::Rules;
use holdfast_protocol::checkin::CheckinRequest;
use holdfast_protocol::condition::{ConditionCode, ConditionSet, ReportedCondition, Subject};
use holdfast_protocol::id::{CorrelationId, ReceiverName};
use holdfast_protocol::report::Sections;
use hubd::clock::Clock as _;
use hubd::settings::AlertSettings;
use hubd::task::delivery::Receiver;
use jiff::{SignedDuration, Timestamp};
use notify::channel::Alertmanager;
use notify::{Channel, EgressPolicy};
use reqwest::StatusCode;
use serde_json::Value;
use uuid::Uuid;

use crate::notices::Server;
use crate::world::{Host, Options, World, until};

/// A program of Debian's.
#[expect(clippy::disallowed_methods, reason = "Debian's prometheus-alertmanager and curl")]
fn program(name: &str) -> Command {
    Command::new(name)
}

/// Whether Debian's package `prometheus-alertmanager` is there. CI has it.
fn is_installed() -> bool {
    let mut asked = program("prometheus-alertmanager");
    let found = asked.arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    assert!(found || std::env::var_os("HOLDFAST_CI").is_none(), "CI has the package prometheus-alertmanager");
    found
}

/// An Alertmanager that ends with the test.
struct Process {
    child: Child,
    url: String,
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Process {
    fn start(folder: &Path) -> Self {
        let file = folder.join("alertmanager.yml");
        std::fs::write(&file, "route:\n  receiver: none\nreceivers:\n  - name: none\n").unwrap();
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let child = program("prometheus-alertmanager")
            .arg(format!("--config.file={}", file.display()))
            .arg(format!("--storage.path={}", folder.join("data").display()))
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            // It speaks to no other one.
            .arg("--cluster.listen-address=")
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(folder.join("log")).unwrap())
            .spawn()
            .unwrap();
        Self { child, url: format!("http://127.0.0.1:{port}") }
    }

    /// The alerts that fire there.
    async fn alerts(&self) -> Option<Vec<Value>> {
        let url = format!("{}/api/v2/alerts", self.url);
        let asked = tokio::task::spawn_blocking(|| program("curl").arg("--silent").arg(url).output());
        serde_json::from_slice(&asked.await.unwrap().unwrap().stdout).ok()
    }
}

/// A hub with one Alertmanager, and no waits.
async fn world(server: &str) -> World {
    let name: ReceiverName = "prom".parse().unwrap();
    let rules = "group_wait_s = 0\ngroup_interval_s = 10\nclear_after_s = 0\n";
    let rules = toml::from_str::<Rules>(rules).unwrap().resolve(std::slice::from_ref(&name)).unwrap();
    let server = server.to_owned().try_into().unwrap();
    let channel = Channel::Alertmanager(Alertmanager { server, token: None, ca: None });
    let receivers = vec![Receiver { name, channel }];
    let alerts =
        AlertSettings { rules, receivers, reach: EgressPolicy::Loopback, ..AlertSettings::default() };
    World::with(Options { alerts, ..Options::default() }).await
}

pub async fn reports(world: &World, host: &Host, sequence: u64, codes: &[ConditionCode]) {
    let since = world.clock.now();
    let wrong = codes.iter().map(|code| ReportedCondition::new(*code, Subject::Host {}, since, "as it is"));
    let conditions = Some(ConditionSet::collect(wrong));
    let request = host.full(sequence, 0);
    let sections = Sections { conditions, ..request.sections.clone() };
    host.check_in(&CheckinRequest { sections, ..request }, "0s").await.data(StatusCode::OK);
    let now = world.clock.advance(1);
    world.store.advance_alerts(&world.term().await, now, CorrelationId::new(Uuid::nil()), 64).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_real_alertmanager_lists_an_alert_until_it_is_over() {
    if !is_installed() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let alertmanager = Process::start(folder.path());
    until("it listens", || async { alertmanager.alerts().await.is_some() }).await;
    let world = world(&alertmanager.url).await;
    let host = world.enrol("box7").await;
    reports(&world, &host, 1, &[ConditionCode::RecordsBroken]).await;
    until("the alert is listed", || async { alertmanager.alerts().await.unwrap().len() == 1 }).await;
    let alert = alertmanager.alerts().await.unwrap().remove(0);
    assert_eq!(alert["labels"]["alertname"], "RECORDS_BROKEN", "{alert}");
    assert_eq!(
        (&alert["labels"]["host"], &alert["labels"]["severity"]),
        (&"box7".into(), &"critical".into())
    );
    assert_eq!(alert["status"]["state"], "active");
    assert!(alert["annotations"]["summary"].as_str().unwrap().contains("as it is"), "{alert}");
    assert!(alert["generatorURL"].as_str().unwrap().starts_with(&world.url), "{alert}");
    let starts: Timestamp = alert["startsAt"].as_str().unwrap().parse().unwrap();
    let ends: Timestamp = alert["endsAt"].as_str().unwrap().parse().unwrap();
    // Its own time limit; ours is to send it again before that.
    assert!(ends.duration_since(starts) >= SignedDuration::from_mins(4), "{alert}");
    // The next notice of the group is due after its interval.
    reports(&world, &host, 2, &[]).await;
    let now = world.clock.advance(10);
    world.store.advance_alerts(&world.term().await, now, CorrelationId::new(Uuid::nil()), 64).await.unwrap();
    until("the alert is over", || async { alertmanager.alerts().await.unwrap().is_empty() }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_fires_is_sent_again_each_minute_and_what_is_over_is_not() {
    let server = Server::default();
    let url = server.start().await;
    let world = world(url.expose()).await;
    let host = world.enrol("box7").await;
    reports(&world, &host, 1, &[ConditionCode::RecordsBroken]).await;
    let sent =
        || server.seen.lock().unwrap().iter().map(|(_, _, body)| body[0].clone()).collect::<Vec<Value>>();
    until("it is sent", || async { !sent().is_empty() }).await;
    let first = sent().len();
    world.clock.advance(61);
    // An event wakes the deliveries.
    world.invite("box8").await;
    until("it is sent again", || async { sent().len() > first }).await;
    let all = sent();
    assert!(all.iter().all(|one| one["labels"] == all[0]["labels"] && one["startsAt"] == all[0]["startsAt"]));
    assert!(all.iter().all(|one| one["endsAt"].is_null()), "{all:?}");
    reports(&world, &host, 2, &[]).await;
    let now = world.clock.advance(10);
    world.store.advance_alerts(&world.term().await, now, CorrelationId::new(Uuid::nil()), 64).await.unwrap();
    until("its end is sent", || async { sent().last().unwrap()["endsAt"].is_string() }).await;
    let name: ReceiverName = "prom".parse().unwrap();
    assert_eq!(world.store.firing_at(name, 10).await.unwrap(), [], "nothing is sent again from now on");
}
