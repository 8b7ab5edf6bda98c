//! Tests of the desired build and its bytes.

use holdfast_protocol::local::desired::{DesiredView, TrialVerdict, Turn};
use holdfast_protocol::maintenance::{RestartRule, SecurityUpgrades};
use rusqlite::Connection;
use sha2::{Digest, Sha256};

use super::*;
use crate::model::records::{ControllerOutcome, TakenBy};
use crate::operation::log::Finding;
use crate::operation::update_controller::{Came, Fetched, Returned};
use crate::operation::{Snapshot, Target, UpdateController};

const PROGRAM: &[u8] = b"\x7fELF a controller of many bytes";

pub(super) fn digest() -> String {
    Sha256::digest(PROGRAM).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A document that requests this controller for the first guest.
async fn intended(world: &World, generation: u64, version: &str, sha256: &str) {
    let mut document = document(generation, "10.66.0.91/24").document().clone();
    document.guests[0].controller =
        Some(serde_json::from_value(json!({"version": version, "sha256": sha256})).unwrap());
    world.store.offer_desired(Desired::check(document).unwrap(), world.clock.now()).await.unwrap();
}

fn approve(world: &World, version: &str, sha256: &str) {
    let raw = Connection::open(world._dir.path().join("agent.db")).unwrap();
    let insert =
        "INSERT INTO release (kind, version, sha256, by, at) VALUES ('controller', ?1, ?2, 'test', 0)";
    raw.execute(insert, (version, sha256)).unwrap();
}

fn lay(world: &World) {
    let from = world._dir.path().join("guestd");
    std::fs::write(&from, PROGRAM).unwrap();
    Artifacts::of(world._dir.path()).take_in(&from).unwrap();
}

/// The first guest is to have a controller that may run and is stored here.
pub(super) async fn all_is_there(world: &World) {
    intended(world, 2, "0.2.0", &digest()).await;
    approve(world, "0.2.0", &digest());
    lay(world);
}

async fn reported(world: &World, token: &str) -> DesiredView {
    world.pass(5);
    let answer = world.get(WEB_AT, "/v1/desired", Some(token)).await;
    assert_eq!(answer.status, StatusCode::OK);
    answer.data()
}

#[tokio::test]
async fn a_controller_is_reported_when_it_is_intended_approved_and_here() {
    let world = World::new().await;
    let token = world.token(0, WEB_AT).await;
    assert_eq!(reported(&world, &token).await.controller, None, "nothing is asked for");
    let path = format!("/v1/artifacts/{}", digest());
    intended(&world, 2, "0.2.0", &digest()).await;
    lay(&world);
    approve(&world, "0.3.0", &digest());
    approve(&world, "0.2.0", &"ab".repeat(32));
    assert_eq!(
        reported(&world, &token).await.controller,
        None,
        "approved is another version, or other bytes"
    );
    assert_eq!(world.get(WEB_AT, &path, Some(&token)).await.code(), Some(ErrorCode::NotFound));
    approve(&world, "0.2.0", &digest());
    let controller = reported(&world, &token).await.controller.unwrap();
    assert_eq!((controller.version.as_str(), controller.bytes), ("0.2.0", PROGRAM.len() as u64));
    assert_eq!(controller.sha256.as_str(), digest());
    let had = world.get(WEB_AT, &path, Some(&token)).await;
    assert_eq!((had.status, had.body.as_slice()), (StatusCode::OK, PROGRAM));
    intended(&world, 3, "0.2.0", &"ab".repeat(32)).await;
    assert_eq!(reported(&world, &token).await.controller, None, "approved and not here");
    assert_eq!(world.get(WEB_AT, &path, Some(&token)).await.code(), Some(ErrorCode::NotFound));
}

#[tokio::test]
async fn no_one_gets_anothers_bytes_and_no_changed_byte_is_handed_out() {
    let world = World::new().await;
    let (web, db) = (world.token(0, WEB_AT).await, world.token(1, DB_AT).await);
    all_is_there(&world).await;
    let path = format!("/v1/artifacts/{}", digest());
    let at = |from, path: String, token: String| {
        world.pass(5);
        let world = &world;
        async move { world.get(from, &path, Some(&token)).await }
    };
    assert_eq!(at(WEB_AT, path.clone(), web.clone()).await.status, StatusCode::OK);
    assert_eq!(at(DB_AT, path.clone(), db.clone()).await.code(), Some(ErrorCode::NotFound));
    assert!(at(DB_AT, "/v1/desired".to_owned(), db).await.data::<DesiredView>().controller.is_none());
    for other in ["ab".repeat(32), "x".to_owned(), digest().to_uppercase(), "agent.db".to_owned()] {
        let answer = at(WEB_AT, format!("/v1/artifacts/{other}"), web.clone()).await;
        assert_eq!(answer.code(), Some(ErrorCode::NotFound), "{other}");
    }
    // Of the same size, so that only its bytes show the difference.
    let lies = world._dir.path().join("controllers").join(digest());
    std::fs::write(&lies, [&PROGRAM[..PROGRAM.len() - 1], b"X"].concat()).unwrap();
    let answer = at(WEB_AT, path, web).await;
    assert_eq!(answer.code(), Some(ErrorCode::Unavailable));
    assert!(!String::from_utf8_lossy(&answer.body).contains("ELF"));
}

/// What the first guest hears of the build, as one that runs it.
async fn on_trial(world: &World, token: &str) -> Option<TrialVerdict> {
    world.pass(5);
    let path = format!("/v1/desired?trial={}", digest());
    let answer = world.get(WEB_AT, &path, Some(token)).await;
    assert_eq!(answer.status, StatusCode::OK);
    answer.data::<DesiredView>().trial
}

/// An update of the first guest, under way up to the guest's slot.
async fn turn(world: &World, build: &str) -> OperationId {
    let target =
        Target { uid: WEB.parse().unwrap(), name: "web".parse().unwrap(), vmid: 300.try_into().unwrap() };
    let snapshot = Snapshot {
        target,
        name: "update-1".parse().unwrap(),
        taken_by: TakenBy::Agent,
        expires_at: None,
        due: None,
    };
    let update = UpdateController {
        snapshot,
        version: "0.2.0".to_owned().try_into().unwrap(),
        sha256: build.to_owned().try_into().unwrap(),
        pace_s: 60,
        unwell_before: std::collections::BTreeSet::new(),
    };
    let id = OperationId::new(Uuid::now_v7());
    let new = NewOperation {
        id,
        operation: Operation::UpdateController(Box::new(update)),
        generation: Generation::new(2),
        reason: "test".to_owned(),
        at: world.clock.now(),
    };
    let mut progress = world.store.open_operation(new).await.unwrap();
    let done = |step| Event::Succeeded { step, facts: Vec::new(), note: None };
    for event in [
        Event::Begun,
        Event::Intended { step: 0 },
        done(0),
        Event::Intended { step: 1 },
        done(1),
        Event::Intended { step: 2 },
    ] {
        progress = world.store.append(&progress, event, world.clock.now()).await.unwrap();
    }
    id
}

#[tokio::test]
async fn its_turn_is_reported_while_it_is_and_who_fetches_then_is_written_down() {
    let world = World::new().await;
    let token = world.token(0, WEB_AT).await;
    all_is_there(&world).await;
    let path = format!("/v1/artifacts/{}", digest());
    let of = |view: DesiredView| view.controller.unwrap().turn;
    assert_eq!(of(reported(&world, &token).await), Turn::Waits);
    end_provision(&world).await;
    let update = turn(&world, &digest()).await;
    assert_eq!(of(reported(&world, &token).await), Turn::Now(update));
    assert_eq!(world.store.fetched(update).await.unwrap(), Fetched::No);
    assert_eq!(world.get(WEB_AT, &path, Some(&token)).await.status, StatusCode::OK);
    assert_eq!(world.store.fetched(update).await.unwrap(), Fetched::Yes(world.clock.now()));
    assert_eq!(on_trial(&world, &token).await, Some(TrialVerdict::Undecided));
    let progress = world.store.operation(update).await.unwrap().unwrap();
    let came = Finding::Controller { came: Came::Bad, why: "unwell".to_owned() };
    let over = Event::Succeeded { step: 2, facts: vec![came], note: None };
    world.store.append(&progress, over, world.clock.now()).await.unwrap();
    assert_eq!(of(reported(&world, &token).await), Turn::Waits, "its turn is over");
    assert_eq!(on_trial(&world, &token).await, Some(TrialVerdict::Undecided), "until the operation ended");
    let progress = world.store.operation(update).await.unwrap().unwrap();
    world.store.append(&progress, Event::Finished, world.clock.now()).await.unwrap();
    let trials = async || {
        let records = world.store.records(Generation::new(2), world.clock.now()).await.unwrap();
        records.controller_trials
    };
    assert_eq!(trials().await.len(), 1, "it did not hear the verdict yet");
    assert_eq!(on_trial(&world, &token).await, Some(TrialVerdict::TakeBack));
    assert!(trials().await.is_empty(), "it did");
    assert_eq!(reported(&world, &token).await.trial, None, "who does not ask reads what it always read");
    let web = WEB.parse().unwrap();
    let sha256 = digest().try_into().unwrap();
    assert_eq!(world.store.returned(web, &sha256), Returned::No);
    world.pass(5);
    let says = format!("/v1/desired?taken_back={}", digest());
    assert_eq!(world.get(WEB_AT, &says, Some(&token)).await.status, StatusCode::OK);
    assert_eq!(world.store.returned(web, &sha256), Returned::Yes);
    for bad in ["trial=x", "taken_back=", "trial=", "build=1"] {
        world.pass(5);
        let answer = world.get(WEB_AT, &format!("/v1/desired?{bad}"), Some(&token)).await;
        assert!(answer.status.is_client_error(), "{bad}");
    }
    let records = world.store.records(Generation::new(2), world.clock.now()).await.unwrap();
    let bad = records.controller_verdicts;
    assert_eq!((bad.len(), bad[0].sha256.as_str()), (1, digest().as_str()));
    assert_eq!((bad[0].outcome, bad[0].guest), (ControllerOutcome::Bad, WEB.parse().unwrap()));
}

/// Ends the operation that made the guest known, so that another one can hold the guest.
async fn end_provision(world: &World) {
    for progress in world.store.open_operations().await.unwrap() {
        let problem = holdfast_protocol::envelope::ErrorBody::new(ErrorCode::Parked, "test");
        let parked = Event::Parked { problem, remedy: "none".to_owned() };
        world.store.append(&progress, parked, world.clock.now()).await.unwrap();
    }
}

#[tokio::test]
async fn a_guest_is_reported_the_maintenance_that_its_document_names() {
    let world = World::new().await;
    let token = world.token(0, WEB_AT).await;
    let usual = reported(&world, &token).await.maintenance;
    assert_eq!(usual.security_upgrades, SecurityUpgrades::On);
    assert_eq!(usual.window.unwrap().restart, RestartRule::ByHand);
    let mut document = document(2, "10.66.0.91/24").document().clone();
    document.guests[0].maintenance = Some(
        serde_json::from_value(json!({ "security_upgrades": "off", "windows":
            { "at": ["Sun 03:00"], "zone": "UTC", "jitter_min": 0, "window_min": 120 } }))
        .unwrap(),
    );
    world.store.offer_desired(Desired::check(document).unwrap(), world.clock.now()).await.unwrap();
    let named = reported(&world, &token).await.maintenance;
    assert_eq!(named.security_upgrades, SecurityUpgrades::Off);
    let window = named.window.unwrap();
    assert_eq!(window.restart, RestartRule::InWindow);
    assert_eq!(window.ends.duration_since(window.begins).as_secs(), 7_200);
    assert!(window.ends > world.clock.now());
}
