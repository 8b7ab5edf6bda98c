//! What a guest is promised about its backups, from the document to the signature that lowers it: over restarts, once, and
//! only as it was seen.

use agentd::model::view::View;
use agentd::task::intake::Outcome;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::desired::DesiredGuest;
use holdfast_protocol::job::{JobState, Verb};
use holdfast_protocol::protection::{BackupPolicy, ProtectionReport, Retention};
use serde_json::json;

use super::drift::{report, serves, start};
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

fn told(view: &View) -> Option<&ProtectionReport> {
    report(view, 1)?.protection.as_deref()
}

/// How many of the newest are kept, by what is in force.
fn keeps(view: &View) -> Option<u32> {
    match told(view)?.in_force.as_ref()?.tiers.local.as_ref()?.retention {
        Retention::Keep(keep) => Some(keep.last?.get()),
        Retention::KeepAll => None,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_promise_is_raised_by_documents_and_lowered_once_by_a_signature() {
    let world = World::start().await;
    let mut agent = start(&world).await;
    lay_down(&agent).await;
    agent.wish_under(1, policies(3, 2), under()).await;
    agent
        .until("a guest that serves, with three kept", |view| serves(view, 1) && keeps(view) == Some(3))
        .await;
    agent.wish_under(2, policies(5, 2), under()).await;
    agent
        .until("five are kept, without a word", |view| keeps(view) == Some(5) && view.waiting.is_empty())
        .await;

    // Whatever else a document says, nothing is taken away.
    let without = vec![guest(1)];
    agent.wish_under(3, Vec::new(), without).await;
    let view = agent.until("taken out of its policy: held", waits(Verb::LoosenPolicy)).await;
    assert_eq!((keeps(&view), told(&view).unwrap().held.len()), (Some(5), 1));
    let early = signed(&agent, found(&view, Verb::LoosenPolicy).unwrap()).await;
    agent.wish_under(4, policies(1, 3), under()).await;
    let view = agent
        .until("less and at another hour: held", |view| told(view).is_some_and(|told| told.held.len() == 2))
        .await;
    assert_eq!(keeps(&view), Some(5));
    let condition = &report(&view, 1).unwrap().conditions[0];
    assert_eq!(condition.code, ErrorCode::NeedsSignature, "{condition:?}");

    // Signed for the wish before: in force is what was seen, but the document says something else now.
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

    // Raised again, the same job brings nothing down any more; and all of it outlives the agent.
    agent.wish_under(5, policies(9, 3), under()).await;
    agent.until("nine are kept", |view| keeps(view) == Some(9)).await;
    assert!(matches!(leave(&agent, &good).await, Outcome::Known));
    agent.stop().await;
    let mut agent = start(&world).await;
    let view = agent.until("seen again", |view| keeps(view).is_some()).await;
    assert_eq!(keeps(&view), Some(9));
    let promise = agent.ports.store.protection(uid(1)).await.unwrap();
    assert_eq!(promise, told(&view).unwrap().in_force);
    let audit = agent.ports.store.verify_audit().await.unwrap();
    assert!(audit > 10, "{audit}");
    agent.stop().await;
}
