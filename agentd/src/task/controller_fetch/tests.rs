//! Tests of builds from the hub: fetched in parts, cut off, refused.

use std::path::Path;
use std::sync::{Mutex, MutexGuard};

use holdfast_protocol::desired::Desired;
use net::client::{Answer, Method};
use rusqlite::Connection;
use serde_json::{Value, json};

use super::*;
use crate::port::clock::RealClock;
use crate::port::hub::{Line, Posted};
use crate::task::enrolled_agent;

#[derive(Debug, Default)]
struct Hubs {
    program: Option<Vec<u8>>,
    asked: Vec<String>,
    /// After so many parts the line breaks.
    breaks_after: Option<usize>,
}

#[derive(Clone, Debug, Default)]
struct FakeHub(Arc<Mutex<Hubs>>);

impl FakeHub {
    fn lock(&self) -> MutexGuard<'_, Hubs> {
        self.0.lock().unwrap()
    }
}

fn refusal(status: u16, code: &str) -> Answer {
    enrolled_agent::answer((status, Value::Null, json!({ "code": code, "message": "no" })))
}

impl Line for FakeHub {
    fn send<'a>(&'a self, _: Method, path: &'a str, _: Vec<u8>, _: Duration) -> Posted<'a> {
        panic!("{path}")
    }

    fn part<'a>(&'a self, path: &'a str, range: String, _: Duration) -> Posted<'a> {
        let mut hub = self.lock();
        assert!(path.starts_with("/v1/agent/artifacts/"), "{path}");
        let (from, to) = range.strip_prefix("bytes=").unwrap().split_once('-').unwrap();
        let (from, to): (usize, usize) = (from.parse().unwrap(), to.parse().unwrap());
        hub.asked.push(range.clone());
        let breaks = hub.breaks_after.is_some_and(|parts| hub.asked.len() > parts);
        // As the hub does: the end is cut to the file's, and a beginning behind it is refused.
        let answer = match &hub.program {
            _ if breaks => refusal(503, "UNAVAILABLE"),
            None => refusal(404, "NOT_FOUND"),
            Some(program) if from >= program.len() => refusal(416, "RANGE"),
            Some(program) => Answer::new(206, program[from..=to.min(program.len() - 1)].to_vec()),
        };
        Box::pin(async move { Ok(answer) })
    }
}

struct Case {
    hub: FakeHub,
    task: ControllerFetchTask,
    seen: watch::Receiver<Arc<MissingControllers>>,
    sha256: Sha256Hex,
    state: tempfile::TempDir,
}

impl Case {
    /// A document asks for this build, and the hub has it.
    async fn new(program: &[u8]) -> Self {
        let state = tempfile::tempdir().unwrap();
        let folder = IdentityFolder::open(state.path()).unwrap();
        enrolled_agent::enrol(state.path());
        let hub = FakeHub::default();
        hub.lock().program = Some(program.to_vec());
        let line = hub.clone();
        let clock: Arc<dyn Clock> = Arc::new(RealClock::start());
        let store = Store::open(state.path(), clock.now()).unwrap();
        let digest = Sha256Text::of(program);
        let guest = json!({"uid": "018f3c1e-6b1f-7c1d-9d0a-2f6d1c0b7a51", "name": "web", "customer": "acme",
            "run": "running", "golden": "2026.11.1", "controller": {"version": "0.2.0", "sha256": digest.as_str()},
            "size": {"cores": 1, "memory_mib": 256, "swap_mib": 0, "rootfs_gib": 4},
            "network": {"bridge": "vmbr1", "address": "10.66.0.91/24"}, "volumes": []});
        let document = json!({"schema": "holdfast.desired/v1", "generation": 1, "poll_interval_s": 30, "guests": [guest]});
        let document = Desired::parse(document.to_string().as_bytes()).unwrap();
        store.offer_desired(document, clock.now()).await.unwrap();
        let (missing, seen) = watch::channel(Arc::default());
        let task = ControllerFetchTask {
            store,
            folder,
            dial: Arc::new(move |_| Ok(Hub::over(Arc::new(line.clone()), "https://hub"))),
            artifacts: Artifacts::of(state.path()),
            missing,
            clock,
        };
        Self { hub, task, seen, sha256: digest.as_str().to_owned().try_into().unwrap(), state }
    }

    fn approve(&self) {
        approve(self.state.path(), "0.2.0", &self.sha256);
    }

    fn missing(&self) -> Option<MissingController> {
        self.seen.borrow().get(&self.sha256).cloned()
    }

    fn is_here(&self) -> bool {
        self.task.artifacts.open(&self.sha256).unwrap().is_some()
    }
}

fn approve(state: &Path, version: &str, sha256: &Sha256Hex) {
    let raw = Connection::open(state.join("agent.db")).unwrap();
    let insert =
        "INSERT INTO release (kind, version, sha256, by, at) VALUES ('controller', ?1, ?2, 'test', 0)";
    raw.execute(insert, (version, sha256.as_str())).unwrap();
}

fn program(bytes: usize) -> Vec<u8> {
    let mut program = b"\x7fELF".to_vec();
    program.resize(bytes, 7);
    program
}

#[tokio::test]
async fn an_approved_build_is_fetched_in_parts_and_goes_on_after_a_break() {
    let case = Case::new(&program(2_500_000)).await;
    case.approve();
    case.hub.lock().breaks_after = Some(1);
    case.task.round().await.unwrap();
    assert!(matches!(case.missing(), Some(MissingController::Failed(_))) && !case.is_here());
    case.hub.lock().breaks_after = None;
    case.task.round().await.unwrap();
    assert!(case.is_here() && case.missing().is_none());
    let from: Vec<String> =
        case.hub.lock().asked.iter().map(|range| range.split_once('-').unwrap().0.to_owned()).collect();
    assert_eq!(from, ["bytes=0", "bytes=1048576", "bytes=1048576", "bytes=2097152"]);
    case.task.round().await.unwrap();
    assert_eq!(case.hub.lock().asked.len(), 4, "what is here is not fetched");
}

#[tokio::test]
async fn the_document_alone_brings_nothing_here() {
    let case = Case::new(&program(1_000)).await;
    approve(case.state.path(), "0.3.0", &case.sha256);
    case.task.round().await.unwrap();
    assert!(case.hub.lock().asked.is_empty() && case.missing().is_none());
}

#[tokio::test]
async fn a_build_of_whole_parts_ends_where_the_hub_has_no_more() {
    let case = Case::new(&program(2 * 1024 * 1024)).await;
    case.approve();
    case.task.round().await.unwrap();
    assert!(case.is_here());
}

#[tokio::test]
async fn what_the_hub_lacks_or_changes_is_reported_and_not_kept() {
    let case = Case::new(&program(1_000)).await;
    case.approve();
    case.hub.lock().program = None;
    case.task.round().await.unwrap();
    assert_eq!(case.missing(), Some(MissingController::NotAtHub));
    case.hub.lock().program = Some(program(999));
    case.task.round().await.unwrap();
    assert!(matches!(case.missing(), Some(MissingController::Failed(why)) if why.contains("hash to")));
    assert!(!case.is_here());
    // Without an end.
    case.hub.lock().program = Some(program(66 * 1024 * 1024));
    case.task.round().await.unwrap();
    assert!(matches!(case.missing(), Some(MissingController::Failed(_))) && !case.is_here());
    case.hub.lock().program = Some(program(1_000));
    case.task.round().await.unwrap();
    assert!(case.is_here() && case.missing().is_none());
}
