//! Tests of approvals of images and builds.

use std::collections::BTreeMap;

use agentd::model::policy::{Golden, GoldenDump, Policy};
use agentd::model::records::HelloRecord;
use agentd::port::store::job_intake::Outcome;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::job::act::{ReleaseKind, args};
use holdfast_protocol::job::{Act, Draft, JobState, Target, Verb};
use holdfast_protocol::report::{Health, ImageStatus};

use super::drift::{report, serves, start, start_with};
use super::jobs::{ended, found, lay_down, leave, order, signed, waits};
use super::world::{World, guest};

/// The archive is named, its digest is not.
fn unapproved(world: &World) -> Policy {
    let mut policy = world.policy();
    policy.goldens.values_mut().for_each(|golden| *golden = Golden { sha256: None, ..golden.clone() });
    policy
}

fn approval(sha256: &str, version: &str, kind: ReleaseKind) -> Draft {
    let (version, sha256) = (version.to_owned().try_into().unwrap(), sha256.to_owned().try_into().unwrap());
    let act = Act::ApproveRelease(args::ApproveRelease { kind, version, sha256 });
    Draft { target: Target::Host {}, act }
}

/// The payload to sign for a controller that the document wants.
pub fn controller(goal: &holdfast_protocol::desired::DesiredController) -> Draft {
    approval(goal.sha256.as_str(), goal.version.as_str(), ReleaseKind::Controller)
}

fn holds(view: &agentd::model::view::HostSnapshot, n: u8) -> bool {
    let reported = |code| report(view, n).is_some_and(|one| one.conditions.iter().any(|c| c.code == code));
    reported(ErrorCode::GoldenUnapproved) && found(view, Verb::ApproveRelease).is_some()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_golden_waits_for_a_signature_over_its_bytes_and_an_exchanged_one_waits_again() {
    let world = World::start().await;
    let mut agent = start_with(&world, unapproved(&world)).await;
    lay_down(&agent).await;
    agent.goal(1, vec![guest(1)]).await;
    let view = agent.until("the first is held", |view| holds(view, 1)).await;
    let waiting = found(&view, Verb::ApproveRelease).unwrap().clone();
    assert_eq!(
        Draft::parse(waiting.payload.as_bytes()).unwrap(),
        approval(&world.golden_sha256, "2026.11.1", ReleaseKind::Golden)
    );

    // Other bytes, another version, another kind: signed and accepted, but without effect here.
    for draft in [
        approval(&"ab".repeat(32), "2026.11.1", ReleaseKind::Golden),
        approval(&world.golden_sha256, "2026.11.2", ReleaseKind::Golden),
        approval(&world.golden_sha256, "2026.11.1", ReleaseKind::Controller),
    ] {
        let mail = order(&agent, draft).await;
        assert!(matches!(leave(&agent, &mail).await, Outcome::Taken));
        assert_eq!(ended(&agent, mail.id).await.state, JobState::Done);
    }
    agent.view.mark_unchanged();
    agent.view.changed().await.unwrap();
    assert!(holds(&agent.view.borrow().clone(), 1));
    assert!(world.guests().is_empty(), "nothing was made");

    let mail = signed(&agent, &waiting).await;
    assert!(matches!(leave(&agent, &mail).await, Outcome::Taken));
    agent.until("the first serves", |view| serves(view, 1) && view.waiting.is_empty()).await;
    assert_eq!(ended(&agent, mail.id).await.state, JobState::Done);
    let releases = agent
        .ports
        .store
        .records(holdfast_protocol::generation::Generation::NONE, agent.ports.clock.now())
        .await
        .unwrap()
        .releases;
    // The four that were signed, and the controller that came with the golden.
    assert_eq!(releases.len(), 5);

    // Exchanged under the same version: what was approved are other bytes.
    let right = std::fs::read(&world.golden).unwrap();
    std::fs::write(&world.golden, [right.as_slice(), b"and a little more"].concat()).unwrap();
    agent.goal(2, vec![guest(1), guest(2)]).await;
    let view = agent.until("the second is held", |view| holds(view, 2)).await;
    let again = found(&view, Verb::ApproveRelease).unwrap();
    assert_ne!(again.payload, waiting.payload, "another digest is to be signed for");
    assert_eq!(world.guests().len(), 1, "nothing was restored from it");
    assert!(
        !agent.ports.store.operation_views(10).await.unwrap().iter().any(|one| one.guest == guest(2).uid)
    );

    std::fs::write(&world.golden, right).unwrap();
    agent.until("with its own bytes it is what was approved", |view| serves(view, 2)).await;
    agent.stop().await;
}

/// Root's approval is bound to bytes as well: an archive that differs from the one that root named waits as if it had
/// not been named.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_root_named_is_held_to_its_digest() {
    let world = World::start().await;
    let mut agent = start(&world).await;
    lay_down(&agent).await;
    let right = std::fs::read(&world.golden).unwrap();
    std::fs::write(&world.golden, [right.as_slice(), b"and a little more"].concat()).unwrap();
    agent.goal(1, vec![guest(1)]).await;
    agent.until("it is held", |view| holds(view, 1) && waits(Verb::ApproveRelease)(view)).await;
    assert!(world.guests().is_empty());
    std::fs::write(&world.golden, right).unwrap();
    agent.until("it serves", |view| serves(view, 1)).await;
    agent.stop().await;
}

/// The build that came with the golden is approved with it; another one is reported, and continues to run meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_controller_that_no_one_approved_is_reported_until_someone_signs_for_it() {
    let world = World::start().await;
    let mut agent = start(&world).await;
    lay_down(&agent).await;
    agent.goal(1, vec![guest(1)]).await;
    // It serves without a condition, which shows that its own build came with the golden.
    agent.until("it serves", |view| serves(view, 1)).await;
    let says = |version: &str, build: &str| HelloRecord {
        reported: Default::default(),
        version: version.to_owned(),
        health: Health::Well,
        boot_id: "boot".to_owned(),
        build: Some(build.repeat(32).try_into().unwrap()),
        at: agent.ports.clock.now(),
    };
    let (another, reported) = (says("0.2.0", "f2"), |view: &agentd::model::view::HostSnapshot| {
        let has = |c: &holdfast_protocol::report::Condition| c.code == ErrorCode::ControllerUnapproved;
        report(view, 1).is_some_and(|one| one.conditions.iter().any(has))
    });
    agent.ports.store.record_hello(guest(1).uid, another.clone()).await.unwrap();
    let view = agent.until("it is told", |view| reported(view) && waits(Verb::ApproveRelease)(view)).await;
    let waiting = found(&view, Verb::ApproveRelease).unwrap().clone();
    assert_eq!(
        Draft::parse(waiting.payload.as_bytes()).unwrap(),
        approval(&"f2".repeat(32), "0.2.0", ReleaseKind::Controller)
    );
    // The same bytes under another version, other bytes under this one: without effect.
    for draft in [
        approval(&"f2".repeat(32), "0.2.1", ReleaseKind::Controller),
        approval(&"f3".repeat(32), "0.2.0", ReleaseKind::Controller),
    ] {
        let mail = order(&agent, draft).await;
        assert!(matches!(leave(&agent, &mail).await, Outcome::Taken));
        assert_eq!(ended(&agent, mail.id).await.state, JobState::Done);
    }
    agent.view.mark_unchanged();
    agent.view.changed().await.unwrap();
    assert!(reported(&agent.view.borrow().clone()));
    let mail = signed(&agent, &waiting).await;
    assert!(matches!(leave(&agent, &mail).await, Outcome::Taken));
    agent.until("it is approved", |view| serves(view, 1) && view.waiting.is_empty()).await;
    agent.stop().await;
}

/// A running agent notices what the helper builds into root's folder; its presence there approves nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_golden_that_was_built_meanwhile_is_reported_and_waits_for_a_signature() {
    let world = World::start().await;
    let folder = world.golden.parent().unwrap().to_owned();
    let (storage, refresh_days) = ("backup2".parse().unwrap(), 30);
    let dump = GoldenDump { storage, folder: folder.clone(), refresh_days };
    let policy = Policy { goldens: BTreeMap::new(), golden_dump: Some(dump), ..world.policy() };
    let mut agent = start_with(&world, policy).await;
    lay_down(&agent).await;
    agent.goal(1, vec![guest(1)]).await;
    let reported = |view: &agentd::model::view::HostSnapshot| {
        report(view, 1)
            .is_some_and(|one| one.conditions.iter().any(|c| c.code == ErrorCode::GoldenUnapproved))
    };
    let view = agent.until("there is no such golden", reported).await;
    assert!(view.host.as_ref().is_none_or(|host| host.goldens.is_empty()), "{:?}", view.host);
    let archive = world.golden.file_name().unwrap().to_str().unwrap();
    let manifest = serde_json::json!({
        "schema": "holdfast.golden-manifest/v1", "version": "2026.11.1", "contents": "tiny", "archive": archive,
        "sha256": world.golden_sha256, "size_bytes": 1, "recipe_sha256": "", "guestd_sha256": "",
        "source_date_epoch": 1, "packages": [],
        "build": { "made_at_s": 1, "seconds": 1, "entries": 1, "content_bytes": 1 },
    });
    std::fs::write(folder.join("golden-2026.11.1.json"), manifest.to_string()).unwrap();
    let status = |view: &agentd::model::view::HostSnapshot, wanted: ImageStatus| {
        let goldens = view.host.iter().flat_map(|host| &host.goldens);
        let sha256 = world.golden_sha256.as_str();
        goldens.filter(|one| one.status == wanted && one.sha256.as_deref() == Some(sha256)).count() == 1
    };
    let held =
        |view: &agentd::model::view::HostSnapshot| holds(view, 1) && status(view, ImageStatus::Waiting);
    let view = agent.until("it is held", held).await;
    assert!(world.guests().is_empty(), "nothing was made");
    let waiting = found(&view, Verb::ApproveRelease).unwrap().clone();
    let mail = signed(&agent, &waiting).await;
    assert!(matches!(leave(&agent, &mail).await, Outcome::Taken));
    let made =
        |view: &agentd::model::view::HostSnapshot| serves(view, 1) && status(view, ImageStatus::Approved);
    let view = agent.until("it serves", made).await;
    assert_eq!(
        report(&view, 1).unwrap().golden.as_ref().map(ToString::to_string).as_deref(),
        Some("2026.11.1")
    );
    // A newer one can be signed for before any guest wants it; and a newest one of 1970 is reported as old.
    let newer = manifest.to_string().replace("2026.11.1\"", "2026.11.2\"");
    std::fs::write(folder.join("golden-2026.11.2.json"), newer).unwrap();
    let beforehand = |view: &agentd::model::view::HostSnapshot| {
        let old = view.problems.iter().any(|problem| problem.code == ErrorCode::GoldenOld);
        old && view.waiting.iter().any(|one| one.guest.is_none() && one.payload.contains("2026.11.2"))
    };
    let view = agent.until("the newer one waits", beforehand).await;
    let waiting = found(&view, Verb::ApproveRelease).unwrap().clone();
    let mail = signed(&agent, &waiting).await;
    assert!(matches!(leave(&agent, &mail).await, Outcome::Taken));
    agent.until("nothing waits", |view| serves(view, 1) && view.waiting.is_empty()).await;
    agent.stop().await;
}
