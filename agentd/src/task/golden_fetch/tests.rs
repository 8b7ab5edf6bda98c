//! Tests of fetched images: in parts, cut off, refused by root.

use std::path::Path;
use std::sync::{Mutex, MutexGuard};

use holdfast_protocol::release::stored::ReleaseText;
use net::client::{Answer, Method};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;

use super::*;
use crate::port::clock::RealClock;
use crate::port::hub::{Line, Posted};
use crate::task::enrolled_agent;

const ARCHIVE: &[u8] = &[7; 2_500_000];

#[derive(Debug, Default)]
struct Hubs {
    signed: Option<String>,
    /// What a rollout offers; an older hub does not know the question.
    offer: Option<Value>,
    files: Vec<Vec<u8>>,
    asked: Vec<String>,
    breaks_after: Option<usize>,
}

#[derive(Clone, Debug, Default)]
struct FakeHub(Arc<Mutex<Hubs>>);

fn manifest(version: &str) -> Vec<u8> {
    let hex = "ab".repeat(32);
    let manifest = json!({
        "schema": "holdfast.golden-manifest/v1", "version": version, "contents": "complete",
        "archive": "vzdump-lxc-900001-x.tar.zst", "sha256": Sha256Text::of(ARCHIVE).as_str(),
        "size_bytes": ARCHIVE.len(), "recipe_sha256": hex, "guestd_sha256": hex, "source_date_epoch": 1,
        "packages": [], "build": { "made_at_s": 1, "seconds": 1, "entries": 1, "content_bytes": 1 },
    });
    manifest.to_string().into_bytes()
}

impl FakeHub {
    /// A hub that has the image under a version.
    fn with(version: &str) -> Self {
        let (hub, about) = (Self::default(), manifest(version));
        let file = |kind: &str, name: &str, bytes: &[u8]| {
            json!({ "kind": kind, "name": name,
            "sha256": Sha256Text::of(bytes).as_str(), "size_bytes": bytes.len() })
        };
        let manifest = json!({
            "schema": "holdfast.release/v1", "version": "2026.11.900",
            "issued_at": "2026-12-01T00:00:00Z", "expires_at": "2027-03-01T00:00:00Z",
            "files": [file("golden", "vzdump-lxc-900001-x.tar.zst", ARCHIVE), file("golden_manifest", "golden.json", &about)],
        });
        let manifest = manifest.to_string().into_bytes();
        let signed = SignedRelease { manifest, signatures: vec!["one".to_owned()] }.to_json().unwrap();
        *hub.lock() = Hubs { signed: Some(signed), files: vec![ARCHIVE.to_vec(), about], ..Hubs::default() };
        hub
    }

    fn lock(&self) -> MutexGuard<'_, Hubs> {
        self.0.lock().unwrap()
    }
}

impl Line for FakeHub {
    fn send<'a>(&'a self, method: Method, path: &'a str, _: Vec<u8>, _: Duration) -> Posted<'a> {
        assert_eq!(method, Method::GET);
        if path == "/v1/agent/image-offer" {
            let answer = match &self.lock().offer {
                Some(offer) => (200, offer.clone(), Value::Null),
                None => (404, Value::Null, json!({ "code": "NOT_FOUND", "message": "no such call" })),
            };
            return Box::pin(async move { Ok(enrolled_agent::answer(answer)) });
        }
        assert!(path.starts_with("/v1/agent/artifacts/") && path.ends_with("/release"), "{path}");
        let answer = match &self.lock().signed {
            Some(signed) => {
                (200, serde_json::to_value(ReleaseText { signed: signed.clone() }).unwrap(), Value::Null)
            }
            None => (404, Value::Null, json!({ "code": "NOT_FOUND", "message": "no" })),
        };
        Box::pin(async move { Ok(enrolled_agent::answer(answer)) })
    }

    fn part<'a>(&'a self, path: &'a str, range: String, _: Duration) -> Posted<'a> {
        let mut hub = self.lock();
        hub.asked.push(range.clone());
        if hub.breaks_after.is_some_and(|parts| hub.asked.len() > parts) {
            let gone = json!({ "code": "UNAVAILABLE", "message": "no" });
            let answer = enrolled_agent::answer((503, Value::Null, gone));
            return Box::pin(async move { Ok(answer) });
        }
        let named = |bytes: &&Vec<u8>| path.ends_with(Sha256Text::of(bytes).as_str());
        let file = hub.files.iter().find(named).unwrap_or_else(|| panic!("{path}"));
        let (from, to) = range.strip_prefix("bytes=").unwrap().split_once('-').unwrap();
        let (from, to): (usize, usize) = (from.parse().unwrap(), to.parse().unwrap());
        let answer = Answer::new(206, file[from..=to].to_vec());
        Box::pin(async move { Ok(answer) })
    }
}

/// Root's publisher: it answers with that line, and keeps what it saw in the agent's folder.
fn publisher(folder: &Path, answer: Arc<Mutex<String>>) -> Arc<Mutex<Vec<String>>> {
    let listener = tokio::net::UnixListener::bind(folder.join("holdfast-golden-publish.sock")).unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (keep, fetched) = (Arc::clone(&seen), folder.join("golden"));
    #[expect(clippy::disallowed_methods, reason = "it ends with the test's runtime")]
    tokio::spawn(async move {
        while let Ok((mut connection, _)) = listener.accept().await {
            let entries = std::fs::read_dir(&fetched).unwrap();
            let mut names: Vec<String> =
                entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            keep.lock().unwrap().extend(names);
            assert_eq!(std::fs::read(fetched.join("archive")).unwrap(), ARCHIVE);
            let line = answer.lock().unwrap().clone();
            connection.write_all(line.as_bytes()).await.unwrap();
        }
    });
    seen
}

fn done(version: &str) -> String {
    json!({ "published": { "version": version, "archive": "a", "sha256": "ab", "size_bytes": 7, "how": "published" } })
        .to_string()
}

struct World {
    task: GoldenFetchTask,
    trouble: watch::Receiver<Option<ErrorBody>>,
    view: watch::Sender<Arc<HostSnapshot>>,
}

fn world(state: &Path, hub: &FakeHub) -> World {
    let identity = IdentityFolder::open(state).unwrap();
    enrolled_agent::enrol(state);
    let line = hub.clone();
    let sha256 = Sha256Hex::try_from(Sha256Text::of(ARCHIVE).as_str().to_owned()).unwrap();
    let missing_goldens = [("2026.11.1".parse().unwrap(), sha256)].into();
    let (view, seen) = watch::channel(Arc::new(HostSnapshot { missing_goldens, ..HostSnapshot::default() }));
    let (trouble, said) = watch::channel(None);
    let task = GoldenFetchTask {
        view: seen,
        identity,
        dial: Arc::new(move |_| Ok(Hub::over(Arc::new(line.clone()), "https://hub"))),
        folder: GoldenFolder::of(state),
        helper: Helper::at_socket(state.join("helper.sock")),
        trouble,
        placed: None,
        clock: Arc::new(RealClock::start()),
    };
    World { task, trouble: said, view }
}

fn said(world: &World) -> String {
    world.trouble.borrow().as_ref().map(|problem| problem.message.clone()).unwrap_or_default()
}

#[tokio::test]
async fn an_approved_image_is_fetched_in_parts_and_given_to_root() {
    let state = tempfile::tempdir().unwrap();
    let hub = FakeHub::with("2026.11.1");
    hub.lock().breaks_after = Some(3);
    let mut world = world(state.path(), &hub);
    let seen = publisher(state.path(), Arc::new(Mutex::new(done("2026.11.1"))));
    assert_eq!(world.task.round().await, AFTER_FAILURE);
    assert!(said(&world).contains("golden 2026.11.1 is approved and was not fetched"), "{}", said(&world));
    assert!(seen.lock().unwrap().is_empty(), "half an archive is not offered");
    hub.lock().breaks_after = None;
    assert_eq!(world.task.round().await, LOOK_EVERY);
    assert_eq!(said(&world), "");
    assert_eq!(*seen.lock().unwrap(), ["archive", "manifest.json", "release.json"]);
    let asked = hub.lock().asked.clone();
    assert!(asked.contains(&"bytes=2097152-2499999".to_owned()), "{asked:?}");
    assert_eq!(asked.iter().filter(|range| range.starts_with("bytes=0-1048575")).count(), 1, "{asked:?}");
    assert_eq!(std::fs::read_dir(state.path().join("golden")).unwrap().count(), 0, "nothing stays");
    world.view.send_replace(Arc::default());
    hub.lock().offer = Some(json!({}));
    let before = hub.lock().asked.len();
    assert_eq!(world.task.round().await, LOOK_EVERY);
    assert_eq!(hub.lock().asked.len(), before, "nothing is missing any more");
}

#[tokio::test]
async fn what_keeps_an_image_away_is_reported_with_what_to_do() {
    let state = tempfile::tempdir().unwrap();
    let hub = FakeHub::with("2026.11.1");
    let mut world = world(state.path(), &hub);
    let signed = hub.lock().signed.take();
    world.task.round().await;
    assert!(said(&world).contains("no release at the hub has it"), "{}", said(&world));
    hub.lock().signed = signed;
    // Root's socket is not there: what was fetched stays.
    world.task.round().await;
    assert!(said(&world).contains("holdfast-golden-publish.sock"), "{}", said(&world));
    let archive_parts = || hub.lock().asked.iter().filter(|range| range.ends_with("1048575")).count();
    assert_eq!(archive_parts(), 1);
    let answer = Arc::new(Mutex::new(refusal("FULL")));
    publisher(state.path(), Arc::clone(&answer));
    world.task.round().await;
    assert!(said(&world).contains("(FULL): as it is"), "{}", said(&world));
    assert!(!world.task.folder.waits().unwrap());
    assert_eq!(archive_parts(), 1, "and is not fetched again");
    *answer.lock().unwrap() = refusal("DIGEST");
    world.task.round().await;
    assert_eq!(archive_parts(), 1);
    *answer.lock().unwrap() = done("2026.11.1");
    assert_eq!(world.task.round().await, LOOK_EVERY);
    assert_eq!(archive_parts(), 2, "wrong bytes are");
    assert_eq!(said(&world), "");
}

fn refusal(code: &str) -> String {
    json!({ "refused": { "code": code, "message": "as it is" } }).to_string()
}

#[tokio::test]
async fn bytes_that_were_released_as_another_version_are_not_fetched() {
    let state = tempfile::tempdir().unwrap();
    let hub = FakeHub::with("2026.11.7");
    let mut world = world(state.path(), &hub);
    world.task.round().await;
    assert!(said(&world).contains("has these bytes as image 2026.11.7"), "{}", said(&world));
    let archive_parts = hub.lock().asked.iter().filter(|range| range.ends_with("1048575")).count();
    assert_eq!(archive_parts, 0, "not even begun");
    // What an earlier try left goes once nobody waits for it.
    std::fs::create_dir_all(state.path().join("golden")).unwrap();
    std::fs::write(state.path().join("golden/x.part"), "half").unwrap();
    world.view.send_replace(Arc::default());
    world.task.round().await;
    assert_eq!(std::fs::read_dir(state.path().join("golden")).unwrap().count(), 1, "it may be of an offer");
    hub.lock().offer = Some(json!({}));
    world.task.round().await;
    assert_eq!(std::fs::read_dir(state.path().join("golden")).unwrap().count(), 0);
}

/// What a rollout offers needs no approval to be fetched; guests are made of what is approved.
#[tokio::test]
async fn an_offered_image_is_fetched_once() {
    let state = tempfile::tempdir().unwrap();
    let hub = FakeHub::with("2026.11.7");
    let mut world = world(state.path(), &hub);
    let digest = Sha256Text::of(ARCHIVE).as_str().to_owned();
    let offer = json!({ "image": { "release": "2026.11.900", "sha256": digest } });
    let here = |digest: &str| {
        let section = json!({ "node": "pve", "proxmox_version": "9.2.11", "cpus": 1, "memory_bytes": 1,
            "memory_used_bytes": 1, "storages": [],
            "goldens": [{ "version": "2026.11.7", "sha256": digest, "status": "waiting" }] });
        let host = Some(serde_json::from_value(section).unwrap());
        Arc::new(HostSnapshot { host, ..HostSnapshot::default() })
    };
    let parts = || hub.lock().asked.len();
    // Nothing is offered, or what is here already.
    world.view.send_replace(here(&digest));
    for nothing in [None, Some(json!({})), Some(offer.clone())] {
        hub.lock().offer = nothing;
        assert_eq!(world.task.round().await, LOOK_EVERY);
    }
    assert_eq!(parts(), 0);
    // The host has another image; root is not there first, and what was fetched stays.
    world.view.send_replace(here(&"ee".repeat(32)));
    assert_eq!(world.task.round().await, AFTER_FAILURE);
    assert!(said(&world).contains("release 2026.11.900 is offered and was not fetched"), "{}", said(&world));
    let fetched = parts();
    assert!(fetched > 0);
    let seen = publisher(state.path(), Arc::new(Mutex::new(done("2026.11.7"))));
    assert_eq!(world.task.round().await, LOOK_EVERY);
    assert_eq!((said(&world).as_str(), seen.lock().unwrap().len()), ("", 3));
    // Until the host reports it, the hub offers it on.
    let placed = parts();
    assert_eq!(world.task.round().await, LOOK_EVERY);
    assert_eq!(parts(), placed, "it is not fetched again");
    // The hub is away: that is no trouble of an image.
    hub.lock().offer = None;
    assert_eq!(world.task.round().await, LOOK_EVERY);
    assert_eq!(said(&world), "");
}
