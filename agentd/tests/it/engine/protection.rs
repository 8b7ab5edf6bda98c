//! Tests of promises, from document to signature.

use agentd::model::view::HostSnapshot;
use agentd::plan::escrow::Purpose;
use agentd::port::store::escrow::Goal;
use agentd::port::store::job_intake::Outcome;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::desired::DesiredGuest;
use holdfast_protocol::job::{HostEpoch, JobState, UtcSecond, Verb};
use holdfast_protocol::protection::{BackupPolicy, ProtectionReport, Retention};
use holdfast_recovery::RecoveryCode;
use holdfast_recovery::escrow::{CodeNumber, Context, Escrow, Record};
use holdfast_seal::backup_key::BackupKey;
use serde_json::json;

use super::drift::{Agent, report, serves, start};
use super::jobs::{ended, found, lay_down, leave, signed, waits};
use super::world::{World, guest, uid};

fn policies(last: u32, hour: u32) -> Vec<BackupPolicy> {
    let schedule =
        json!({ "at": [format!("{hour}:30")], "zone": "Europe/Berlin", "jitter_min": 5, "window_min": 60 });
    let local = json!({
        "target": "backup2", "schedule": schedule, "retention": { "keep": { "last": last } }, "consistency": "crash"
    });
    serde_json::from_value(json!([{ "name": "usual", "tiers": { "local": local } }])).unwrap()
}

fn under() -> Vec<DesiredGuest> {
    vec![DesiredGuest { policy: Some("usual".parse().unwrap()), ..guest(1) }]
}

fn reported(view: &HostSnapshot) -> Option<&ProtectionReport> {
    report(view, 1)?.protection.as_deref()
}

/// How many of the newest are kept, by the promise in force.
fn keeps(view: &HostSnapshot) -> Option<u32> {
    match reported(view)?.in_force.as_ref()?.tiers.local.as_ref()?.retention {
        Retention::Keep(keep) => Some(keep.last?.get()),
        Retention::KeepAll => None,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_promise_is_raised_by_documents_and_lowered_once_by_a_signature() {
    let world = World::start().await;
    let mut agent = start(&world).await;
    lay_down(&agent).await;
    agent.goal_under(1, policies(3, 2), under()).await;
    agent
        .until("a guest that serves, with three kept", |view| serves(view, 1) && keeps(view) == Some(3))
        .await;
    agent.goal_under(2, policies(5, 2), under()).await;
    agent
        .until("five are kept, without a word", |view| keeps(view) == Some(5) && view.waiting.is_empty())
        .await;

    // Whatever else a document says, nothing is taken away.
    let without = vec![guest(1)];
    agent.goal_under(3, Vec::new(), without).await;
    let view = agent.until("taken out of its policy: held", waits(Verb::LoosenPolicy)).await;
    assert_eq!((keeps(&view), reported(&view).unwrap().held.len()), (Some(5), 1));
    let early = signed(&agent, found(&view, Verb::LoosenPolicy).unwrap()).await;
    agent.goal_under(4, policies(1, 3), under()).await;
    let view = agent
        .until("less and at another hour: held", |view| {
            reported(view).is_some_and(|reported| reported.held.len() == 2)
        })
        .await;
    assert_eq!(keeps(&view), Some(5));
    let condition = &report(&view, 1).unwrap().conditions[0];
    assert_eq!(condition.code, ErrorCode::NeedsSignature, "{condition:?}");

    // Signed for the request before: the promise in force is the one that was seen, but the document has another one
    // now.
    assert!(matches!(leave(&agent, &early).await, Outcome::Taken));
    let end = ended(&agent, early.id).await;
    assert_eq!((end.state, end.problem.unwrap().code), (JobState::Failed, ErrorCode::TargetChanged));

    // As it is now, and many times: once.
    let view = agent.view.borrow().clone();
    let good = signed(&agent, found(&view, Verb::LoosenPolicy).unwrap()).await;
    for _ in 0..20 {
        assert!(matches!(leave(&agent, &good).await, Outcome::Taken | Outcome::Known));
    }
    let end = ended(&agent, good.id).await;
    assert_eq!(end.state, JobState::Done, "{:?}", end.problem);
    agent
        .until("one is kept, and nothing waits", |view| keeps(view) == Some(1) && view.waiting.is_empty())
        .await;

    // Raised again, the same job lowers nothing any more; and all of it outlives the agent.
    agent.goal_under(5, policies(9, 3), under()).await;
    agent.until("nine are kept", |view| keeps(view) == Some(9)).await;
    assert!(matches!(leave(&agent, &good).await, Outcome::Known));
    agent.stop().await;
    let mut agent = start(&world).await;
    let view = agent.until("seen again", |view| keeps(view).is_some()).await;
    assert_eq!(keeps(&view), Some(9));
    let promise = agent.ports.store.protection(uid(1)).await.unwrap();
    assert_eq!(promise, reported(&view).unwrap().in_force);
    let audit = agent.ports.store.verify_audit().await.unwrap();
    assert!(audit > 10, "{audit}");
    agent.stop().await;
}

fn off_site(key: &BackupKey) -> Vec<BackupPolicy> {
    let schedule = json!({ "at": ["2:30"], "zone": "UTC", "jitter_min": 5, "window_min": 60 });
    let backup =
        json!({ "target": "backup2", "schedule": schedule, "retention": "keep_all", "consistency": "crash" });
    let tiers = json!({ "off_site": { "key": key.fingerprint(), "backup": backup } });
    serde_json::from_value(json!([{ "name": "usual", "tiers": tiers }])).unwrap()
}

/// A person makes a code for a key, by the steps of their command.
async fn make_code(agent: &Agent, key: &BackupKey) -> CodeNumber {
    let (store, now) = (&agent.ports.store, agent.ports.clock.now());
    let context = Context {
        host: "018f3c1e-6b1f-7c1d-9d0a-2f6d1c0b7a55".parse().unwrap(),
        host_name: "box7".parse().unwrap(),
        customer: "acme".parse().unwrap(),
        epoch: HostEpoch::new(1),
        code: CodeNumber::FIRST,
        made_at: UtcSecond::new(now).unwrap(),
    };
    let record = Record { context, fingerprint: key.fingerprint().clone() };
    let (target, by) = ("off1".parse().unwrap(), "a test".to_owned());
    let goal = Goal { record, target, purpose: Purpose::First, by: by.clone() };
    let begun = store.begin_escrow(goal, now).await.unwrap();
    let number = begun.context.code;
    let file = Escrow::new(begun.context, key.clone()).wrap(&RecoveryCode::generate().unwrap()).unwrap();
    store.note_shown((number, now), by.clone(), now).await.unwrap();
    store.keep_escrow((number, now), file, by, now).await.unwrap();
    number
}

/// So at each moment of a rotation some code opens the key that backups are encrypted with.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_a_code_opens_gives_way_only_to_one_that_a_code_opens() {
    let world = World::start().await;
    let mut agent = start(&world).await;
    lay_down(&agent).await;
    let [old, new] = [0; 2].map(|_| BackupKey::generate(agent.ports.clock.now()).unwrap());
    let in_force = |view: &HostSnapshot, key: &BackupKey| {
        let promise = reported(view).and_then(|reported| reported.in_force.as_ref());
        promise.and_then(|promise| promise.tiers.off_site.as_ref()).map(|tier| &tier.key)
            == Some(key.fingerprint())
    };
    agent.goal_under(1, off_site(&old), under()).await;
    agent.until("a promise under the old key", |view| in_force(view, &old)).await;
    agent.goal_under(2, off_site(&new), under()).await;
    let view = agent.until("no code opens either: offered", waits(Verb::LoosenPolicy)).await;
    let early = signed(&agent, found(&view, Verb::LoosenPolicy).unwrap()).await;

    let first = make_code(&agent, &old).await;
    let held = |view: &HostSnapshot| reported(view).is_some_and(|reported| reported.held.len() == 1);
    let view = agent
        .until("held, and not offered", |view| held(view) && found(view, Verb::LoosenPolicy).is_none())
        .await;
    let why = serde_json::to_string(&view.waiting).unwrap();
    assert!(why.contains("agentd escrow create"), "{why}");
    assert!(matches!(leave(&agent, &early).await, Outcome::Taken));
    let problem = ended(&agent, early.id).await.problem.unwrap();
    assert_eq!(problem.code, ErrorCode::EscrowMissing, "{problem:?}");
    assert!(problem.message.contains(&format!("recovery code {first} opens the key")), "{problem:?}");

    make_code(&agent, &new).await;
    let view = agent.until("offered again", waits(Verb::LoosenPolicy)).await;
    assert!(in_force(&view, &old));
    let good = signed(&agent, found(&view, Verb::LoosenPolicy).unwrap()).await;
    assert!(matches!(leave(&agent, &good).await, Outcome::Taken));
    let end = ended(&agent, good.id).await;
    assert_eq!(end.state, JobState::Done, "{:?}", end.problem);
    agent.until("the new key", |view| in_force(view, &new)).await;
    agent.stop().await;
}
