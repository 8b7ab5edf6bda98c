//! Tests of delays, cancels, daily caps and new operators.

use agent_core::gate::job_validation::{TurnedAway, when_due};
use agent_store::job::Settled;
use agent_store::job_intake::Outcome;
use agent_store::roster::{LaidDown, RosterTexts};
use holdfast_protocol::code::ErrorCode::{self, NotFound, Quota, Range, StaleGeneration, UnderWay};
use holdfast_protocol::id::JobId;
use holdfast_protocol::job::{JobReport, JobState};
use holdfast_trust::Accepted;
use holdfast_trust::scope::{Here, NotHere};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use crate::intake::hand::{Hand, job};
use crate::intake::store_fixture::{HOST, StoreFixture, roster, target};

fn host(verb: &str, args: &serde_json::Value) -> String {
    format!("\"target\":{{\"kind\":\"host\"}},\"verb\":\"{verb}\",\"args\":{args}")
}

async fn report(listener: &StoreFixture, id: JobId) -> JobReport {
    listener.store.job_reports().await.unwrap().into_iter().find(|report| report.id == id).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_lies_open_for_its_delay_and_can_be_stopped_meanwhile() {
    let mut listener = StoreFixture::open().await;
    let (id, payload) = listener.destroy().await;
    assert!(matches!(listener.leave(id, &job(payload.as_bytes(), &[&listener.alice])).await, Outcome::Taken));
    let due = report(&listener, id).await.due_at.unwrap();
    assert_eq!(due.duration_since(listener.now).as_secs(), 600);
    assert_eq!(listener.store.next_due_job().await.unwrap(), Some(due));
    listener.pass(599);
    assert!(listener.store.due_jobs(listener.now).await.unwrap().is_empty());
    listener.pass(1);
    assert_eq!(listener.store.due_jobs(listener.now).await.unwrap().len(), 1);

    let (cancel, payload) = listener.payload(&host("cancel", &json!({ "job": id }))).await;
    let blob = job(payload.as_bytes(), &[&listener.bob]);
    assert!(matches!(listener.leave(cancel, &blob).await, Outcome::Taken));
    assert_eq!(report(&listener, id).await.state, JobState::Cancelled);
    assert_eq!(report(&listener, cancel).await.state, JobState::Done);
    assert!(listener.store.due_jobs(listener.now).await.unwrap().is_empty());
    let audit = listener.audit();
    assert!(audit.iter().any(|(action, _)| action == "job_cancelled"), "{audit:?}");
    // A stopped job stays stopped. It cannot be stopped again, and neither can the stop.
    for other in [id, cancel] {
        let (again, payload) = listener.payload(&host("cancel", &json!({ "job": other }))).await;
        listener
            .refuses("a cancel too late", again, &job(payload.as_bytes(), &[&listener.bob]), UnderWay)
            .await;
    }
    let no_one = JobId::new(uuid::Uuid::from_u128(99));
    let (again, payload) = listener.payload(&host("cancel", &json!({ "job": no_one }))).await;
    listener
        .refuses("a cancel of nothing", again, &job(payload.as_bytes(), &[&listener.bob]), NotFound)
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_day_has_its_cap() {
    let mut listener = StoreFixture::open().await;
    let backup = format!("\"target\":{},\"verb\":\"backup_now\",\"args\":{{}}", target());
    for _ in 0..2 {
        let (id, payload) = listener.payload(&backup).await;
        assert!(matches!(
            listener.leave(id, &job(payload.as_bytes(), &[&listener.alice])).await,
            Outcome::Taken
        ));
        assert_eq!(report(&listener, id).await.due_at, Some(listener.now), "no delay");
    }
    let (id, payload) = listener.payload(&backup).await;
    listener.refuses_and_takes("the third", id, &job(payload.as_bytes(), &[&listener.alice]), Quota).await;
    listener.pass(86_400);
    let (id, payload) = listener.payload(&backup).await;
    assert!(matches!(listener.leave(id, &job(payload.as_bytes(), &[&listener.alice])).await, Outcome::Taken));
}

fn update(texts: &RosterTexts) -> String {
    host("policy_update", &json!({ "signers": texts.operators, "policy": texts.policy }))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operators_put_others_in_their_place_by_their_signatures() {
    let mut listener = StoreFixture::open().await;
    let new =
        |version: u32, operators: &str| RosterTexts { operators: operators.to_owned(), ..roster(version) };
    let line = |seed: u8, name: &str| Hand::new(seed).line(name);
    let both = format!("{}{}", line(2, "bob"), line(5, "erin"));
    let cases: [(&str, RosterTexts, ErrorCode); 10] = [
        ("the same version", roster(1), StaleGeneration),
        (
            "an older version",
            RosterTexts { policy: "version = 0\n".to_owned(), ..roster(1) },
            StaleGeneration,
        ),
        ("nobody", new(2, "# nobody\n"), Range),
        ("an empty file", new(2, ""), Range),
        ("a pattern", new(2, &line(2, "*")), Range),
        ("a key twice", new(2, &format!("{}{}", line(2, "bob"), line(2, "erin"))), Range),
        (
            "an RSA key",
            new(
                2,
                "bob ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAQQCo9+BpMRYQ/dL3DS2CyJxRF+j6ctbT3/Qp84+KeFhnii7NT7fELilKUSnxS30WAvQCCo2yU1orfgqr41mM70MB",
            ),
            Range,
        ),
        ("no policy", RosterTexts { policy: String::new(), ..roster(2) }, Range),
        (
            "a verb without a signature",
            RosterTexts { policy: "version = 2\n[verbs.cancel]\nsignatures = 0\n".to_owned(), ..roster(2) },
            Range,
        ),
        (
            "more signatures than people",
            RosterTexts { policy: "version = 2\n[verbs.cancel]\nsignatures = 9\n".to_owned(), ..roster(2) },
            Range,
        ),
    ];
    for (name, texts, code) in cases {
        let (id, payload) = listener.payload(&update(&texts)).await;
        listener.refuses_and_takes(name, id, &job(payload.as_bytes(), &[&listener.alice]), code).await;
    }
    let before = listener.store.trust_section().await.unwrap();
    let (id, payload) = listener.payload(&update(&new(2, &both))).await;
    assert!(matches!(listener.leave(id, &job(payload.as_bytes(), &[&listener.alice])).await, Outcome::Taken));
    // Bob could have signed too, so it waits for a day, longer than the job lives; alice still may.
    assert_eq!(report(&listener, id).await.due_at, Some(later(&listener, 86_400)));
    assert_eq!(listener.store.trust_section().await.unwrap().policy_version, 1);
    listener.takes("while the new ones wait").await;
    listener.pass(86_399);
    for due in listener.store.due_jobs(listener.now).await.unwrap() {
        assert_ne!(due.id, id, "not before its day is over");
        listener.store.settle_job(due.id, Settled::Done, listener.now).await.unwrap();
    }
    listener.pass(1);
    let accepted = judged(&listener, id, listener.now).await.unwrap();
    listener.store.change_roster(accepted, listener.now).await.unwrap();
    let after = listener.store.trust_section().await.unwrap();
    assert_eq!(after.policy_version, 2);
    assert!(after.operators != before.operators && after.audit.number > before.audit.number);
    assert_eq!(report(&listener, id).await.state, JobState::Done);
    let (id, payload) = listener.destroy().await;
    listener
        .refuses("alice is gone", id, &job(payload.as_bytes(), &[&listener.alice]), ErrorCode::KeyUnknown)
        .await;
    let (id, payload) = listener.destroy().await;
    let erin = Hand::new(5);
    assert!(matches!(listener.leave(id, &job(payload.as_bytes(), &[&erin])).await, Outcome::Taken));
    // Files that root installed before do not take effect again; files that root installs anew do.
    assert_eq!(listener.store.lay_down(roster(1), listener.now).await.unwrap(), LaidDown::Older(2));
    assert_eq!(listener.store.lay_down(roster(2), listener.now).await.unwrap(), LaidDown::Older(2));
    assert_eq!(listener.store.lay_down(roster(3), listener.now).await.unwrap(), LaidDown::Taken);
    assert_eq!(listener.store.lay_down(roster(3), listener.now).await.unwrap(), LaidDown::Same);
    listener.takes("root put alice back").await;
}

fn later(listener: &StoreFixture, seconds: i64) -> Timestamp {
    listener.now.checked_add(SignedDuration::from_secs(seconds)).unwrap()
}

/// The judgement of a job whose delay is over, at a time, as the agent makes it.
async fn judged(listener: &StoreFixture, id: JobId, at: Timestamp) -> Result<Accepted, TurnedAway> {
    let due = listener.store.due_jobs(at).await.unwrap().into_iter().find(|due| due.id == id).unwrap();
    let status = listener.store.trust_state().await.unwrap();
    let (host, epoch) = (HOST.parse().unwrap(), status.epoch);
    let here = Here { host, epoch, now: at, latest: status.latest.max(at) };
    when_due(&due.signed, due.due_at, &status.roster.unwrap(), &here)
}

/// A job of two signers waits ten minutes, and must take effect before its end. A job of one signer waits a day, and
/// has a later end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_of_who_may_sign_has_its_effect_in_its_time_or_never() {
    let mut listener = StoreFixture::open().await;
    let ends = |error: &TurnedAway| matches!(error, TurnedAway::NotHere(NotHere::Expired(_)));
    let (id, payload) = listener.payload(&update(&roster(2))).await;
    let blob = job(payload.as_bytes(), &[&listener.alice, &listener.bob]);
    assert!(matches!(listener.leave(id, &blob).await, Outcome::Taken));
    assert_eq!(report(&listener, id).await.due_at, Some(later(&listener, 600)));
    assert!(judged(&listener, id, later(&listener, 3_599)).await.is_ok());
    assert!(ends(&judged(&listener, id, later(&listener, 3_600)).await.unwrap_err()));

    let (id, payload) = listener.payload(&update(&roster(3))).await;
    assert!(matches!(listener.leave(id, &job(payload.as_bytes(), &[&listener.bob])).await, Outcome::Taken));
    assert_eq!(report(&listener, id).await.due_at, Some(later(&listener, 86_400)));
    assert!(judged(&listener, id, later(&listener, 2 * 86_400 - 1)).await.is_ok());
    assert!(ends(&judged(&listener, id, later(&listener, 2 * 86_400)).await.unwrap_err()));
    let detail = listener.audit().into_iter().rfind(|(action, _)| action == "job_taken").unwrap().1;
    assert!(detail.starts_with("policy_update signed by bob, due 2026-11-22T14:00:00Z"), "{detail}");
    // A job that had expired when it arrived is not taken, however long its delay is.
    let (id, payload) = listener.payload(&update(&roster(4))).await;
    listener.pass(3_600);
    let blob = job(payload.as_bytes(), &[&listener.alice]);
    listener.refuses("over before it came", id, &blob, ErrorCode::JobExpired).await;
}

/// A thief with one key can stop a job of one signer, but not a job of two signers that removes that key.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_stops_what_one_signed_and_two_what_two_signed() {
    let mut listener = StoreFixture::open().await;
    let (alone, payload) = listener.payload(&update(&roster(2))).await;
    assert!(matches!(
        listener.leave(alone, &job(payload.as_bytes(), &[&listener.alice])).await,
        Outcome::Taken
    ));
    let (both, payload) = listener.payload(&update(&roster(3))).await;
    let blob = job(payload.as_bytes(), &[&listener.alice, &listener.bob]);
    assert!(matches!(listener.leave(both, &blob).await, Outcome::Taken));
    let (cancel, payload) = listener.payload(&host("cancel", &json!({ "job": alone }))).await;
    assert!(matches!(
        listener.leave(cancel, &job(payload.as_bytes(), &[&listener.bob])).await,
        Outcome::Taken
    ));
    assert_eq!(report(&listener, alone).await.state, JobState::Cancelled);

    let (cancel, payload) = listener.payload(&host("cancel", &json!({ "job": both }))).await;
    let bytes = payload.as_bytes();
    listener
        .refuses("one against two", cancel, &job(bytes, &[&listener.alice]), ErrorCode::SignaturesMissing)
        .await;
    assert_eq!(report(&listener, both).await.state, JobState::Waiting);
    let blob = job(bytes, &[&listener.alice, &listener.bob]);
    assert!(matches!(listener.leave(cancel, &blob).await, Outcome::Taken));
    assert_eq!(report(&listener, both).await.state, JobState::Cancelled);
    // Of everything else one signature is enough.
    let (id, payload) = listener.destroy().await;
    let blob = job(payload.as_bytes(), &[&listener.alice, &listener.bob]);
    assert!(matches!(listener.leave(id, &blob).await, Outcome::Taken));
    let (cancel, payload) = listener.payload(&host("cancel", &json!({ "job": id }))).await;
    assert!(matches!(
        listener.leave(cancel, &job(payload.as_bytes(), &[&listener.bob])).await,
        Outcome::Taken
    ));
    assert_eq!(report(&listener, id).await.state, JobState::Cancelled);
}

/// The hub leaves a text until it hears that it was turned away. That costs no signature's check each time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_turned_away_a_moment_ago_is_not_judged_again() {
    let mut listener = StoreFixture::open().await;
    let (id, payload) = listener.destroy().await;
    let stranger = job(payload.as_bytes(), &[&Hand::new(9)]);
    assert!(matches!(listener.leave(id, &stranger).await, Outcome::Away(_)));
    for _ in 0..29 {
        listener.pass(1);
        assert!(matches!(listener.leave(id, &stranger).await, Outcome::AwayStill));
    }
    // Another text under its id is judged on its own, and an unchanged text is judged again after a while.
    assert!(matches!(listener.leave(id, "rubbish").await, Outcome::Away(_)));
    let (id, payload) = listener.destroy().await;
    let stranger = job(payload.as_bytes(), &[&Hand::new(9)]);
    for _ in 0..3 {
        assert!(matches!(listener.leave(id, &stranger).await, Outcome::Away(_)));
        assert!(matches!(listener.leave(id, &stranger).await, Outcome::AwayStill));
        listener.pass(30);
    }
    // A clock that was set back keeps no job waiting.
    assert!(matches!(listener.leave(id, &stranger).await, Outcome::Away(_)));
    listener.pass(-3_600);
    assert!(matches!(listener.leave(id, &stranger).await, Outcome::Away(_)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rubbish_without_end_is_not_even_looked_at() {
    let mut listener = StoreFixture::open().await;
    let (id, payload) = listener.destroy().await;
    let (mut away, mut unread) = (0, 0);
    for n in 0..400 {
        let (other, _) = listener.fresh();
        match listener.leave(other, &format!("rubbish {n}")).await {
            Outcome::Away(_) => away += 1,
            Outcome::Unread => unread += 1,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((away, unread), (120, 280));
    let lines = listener.audit().iter().filter(|(action, _)| action == "job_refused").count();
    assert_eq!(lines, 120);
    // The same rubbish again is no second line; and the hour passes.
    listener.pass(3_601);
    assert!(
        matches!(listener.leave(id, &job(payload.as_bytes(), &[&listener.alice])).await, Outcome::Away(_)),
        "its time is over"
    );
    listener.takes("after the hour").await;
    let same = "the same text";
    for _ in 0..5 {
        listener.leave(id, same).await;
    }
    let again = listener.audit().iter().filter(|(action, _)| action == "job_refused").count();
    assert_eq!(again, lines + 2);
}
