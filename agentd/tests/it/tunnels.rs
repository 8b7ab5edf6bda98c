//! Tests of the task that looks after tunnels.
//!
//! A program of ours is in the place of systemctl, and a folder in the place of root's.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use agentd::model::tunnel::{Tunnel, TunnelsView};
use agentd::port::clock::{Clock, RealClock};
use agentd::port::store::Store;
use agentd::port::store::job_intake::{Outcome, take};
use agentd::port::store::roster::RosterTexts;
use agentd::port::tunnels::files::TunnelFile;
use agentd::port::tunnels::{Systemctl, TunnelFiles};
use agentd::task::stop::{self, Stopper};
use agentd::task::tunnels::TunnelsTask;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::{HostId, JobId, TunnelName};
use holdfast_protocol::job::{JobReport, JobState, QueuedJob, SeenHost, UtcSecond};
use holdfast_protocol::report::{RestartOutcome, TokenReport, TunnelReport, TunnelState};
use holdfast_protocol::secret::Secret;
use holdfast_seal::{HostKey, TunnelToken};
use jiff::SignedDuration;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::ssh_signer::{Hand, job};

const PATIENCE: Duration = Duration::from_secs(60);
const TOKEN: &str = "eyJhIjoiaHVudGVyMiJ9";

struct World {
    folder: tempfile::TempDir,
    store: Store,
    key: Arc<HostKey>,
    view: watch::Receiver<Arc<TunnelsView>>,
    clock: Arc<dyn Clock>,
    stopper: Stopper,
    task: JoinSet<()>,
}

fn host() -> HostId {
    HostId::new(Uuid::from_u128(77))
}

fn own() -> SeenHost {
    SeenHost { name: "box7".parse().unwrap(), fingerprint: "4f2a-9c01-77de-b3a8-0c11".parse().unwrap() }
}

fn cf() -> TunnelName {
    "cf".parse().unwrap()
}

fn script(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

impl World {
    async fn start(tunnels: Value) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock: Arc<dyn Clock> = Arc::new(RealClock::start());
        std::fs::create_dir(folder.path().join("state")).unwrap();
        let store = Store::open(&folder.path().join("state"), clock.now()).unwrap();
        let texts = RosterTexts { operators: Hand::new(1).line("ada"), policy: "version = 1\n".to_owned() };
        store.lay_down(texts, clock.now()).await.unwrap();
        for kind in [TunnelFile::Request, TunnelFile::Result, TunnelFile::Token] {
            std::fs::create_dir(folder.path().join(kind.folder())).unwrap();
        }
        let files = TunnelFiles::at(folder.path());
        for kind in TunnelFile::MADE {
            std::fs::write(files.path(kind, &cf()), "").unwrap();
        }
        let program = folder.path().join("systemctl");
        script(&program, "#!/bin/sh\ncat \"$(/usr/bin/dirname \"$0\")/shown\"\n");
        let (published, view) = watch::channel(Arc::new(TunnelsView::default()));
        let (stopper, stop) = stop::pair();
        let key = Arc::new(HostKey::generate());
        let task = TunnelsTask {
            tunnels: serde_json::from_value::<Vec<Tunnel>>(tunnels).unwrap(),
            systemctl: Systemctl::at(program),
            files,
            store: store.clone(),
            key: Arc::clone(&key),
            view: published,
            every: Duration::from_millis(20),
            clock: Arc::clone(&clock),
        };
        let mut world = Self { folder, store, key, view, clock, stopper, task: JoinSet::new() };
        world.systemd_says("active");
        world.task.spawn(task.run(stop));
        world
    }

    /// Systemd's answer, by a rename: the task never reads half of it.
    fn systemd_says(&self, state: &str) {
        let at = |name: &str| self.folder.path().join(name);
        let text =
            format!("LoadState=loaded\nActiveState={state}\nStateChangeTimestamp=@1700000000\nNRestarts=0\n");
        std::fs::write(at("next"), text).unwrap();
        std::fs::rename(at("next"), at("shown")).unwrap();
    }

    fn read(&self, kind: TunnelFile) -> String {
        std::fs::read_to_string(TunnelFiles::at(self.folder.path()).path(kind, &cf())).unwrap()
    }

    /// Waits for a report.
    async fn sees(&mut self, wanted: impl Fn(&TunnelReport) -> bool) -> TunnelReport {
        let has = |view: &Arc<TunnelsView>| view.report(&cf()).is_some_and(&wanted);
        let view = tokio::time::timeout(PATIENCE, self.view.wait_for(has)).await.unwrap().unwrap().clone();
        view.report(&cf()).unwrap().clone()
    }

    /// Signs a job with a sealed token and leaves it, as the hub passes it on.
    async fn sign(&self, n: u32, tunnel: &str, key: &HostKey, inside: &str) -> JobId {
        let token = TunnelToken::new(inside.parse().unwrap(), Secret::new(TOKEN.to_owned())).unwrap();
        let sealed = token.seal(&key.recipient().unwrap()).unwrap();
        let epoch = self.store.trust_state().await.unwrap().epoch.number();
        let at =
            |minutes: i64| UtcSecond::new(self.clock.now() + SignedDuration::from_mins(minutes)).unwrap();
        let id = JobId::new(Uuid::from_u128(n.into()));
        let payload = json!({ "schema": "holdfast.job/v1", "job_id": id, "host_id": host(), "host_epoch": epoch,
            "host": own(), "target": { "kind": "host" }, "verb": "set_tunnel_token",
            "args": { "tunnel": tunnel, "sealed": sealed },
            "not_before": at(-1), "expires_at": at(60), "nonce": format!("{n:032x}"), "reason": "a new host" });
        let blob = job(payload.to_string().as_bytes(), &[&Hand::new(1)]);
        let mail = QueuedJob { id, blob, correlation_id: None };
        let outcome = take(&self.store, (host(), &own()), &mail, self.clock.now()).await.unwrap();
        assert!(matches!(outcome, Outcome::Taken), "{outcome:?}");
        id
    }

    async fn ended(&self, id: JobId) -> JobReport {
        let mut changes = self.store.changes();
        let waiting = async {
            loop {
                changes.borrow_and_update();
                let reports = self.store.job_reports().await.unwrap();
                let report = reports.into_iter().find(|report| report.id == id).unwrap();
                if report.state.is_end() {
                    return report;
                }
                changes.changed().await.unwrap();
            }
        };
        tokio::time::timeout(PATIENCE, waiting).await.unwrap()
    }

    /// The lines of the audit about restarts.
    async fn asked(&self) -> Vec<String> {
        let lines = self.store.audit(50).await.unwrap();
        let asked = lines.into_iter().filter(|line| line.action == "tunnel_restart_asked");
        asked.map(|line| line.detail).collect()
    }

    async fn stop(mut self) -> tempfile::TempDir {
        self.stopper.stop();
        while let Some(ended) = self.task.join_next().await {
            ended.unwrap();
        }
        self.folder
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tunnel_that_failed_is_asked_to_be_restarted_once_and_roots_answer_is_reported() {
    let mut world = World::start(json!([{ "name": "cf", "unit": "cloudflared.service" }])).await;
    let report = world.sees(|report| report.state == TunnelState::Unproved).await;
    assert_eq!((report.restarts, report.token), (None, None));
    assert_eq!(world.read(TunnelFile::Request), "");
    // It has been down for years by systemd's clock.
    world.systemd_says("failed");
    let report = world.sees(|report| report.restarts.is_some()).await;
    let restarts = report.restarts.unwrap();
    assert_eq!(
        (report.state, restarts.asked_today, restarts.outcome),
        (TunnelState::Down, 1, RestartOutcome::Pending)
    );
    assert_eq!(world.read(TunnelFile::Request), "restart\n");
    let asked = world.asked().await;
    assert_eq!(asked, ["tunnel cf (cloudflared.service): cloudflared.service failed"]);
    // Root's service answers, and the tunnel is up.
    let result = TunnelFiles::at(world.folder.path()).path(TunnelFile::Result, &cf());
    let line = format!("holdfast-tunnel-restart 1 {} restarted\n", world.clock.now().as_second());
    std::fs::write(result, line).unwrap();
    world.systemd_says("active");
    let report = world
        .sees(|report| {
            report.restarts.as_ref().is_some_and(|one| one.outcome == RestartOutcome::Restarted)
                && report.state == TunnelState::Unproved
        })
        .await;
    assert_eq!(report.restarts.unwrap().asked_today, 1);
    assert_eq!(world.asked().await.len(), 1, "no second request within a minute");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tunnel_that_a_person_stopped_is_reported_and_left() {
    let mut world = World::start(json!([{ "name": "cf", "unit": "cloudflared.service" }])).await;
    world.systemd_says("inactive");
    let report = world.sees(|report| report.state == TunnelState::Stopped).await;
    assert_eq!(report.restarts, None);
    assert!(world.asked().await.is_empty());
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_arrives_sealed_and_its_tunnel_is_restarted() {
    let mut world =
        World::start(json!([{ "name": "cf", "unit": "cloudflared.service", "token": "signed_job" }])).await;
    world.sees(|report| report.token == Some(TokenReport::Missing {})).await;
    let id = world.sign(1, "cf", &world.key, "cf").await;
    assert_eq!(world.ended(id).await.state, JobState::Done);
    assert_eq!(world.read(TunnelFile::Token), TOKEN);
    world.sees(|report| matches!(report.token, Some(TokenReport::Present { .. }))).await;
    world.sees(|report| report.restarts.is_some()).await;
    assert_eq!(world.asked().await, ["tunnel cf (cloudflared.service): it has a new token"]);
    // The file that root made is the same one: it was written, not replaced.
    let folder = world.stop().await;
    let files = std::fs::read_dir(folder.path().join("state")).unwrap().map(|entry| entry.unwrap().path());
    let records: Vec<u8> =
        files.filter(|path| path.is_file()).flat_map(|path| std::fs::read(path).unwrap()).collect();
    let has = |text: &str| records.windows(text.len()).any(|part| part == text.as_bytes());
    assert!(has("set_tunnel_token") && !has(TOKEN), "the token is in no record");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_for_another_host_or_tunnel_is_not_written() {
    let tunnels = json!([{ "name": "cf", "unit": "cloudflared.service", "token": "signed_job" },
        { "name": "wg", "unit": "wg-quick@wg0.service" }]);
    let world = World::start(tunnels).await;
    let other = HostKey::generate();
    let own = Arc::clone(&world.key);
    for (n, tunnel, key, inside, code) in [
        (1, "cf", &other, "cf", ErrorCode::SealKey),
        (2, "cf", &*own, "wg", ErrorCode::SealTarget),
        (3, "wg", &*own, "wg", ErrorCode::NotFound),
        (4, "none", &*own, "none", ErrorCode::NotFound),
    ] {
        let id = world.sign(n, tunnel, key, inside).await;
        let report = world.ended(id).await;
        assert_eq!((report.state, report.problem.unwrap().code), (JobState::Failed, code), "{n}");
    }
    assert_eq!(world.read(TunnelFile::Token), "");
    assert!(world.asked().await.is_empty());
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_tunnel_nothing_is_asked_and_a_token_is_refused() {
    let mut world = World::start(json!([])).await;
    std::fs::remove_file(world.folder.path().join("systemctl")).unwrap();
    let empty = |view: &Arc<TunnelsView>| view.reports.as_ref().is_some_and(Vec::is_empty);
    drop(tokio::time::timeout(PATIENCE, world.view.wait_for(empty)).await.unwrap().unwrap());
    let id = world.sign(1, "cf", &world.key, "cf").await;
    assert_eq!(world.ended(id).await.problem.unwrap().code, ErrorCode::NotFound);
    world.stop().await;
}
