//! Tests of offers: fetched in parts, cut off, refused.

use std::path::Path;
use std::sync::{Mutex, MutexGuard};

use agent_slots::state::Content;
use agent_slots::{Build, Slot, Trial};
use holdfast_protocol::release::stored::{ReleaseOffer, ReleaseText, WithdrawalReason};
use net::client::{Answer, Method};
use serde_json::{Value, json};

use super::*;
use crate::port::clock::RealClock;
use crate::port::hub::{Line, Posted};
use crate::port::part_file::PartFileError;
use crate::task::enrolled_agent;

const PROGRAM: &[u8] = &[7; 2_500_000];

#[derive(Debug, Default)]
struct Hubs {
    offer: ReleaseOffer,
    signed: String,
    program: Vec<u8>,
    /// The ranges that were asked for.
    asked: Vec<String>,
    /// After so many parts the line breaks.
    breaks_after: Option<usize>,
    /// It answers nothing.
    silent: bool,
}

#[derive(Clone, Debug, Default)]
struct FakeHub(Arc<Mutex<Hubs>>);

impl FakeHub {
    fn with(version: u32, program: &[u8]) -> Self {
        let hub = Self::default();
        hub.offers(version, program);
        hub
    }

    fn offers(&self, version: u32, program: &[u8]) {
        let manifest = json!({
            "schema": "holdfast.release/v1",
            "version": format!("{version}.0.0"),
            "issued_at": "2026-12-01T00:00:00Z",
            "expires_at": "2027-03-01T00:00:00Z",
            "files": [{ "kind": "agent", "name": "agentd",
                        "sha256": Sha256Text::of(program).as_str(), "size_bytes": program.len() }],
        });
        let manifest = manifest.to_string().into_bytes();
        let manifest_sha256 = Sha256Text::of(&manifest);
        let mut hub = self.lock();
        let release = OfferedRelease { version: VersionNumber::new(version, 0, 0), manifest_sha256 };
        hub.offer = ReleaseOffer { release: Some(release), withdrawn: None };
        hub.signed = SignedRelease { manifest, signatures: vec!["one".to_owned()] }.to_json().unwrap();
        hub.program = program.to_vec();
    }

    fn lock(&self) -> MutexGuard<'_, Hubs> {
        self.0.lock().unwrap()
    }
}

impl Line for FakeHub {
    fn send<'a>(&'a self, method: Method, path: &'a str, _: Vec<u8>, _: Duration) -> Posted<'a> {
        assert_eq!(method, Method::GET);
        let hub = self.lock();
        if hub.silent {
            let gone = json!({ "code": "UNAVAILABLE", "message": "no" });
            let answer = enrolled_agent::answer((503, Value::Null, gone));
            return Box::pin(async move { Ok(answer) });
        }
        let data = match path {
            "/v1/agent/release-offer" => serde_json::to_value(&hub.offer).unwrap(),
            path if path.starts_with("/v1/agent/releases/") => {
                serde_json::to_value(ReleaseText { signed: hub.signed.clone() }).unwrap()
            }
            other => panic!("{other}"),
        };
        let answer = enrolled_agent::answer((200, data, Value::Null));
        Box::pin(async move { Ok(answer) })
    }

    fn part<'a>(&'a self, path: &'a str, range: String, _: Duration) -> Posted<'a> {
        let mut hub = self.lock();
        assert!(path.starts_with("/v1/agent/artifacts/"), "{path}");
        let (from, to) = range.strip_prefix("bytes=").unwrap().split_once('-').unwrap();
        let (from, to): (usize, usize) = (from.parse().unwrap(), to.parse().unwrap());
        hub.asked.push(range.clone());
        if hub.breaks_after.is_some_and(|parts| hub.asked.len() > parts) {
            let gone = json!({ "code": "UNAVAILABLE", "message": "no" });
            let answer = enrolled_agent::answer((503, Value::Null, gone));
            return Box::pin(async move { Ok(answer) });
        }
        let answer = Answer::new(206, hub.program[from..=to].to_vec());
        Box::pin(async move { Ok(answer) })
    }
}

fn task(state: &Path, hub: &FakeHub) -> AgentUpdateTask {
    let folder = IdentityFolder::open(state).unwrap();
    enrolled_agent::enrol(state);
    let line = hub.clone();
    let clock: Arc<dyn Clock> = Arc::new(RealClock::start());
    AgentUpdateTask {
        store: Store::open(state, clock.now()).unwrap(),
        folder,
        dial: Arc::new(move |_| Ok(Hub::over(Arc::new(line.clone()), "https://hub"))),
        updates: UpdateFolder::of(state),
        slots: || None,
        withdrawal: watch::channel(None).0,
        restart: Arc::new(|| {}),
        clock,
    }
}

#[tokio::test]
async fn an_offer_is_fetched_in_parts_and_goes_on_after_a_break() {
    let state = tempfile::tempdir().unwrap();
    let hub = FakeHub::with(7, PROGRAM);
    let task = task(state.path(), &hub);
    hub.lock().breaks_after = Some(1);
    assert!(matches!(task.round().await, Err(UpdateError::Hub(_))));
    assert!(!task.updates.waits().unwrap());
    hub.lock().breaks_after = None;
    assert_eq!(task.round().await.unwrap(), Round::Fetched(VersionNumber::new(7, 0, 0)));
    let asked = hub.lock().asked.clone();
    assert_eq!(
        asked,
        ["bytes=0-1048575", "bytes=1048576-2097151", "bytes=1048576-2097151", "bytes=2097152-2499999"]
    );
    assert_eq!(std::fs::read(state.path().join("update/agentd")).unwrap(), PROGRAM);
    let release = std::fs::read_to_string(state.path().join("update/release.json")).unwrap();
    assert_eq!(release, hub.lock().signed);
    // The gate takes it away. Until it did, nothing more is fetched.
    assert_eq!(task.round().await.unwrap(), Round::NotLookedAt);
    task.drained().await;
}

#[tokio::test]
async fn what_is_not_offered_not_newer_or_not_what_was_offered_is_not_kept() {
    let state = tempfile::tempdir().unwrap();
    let hub = FakeHub::default();
    let task = task(state.path(), &hub);
    assert_eq!(task.round().await.unwrap(), Round::Nothing);
    hub.offers(0, b"older");
    assert_eq!(task.round().await.unwrap(), Round::Nothing);
    hub.offers(7, b"program");
    hub.lock().program = b"PROGRAM".to_vec();
    assert!(matches!(
        task.round().await,
        Err(UpdateError::Folder(UpdateFolderError::Part(PartFileError::Digest { .. })))
    ));
    let signed = hub.lock().signed.clone();
    hub.offers(8, b"program");
    hub.lock().signed = signed;
    assert!(matches!(task.round().await, Err(UpdateError::OtherManifest { .. })));
    assert!(!task.updates.waits().unwrap());
    assert!(!state.path().join("update/agentd").exists());
}

/// The second release is on trial.
fn on_trial() -> Option<SlotsState> {
    let build = Build {
        version: VersionNumber::new(2, 0, 0),
        sha256: Sha256Text::of(b"two"),
        manifest: Sha256Text::of(b"m2"),
    };
    let trial = Some(Trial { slot: Slot::A, starts_left: 2, reboots_left: 9, began: None });
    Some(SlotsState { a: Content::Holds(build), trial, ..SlotsState::default() })
}

#[tokio::test]
async fn the_gate_is_answered_what_the_hub_said_last_of_the_release_on_trial() {
    let state = tempfile::tempdir().unwrap();
    let hub = FakeHub::default();
    let task = AgentUpdateTask { slots: on_trial, ..task(state.path(), &hub) };
    assert_eq!(task.pause(), ASK_ON_TRIAL);
    let kept = task.withdrawal.subscribe();
    let said = || kept.borrow().clone().map(|ends| (ends.manifest, ends.reason));
    let stops = |manifest: &[u8], reason| {
        let manifest_sha256 = Sha256Text::of(manifest);
        let version = VersionNumber::new(2, 0, 0);
        hub.lock().offer.withdrawn = Some(WithdrawnRelease { version, manifest_sha256, reason });
    };
    // Nothing offered is no withdrawal: windows close, and releases are replaced.
    assert_eq!((task.round().await.unwrap(), said()), (Round::Nothing, None));
    stops(b"another edition", WithdrawalReason::Held);
    assert_eq!((task.round().await.unwrap(), said()), (Round::Nothing, None));
    stops(b"m2", WithdrawalReason::Held);
    assert_eq!(task.round().await.unwrap(), Round::Nothing);
    assert_eq!(said(), Some((Sha256Text::of(b"m2"), WithdrawalReason::Held)));
    // A hub that does not answer takes nothing back, and one that goes on does.
    hub.lock().silent = true;
    assert!(matches!(task.round().await, Err(UpdateError::Hub(_))));
    assert!(said().is_some());
    hub.lock().silent = false;
    hub.lock().offer.withdrawn = None;
    assert_eq!((task.round().await.unwrap(), said()), (Round::Nothing, None));
}

#[tokio::test]
async fn without_a_trial_nothing_is_withdrawn() {
    let state = tempfile::tempdir().unwrap();
    let hub = FakeHub::default();
    let task = task(state.path(), &hub);
    let (version, manifest_sha256) = (VersionNumber::new(2, 0, 0), Sha256Text::of(b"m2"));
    let reason = WithdrawalReason::Aborted;
    hub.lock().offer.withdrawn = Some(WithdrawnRelease { version, manifest_sha256, reason });
    assert_eq!(task.round().await.unwrap(), Round::Nothing);
    assert_eq!((task.withdrawal.borrow().clone(), task.pause()), (None, ASK_EVERY));
}
