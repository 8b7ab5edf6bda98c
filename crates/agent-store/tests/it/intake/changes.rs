//! Delays and cancels, the cap of a day, and operators who put others in their place.

use agent_core::gate::order::{TurnedAway, when_due};
use agent_store::job::Settled;
use agent_store::job_intake::Outcome;
use agent_store::roster::{LaidDown, RosterTexts};
use holdfast_protocol::code::ErrorCode::{self, NotFound, Quota, Range, StaleGeneration, UnderWay};
use holdfast_protocol::id::JobId;
use holdfast_protocol::job::{JobReport, JobState};
use holdfast_trust::Accepted;
use holdfast_trust::law::{Here, NotHere};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use crate::intake::door::{Door, HOST, roster, target};
use crate::intake::hand::{Hand, job};

fn host(verb: &str, args: &serde_json::Value) -> String {
    format!("\"target\":{{\"kind\":\"host\"}},\"verb\":\"{verb}\",\"args\":{args}")
}

async fn report(door: &Door, id: JobId) -> JobReport {
    door.store.job_reports().await.unwrap().into_iter().find(|report| report.id == id).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_lies_open_for_its_delay_and_can_be_stopped_meanwhile() {
    let mut door = Door::open().await;
    let (id, payload) = door.destroy().await;
    assert!(matches!(door.leave(id, &job(payload.as_bytes(), &[&door.alice])).await, Outcome::Taken));
    let due = report(&door, id).await.due_at.unwrap();
    assert_eq!(due.duration_since(door.now).as_secs(), 600);
    assert_eq!(door.store.next_due_job().await.unwrap(), Some(due));
    door.pass(599);
    assert!(door.store.due_jobs(door.now).await.unwrap().is_empty());
    door.pass(1);
    assert_eq!(door.store.due_jobs(door.now).await.unwrap().len(), 1);

    let (cancel, payload) = door.payload(&host("cancel", &json!({ "job": id }))).await;
    let blob = job(payload.as_bytes(), &[&door.bob]);
    assert!(matches!(door.leave(cancel, &blob).await, Outcome::Taken));
    assert_eq!(report(&door, id).await.state, JobState::Cancelled);
    assert_eq!(report(&door, cancel).await.state, JobState::Done);
    assert!(door.store.due_jobs(door.now).await.unwrap().is_empty());
    let audit = door.audit();
    assert!(audit.iter().any(|(action, _)| action == "job_cancelled"), "{audit:?}");
    // What was stopped stays stopped, and cannot be stopped again, nor can the stop.
    for other in [id, cancel] {
        let (again, payload) = door.payload(&host("cancel", &json!({ "job": other }))).await;
        door.refuses("a cancel too late", again, &job(payload.as_bytes(), &[&door.bob]), UnderWay).await;
    }
    let nobody = JobId::new(uuid::Uuid::from_u128(99));
    let (again, payload) = door.payload(&host("cancel", &json!({ "job": nobody }))).await;
    door.refuses("a cancel of nothing", again, &job(payload.as_bytes(), &[&door.bob]), NotFound).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_day_has_its_cap() {
    let mut door = Door::open().await;
    let backup = format!("\"target\":{},\"verb\":\"backup_now\",\"args\":{{}}", target());
    for _ in 0..2 {
        let (id, payload) = door.payload(&backup).await;
        assert!(matches!(door.leave(id, &job(payload.as_bytes(), &[&door.alice])).await, Outcome::Taken));
        assert_eq!(report(&door, id).await.due_at, Some(door.now), "no delay");
    }
    let (id, payload) = door.payload(&backup).await;
    door.refuses_and_takes("the third", id, &job(payload.as_bytes(), &[&door.alice]), Quota).await;
    door.pass(86_400);
    let (id, payload) = door.payload(&backup).await;
    assert!(matches!(door.leave(id, &job(payload.as_bytes(), &[&door.alice])).await, Outcome::Taken));
}

fn update(texts: &RosterTexts) -> String {
    host("policy_update", &json!({ "signers": texts.operators, "policy": texts.policy }))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operators_put_others_in_their_place_by_their_signatures() {
    let mut door = Door::open().await;
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
        let (id, payload) = door.payload(&update(&texts)).await;
        door.refuses_and_takes(name, id, &job(payload.as_bytes(), &[&door.alice]), code).await;
    }
    let before = door.store.trust_section().await.unwrap();
    let (id, payload) = door.payload(&update(&new(2, &both))).await;
    assert!(matches!(door.leave(id, &job(payload.as_bytes(), &[&door.alice])).await, Outcome::Taken));
    // Bob could have signed too, so it waits for a day, longer than the job lives; alice still may.
    assert_eq!(report(&door, id).await.due_at, Some(later(&door, 86_400)));
    assert_eq!(door.store.trust_section().await.unwrap().policy_version, 1);
    door.takes("while the new ones wait").await;
    door.pass(86_399);
    for due in door.store.due_jobs(door.now).await.unwrap() {
        assert_ne!(due.id, id, "not before its day is over");
        door.store.settle_job(due.id, Settled::Done, door.now).await.unwrap();
    }
    door.pass(1);
    let accepted = judged(&door, id, door.now).await.unwrap();
    door.store.change_roster(accepted, door.now).await.unwrap();
    let after = door.store.trust_section().await.unwrap();
    assert_eq!(after.policy_version, 2);
    assert!(after.operators != before.operators && after.audit.number > before.audit.number);
    assert_eq!(report(&door, id).await.state, JobState::Done);
    let (id, payload) = door.destroy().await;
    door.refuses("alice is gone", id, &job(payload.as_bytes(), &[&door.alice]), ErrorCode::KeyUnknown).await;
    let (id, payload) = door.destroy().await;
    let erin = Hand::new(5);
    assert!(matches!(door.leave(id, &job(payload.as_bytes(), &[&erin])).await, Outcome::Taken));
    // What root laid down before does not come back, and what root lays down anew does.
    assert_eq!(door.store.lay_down(roster(1), door.now).await.unwrap(), LaidDown::Older(2));
    assert_eq!(door.store.lay_down(roster(2), door.now).await.unwrap(), LaidDown::Older(2));
    assert_eq!(door.store.lay_down(roster(3), door.now).await.unwrap(), LaidDown::Taken);
    assert_eq!(door.store.lay_down(roster(3), door.now).await.unwrap(), LaidDown::Same);
    door.takes("root put alice back").await;
}

fn later(door: &Door, seconds: i64) -> Timestamp {
    door.now.checked_add(SignedDuration::from_secs(seconds)).unwrap()
}

/// What a job whose delay is over is judged to be at a time, as the agent judges it.
async fn judged(door: &Door, id: JobId, at: Timestamp) -> Result<Accepted, TurnedAway> {
    let due = door.store.due_jobs(at).await.unwrap().into_iter().find(|due| due.id == id).unwrap();
    let standing = door.store.standing().await.unwrap();
    let (host, epoch) = (HOST.parse().unwrap(), standing.epoch);
    let here = Here { host, epoch, now: at, latest: standing.latest.max(at) };
    when_due(&due.signed, due.due_at, &standing.roster.unwrap(), &here)
}

/// Two who sign wait ten minutes, and are held to the job's end; one who signs alone waits a day, and has another one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_of_who_may_sign_has_its_effect_in_its_time_or_never() {
    let mut door = Door::open().await;
    let ends = |error: &TurnedAway| matches!(error, TurnedAway::NotHere(NotHere::Expired(_)));
    let (id, payload) = door.payload(&update(&roster(2))).await;
    let blob = job(payload.as_bytes(), &[&door.alice, &door.bob]);
    assert!(matches!(door.leave(id, &blob).await, Outcome::Taken));
    assert_eq!(report(&door, id).await.due_at, Some(later(&door, 600)));
    assert!(judged(&door, id, later(&door, 3_599)).await.is_ok());
    assert!(ends(&judged(&door, id, later(&door, 3_600)).await.unwrap_err()));

    let (id, payload) = door.payload(&update(&roster(3))).await;
    assert!(matches!(door.leave(id, &job(payload.as_bytes(), &[&door.bob])).await, Outcome::Taken));
    assert_eq!(report(&door, id).await.due_at, Some(later(&door, 86_400)));
    assert!(judged(&door, id, later(&door, 2 * 86_400 - 1)).await.is_ok());
    assert!(ends(&judged(&door, id, later(&door, 2 * 86_400)).await.unwrap_err()));
    let detail = door.audit().into_iter().rfind(|(action, _)| action == "job_taken").unwrap().1;
    assert!(detail.starts_with("policy_update signed by bob, due 2026-11-22T14:00:00Z"), "{detail}");
    // One whose time was over when it came is not taken, however long it would wait.
    let (id, payload) = door.payload(&update(&roster(4))).await;
    door.pass(3_600);
    let blob = job(payload.as_bytes(), &[&door.alice]);
    door.refuses("over before it came", id, &blob, ErrorCode::JobExpired).await;
}

/// A thief with one key stops what one signed, and not what two signed to be rid of that key.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_stops_what_one_signed_and_two_what_two_signed() {
    let mut door = Door::open().await;
    let (alone, payload) = door.payload(&update(&roster(2))).await;
    assert!(matches!(door.leave(alone, &job(payload.as_bytes(), &[&door.alice])).await, Outcome::Taken));
    let (both, payload) = door.payload(&update(&roster(3))).await;
    let blob = job(payload.as_bytes(), &[&door.alice, &door.bob]);
    assert!(matches!(door.leave(both, &blob).await, Outcome::Taken));
    let (cancel, payload) = door.payload(&host("cancel", &json!({ "job": alone }))).await;
    assert!(matches!(door.leave(cancel, &job(payload.as_bytes(), &[&door.bob])).await, Outcome::Taken));
    assert_eq!(report(&door, alone).await.state, JobState::Cancelled);

    let (cancel, payload) = door.payload(&host("cancel", &json!({ "job": both }))).await;
    let bytes = payload.as_bytes();
    door.refuses("one against two", cancel, &job(bytes, &[&door.alice]), ErrorCode::SignaturesMissing).await;
    assert_eq!(report(&door, both).await.state, JobState::Waiting);
    let blob = job(bytes, &[&door.alice, &door.bob]);
    assert!(matches!(door.leave(cancel, &blob).await, Outcome::Taken));
    assert_eq!(report(&door, both).await.state, JobState::Cancelled);
    // Of everything else one signature is enough.
    let (id, payload) = door.destroy().await;
    let blob = job(payload.as_bytes(), &[&door.alice, &door.bob]);
    assert!(matches!(door.leave(id, &blob).await, Outcome::Taken));
    let (cancel, payload) = door.payload(&host("cancel", &json!({ "job": id }))).await;
    assert!(matches!(door.leave(cancel, &job(payload.as_bytes(), &[&door.bob])).await, Outcome::Taken));
    assert_eq!(report(&door, id).await.state, JobState::Cancelled);
}

/// The hub leaves a text until it hears that it was turned away. That costs no signature's check each time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_turned_away_a_moment_ago_is_not_judged_again() {
    let mut door = Door::open().await;
    let (id, payload) = door.destroy().await;
    let stranger = job(payload.as_bytes(), &[&Hand::new(9)]);
    assert!(matches!(door.leave(id, &stranger).await, Outcome::Away(_)));
    for _ in 0..29 {
        door.pass(1);
        assert!(matches!(door.leave(id, &stranger).await, Outcome::AwayStill));
    }
    // Another text under its id is another matter, and the same one is looked at again after a while.
    assert!(matches!(door.leave(id, "rubbish").await, Outcome::Away(_)));
    let (id, payload) = door.destroy().await;
    let stranger = job(payload.as_bytes(), &[&Hand::new(9)]);
    for _ in 0..3 {
        assert!(matches!(door.leave(id, &stranger).await, Outcome::Away(_)));
        assert!(matches!(door.leave(id, &stranger).await, Outcome::AwayStill));
        door.pass(30);
    }
    // A clock that was set back keeps nobody waiting.
    assert!(matches!(door.leave(id, &stranger).await, Outcome::Away(_)));
    door.pass(-3_600);
    assert!(matches!(door.leave(id, &stranger).await, Outcome::Away(_)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rubbish_without_end_is_not_even_looked_at() {
    let mut door = Door::open().await;
    let (id, payload) = door.destroy().await;
    let (mut away, mut unread) = (0, 0);
    for n in 0..400 {
        let (other, _) = door.fresh();
        match door.leave(other, &format!("rubbish {n}")).await {
            Outcome::Away(_) => away += 1,
            Outcome::Unread => unread += 1,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((away, unread), (120, 280));
    let lines = door.audit().iter().filter(|(action, _)| action == "job_refused").count();
    assert_eq!(lines, 120);
    // The same rubbish again is no second line; and the hour passes.
    door.pass(3_601);
    assert!(
        matches!(door.leave(id, &job(payload.as_bytes(), &[&door.alice])).await, Outcome::Away(_)),
        "its time is over"
    );
    door.takes("after the hour").await;
    let same = "the same text";
    for _ in 0..5 {
        door.leave(id, same).await;
    }
    let again = door.audit().iter().filter(|(action, _)| action == "job_refused").count();
    assert_eq!(again, lines + 2);
}
