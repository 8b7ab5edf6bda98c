//! Tests of `loosen_policy` at intake.

use std::sync::Arc;

use agent_core::gate::job_validation::TurnedAway;
use agent_core::plan::protect::Raise;
use agent_store::job::TakeError;
use agent_store::job_intake::Outcome;
use agent_store::protection::Changed;
use holdfast_protocol::code::ErrorCode::{
    self, DuplicateKey, Missing, Range, TargetChanged, TargetKind, UnknownField, Version,
};
use holdfast_protocol::id::JobId;
use holdfast_protocol::job::JobState;
use holdfast_protocol::protection::Protection;
use serde_json::{Value, json};

use crate::intake::hand::{Hand, job};
use crate::intake::store_fixture::{GUEST, StoreFixture, target};

fn promise(last: u32) -> Value {
    let schedule = json!({ "at": ["02:30"], "zone": "Europe/Berlin", "jitter_min": 5, "window_min": 60 });
    let local = json!({
        "target": "backup2", "schedule": schedule, "retention": { "keep": { "last": last } },
        "consistency": "application", "restore_test_days": 30
    });
    json!({ "tiers": { "local": local }, "volumes": [{ "name": "db", "kind": "hot" }] })
}

fn read(value: &Value) -> Protection {
    serde_json::from_value(value.clone()).unwrap()
}

fn order(from: &Value, to: &Value) -> String {
    format!("\"target\":{},\"verb\":\"loosen_policy\",\"args\":{{\"from\":{from},\"to\":{to}}}", target())
}

async fn raise(listener: &StoreFixture, from: Option<&Value>, to: &Value) {
    let from = from.map(|from| Arc::new(read(from)));
    let raise = Raise { guest: GUEST.parse().unwrap(), from, to: read(to), what: "by a test".to_owned() };
    assert_eq!(listener.store.raise_protection(raise, listener.now).await.unwrap(), Changed::Yes);
}

/// The right one passes, and is cancelled again so that the next one may.
async fn counterpart(listener: &mut StoreFixture, name: &str) {
    let (id, payload) = listener.payload(&order(&promise(3), &promise(1))).await;
    let outcome = listener.leave(id, &job(payload.as_bytes(), &[&listener.alice])).await;
    assert!(matches!(outcome, Outcome::Taken), "{name}: {outcome:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_promise_is_lowered_only_in_its_one_spelling_and_from_what_is_in_force() {
    let mut listener = StoreFixture::open().await;
    raise(&listener, None, &promise(3)).await;
    let good = order(&promise(3), &promise(1));
    let replaced = |from: &str, to: &str| {
        assert!(good.contains(from), "{from} in {good}");
        good.replacen(from, to, 1)
    };
    let mut same = promise(1);
    same["tiers"]["local"]["schedule"]["at"] = json!(["02:30", "03:30"]);
    same["tiers"]["local"]["retention"] = json!({ "keep": { "last": 9, "daily": 30 } });
    let without = |key: &str| {
        let mut from = promise(3);
        from.as_object_mut().unwrap().remove(key);
        order(&from, &promise(1))
    };
    let cases: Vec<(&str, String, ErrorCode)> = vec![
        ("nothing is loosened", order(&promise(3), &promise(3)), Range),
        ("something is raised", order(&promise(3), &promise(4)), Range),
        ("more is kept, more often", order(&promise(3), &same), Range),
        ("from less than is in force", order(&promise(2), &promise(1)), TargetChanged),
        ("from more than is in force", order(&promise(4), &promise(1)), TargetChanged),
        (
            "from another spelling of it",
            order(&promise(3), &promise(1)).replacen("02:30", "2:30", 1),
            TargetChanged,
        ),
        (
            "no from",
            format!("\"target\":{},\"verb\":\"loosen_policy\",\"args\":{{\"to\":{}}}", target(), promise(1)),
            Missing,
        ),
        (
            "no arguments",
            format!("\"target\":{},\"verb\":\"loosen_policy\",\"args\":{{}}", target()),
            Missing,
        ),
        ("no tiers", without("tiers"), Missing),
        ("no volumes", without("volumes"), Missing),
        ("a field more", replaced("\"args\":{", "\"args\":{\"force\":true,"), UnknownField),
        ("a field more in it", replaced("\"tiers\":{", "\"tiers\":{\"cloud\":null,"), UnknownField),
        ("a field more in a tier", replaced("\"local\":{", "\"local\":{\"floor\":0,"), UnknownField),
        (
            "a field twice",
            replaced("\"target\":\"backup2\"", "\"target\":\"backup2\",\"target\":\"backup2\""),
            DuplicateKey,
        ),
        ("a null tier", replaced("\"tiers\":{", "\"tiers\":{\"snapshot\":null,"), Range),
        ("a null rule", replaced("\"last\":3", "\"last\":3,\"daily\":null"), Range),
        ("keeps none", replaced("\"last\":3", "\"last\":0"), Range),
        ("no rule", replaced("{\"last\":3}", "{}"), Range),
        ("keeps a word", replaced("\"last\":3", "\"last\":\"3\""), Range),
        ("no point in time", replaced("[\"02:30\"]", "[]"), Range),
        ("a point that is not shared", replaced("02:30", "*/15"), Range),
        ("a point that never comes", replaced("02:30", "2-30"), Range),
        ("no zone", replaced("Europe/Berlin", "local"), Range),
        ("a zone that climbs", replaced("Europe/Berlin", "../../etc/passwd"), Range),
        ("another consistency", replaced("\"application\"", "\"perhaps\""), Version),
        ("a target that splices", replaced("\"backup2\"", "\"backup2,keep=1\""), Range),
        ("a volume twice", replaced("[{", "[{\"name\":\"db\",\"kind\":\"hot\"},{"), Range),
        ("a volume of no kind", replaced("\"hot\"", "\"warm\""), Version),
        ("a list for a promise", replaced(&promise(3).to_string(), "[]"), Range),
        ("the host as target", replaced(&target(), "{\"kind\":\"host\"}"), TargetKind),
        ("another name", replaced("web-1", "web-2"), TargetChanged),
        ("another VMID", replaced("\"vmid\":300", "\"vmid\":301"), TargetChanged),
    ];
    for (name, order, code) in cases {
        let (id, payload) = listener.payload(&order).await;
        let blob = job(payload.as_bytes(), &[&listener.alice]);
        listener.refuses(name, id, &blob, code).await;
        counterpart(&mut listener, name).await;
    }
    let (id, payload) = listener.payload(&good).await;
    let blob = job(payload.as_bytes(), &[&Hand::new(9)]);
    listener.refuses("a stranger's signature", id, &blob, ErrorCode::KeyUnknown).await;
    counterpart(&mut listener, "after the stranger").await;
    // A right one of before is void as soon as something was raised.
    raise(&listener, Some(&promise(3)), &promise(5)).await;
    let (id, payload) = listener.payload(&good).await;
    let blob = job(payload.as_bytes(), &[&listener.alice]);
    listener.refuses("raised since", id, &blob, TargetChanged).await;
}

async fn taken(listener: &mut StoreFixture, order: &str) -> JobId {
    let (id, payload) = listener.payload(order).await;
    let outcome = listener.leave(id, &job(payload.as_bytes(), &[&listener.alice])).await;
    assert!(matches!(outcome, Outcome::Taken), "{outcome:?}");
    id
}

async fn stands(listener: &StoreFixture, id: JobId) -> (JobState, Protection) {
    let reports = listener.store.job_reports().await.unwrap();
    let state = reports.into_iter().find(|report| report.id == id).unwrap().state;
    (state, listener.store.protection(GUEST.parse().unwrap()).await.unwrap().unwrap())
}

/// The job ends and the promise is lowered, once and from the signed state; or neither.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_promise_is_lowered_with_its_job_or_neither() {
    let mut listener = StoreFixture::open().await;
    raise(&listener, None, &promise(3)).await;
    let id = taken(&mut listener, &order(&promise(3), &promise(1))).await;
    let other = taken(&mut listener, &order(&promise(3), &promise(2))).await;
    listener.pass(3_000);
    let (first, second) = (listener.due(id).await, listener.due(other).await);
    listener.store.lower_protection(first.clone(), listener.now).await.unwrap();
    assert_eq!(stands(&listener, id).await, (JobState::Done, read(&promise(1))));
    let lowered = |(action, _): &(String, String)| action == "protection_lowered";
    assert_eq!(listener.audit().iter().filter(|line| lowered(line)).count(), 1);
    // The promise that the second job names is not in force any more.
    let away = listener.store.lower_protection(second, listener.now).await.unwrap_err();
    assert!(matches!(away, TakeError::Away(TurnedAway::Promise)), "{away}");
    assert_eq!(stands(&listener, other).await, (JobState::Waiting, read(&promise(1))));
    // And a job that has ended lowers nothing again.
    raise(&listener, Some(&promise(1)), &promise(3)).await;
    listener.store.lower_protection(first, listener.now).await.unwrap();
    assert_eq!(stands(&listener, id).await, (JobState::Done, read(&promise(3))));
}
