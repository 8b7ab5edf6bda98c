//! Tests that a job is accepted once.

use agent_core::gate::job_validation::judge;
use agent_store::job::{JobOutcome, NewJob};
use agent_store::job_intake::{Outcome, take};
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::{HostId, OperationId};
use holdfast_protocol::job::{JobState, QueuedJob, SignedJob};
use holdfast_trust::scope::Here;
use rusqlite::types::Value;

use crate::intake::hand::job;
use crate::intake::store_fixture::{HOST, StoreFixture, destruction, own};
use crate::rows::Row;

const TIMES: usize = 1_000;

fn taken_lines(listener: &StoreFixture) -> usize {
    listener.audit().iter().filter(|(action, _)| action == "job_taken").count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_times_one_after_the_other_and_across_restarts() {
    let mut listener = StoreFixture::open().await;
    let (id, payload) = listener.destroy().await;
    let blob = job(payload.as_bytes(), &[&listener.alice]);
    assert!(matches!(listener.leave(id, &blob).await, Outcome::Taken));
    let after = (listener.state(), listener.audit());
    for n in 1..TIMES {
        if n % 250 == 0 {
            listener = listener.reopen();
        }
        assert!(matches!(listener.leave(id, &blob).await, Outcome::Known), "time {n}");
    }
    // Long after its end a repeat is still no refusal and no second job: the outcome stays.
    listener.pass(86_400);
    assert!(matches!(listener.leave(id, &blob).await, Outcome::Known));
    assert_eq!((listener.state(), listener.audit()), after, "repeats leave no trace");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_thousand_at_once() {
    let mut listener = StoreFixture::open().await;
    let (id, payload) = listener.destroy().await;
    let mail = QueuedJob { id, blob: job(payload.as_bytes(), &[&listener.alice]), correlation_id: None };
    let host: HostId = HOST.parse().unwrap();
    let mut tries = tokio::task::JoinSet::new();
    for _ in 0..TIMES {
        let (store, mail, now) = (listener.store.clone(), mail.clone(), listener.now);
        tries.spawn(async move {
            matches!(take(&store, (host, &own()), &mail, now).await.unwrap(), Outcome::Taken)
        });
    }
    let new = tries.join_all().await.into_iter().filter(|new| *new).count();
    assert_eq!((new, taken_lines(&listener)), (1, 1));
    // And its operation is opened by one of many, too.
    listener.pass(601);
    let mut opens = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let (store, new) = (listener.store.clone(), destruction(id, listener.now));
        opens.spawn(async move { store.open_job(new).await.is_ok() });
    }
    assert_eq!(opens.join_all().await.into_iter().filter(|opened| *opened).count(), 1);
    let reports = listener.store.job_reports().await.unwrap();
    let report = reports.iter().find(|report| report.id == id).unwrap();
    assert_eq!((report.state, report.operation), (JobState::UnderWay, Some(OperationId::new(id.uuid()))));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_bytes_in_another_wrapping_are_the_same_job() {
    let mut listener = StoreFixture::open().await;
    let (id, payload) = listener.destroy().await;
    let signed = |hands: &[&crate::intake::hand::Hand]| job(payload.as_bytes(), hands);
    let one = signed(&[&listener.alice]);
    assert!(matches!(listener.leave(id, &one).await, Outcome::Taken));
    let parsed = SignedJob::parse(one.as_bytes()).unwrap();
    let spaced = one.replace(",\"", " ,\n \"");
    assert_eq!(SignedJob::parse(spaced.as_bytes()).unwrap(), parsed);
    let reordered = format!(
        "{{\"signatures\":{},\"payload\":{},\"schema\":\"holdfast.signed-job/v1\"}}",
        serde_json::to_string(&parsed.signatures).unwrap(),
        serde_json::to_string(&base64(&payload)).unwrap()
    );
    for (name, text) in [
        ("with spaces", spaced),
        ("in another order", reordered),
        ("signed by another", signed(&[&listener.bob])),
        ("signed by both", signed(&[&listener.alice, &listener.bob])),
    ] {
        assert!(matches!(listener.leave(id, &text).await, Outcome::Known), "{name}");
        let (other, _) = listener.fresh();
        assert!(matches!(listener.leave(other, &text).await, Outcome::Known), "{name}, under another id");
    }
    assert_eq!(taken_lines(&listener), 1);
}

/// When many texts arrive at once, one of them may already have passed the intake's first lookup.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_ledger_itself_knows_its_job() {
    let mut listener = StoreFixture::open().await;
    let (id, payload) = listener.destroy().await;
    let blob = job(payload.as_bytes(), &[&listener.alice]);
    let status = listener.store.trust_state().await.unwrap();
    let here =
        Here { host: HOST.parse().unwrap(), epoch: status.epoch, now: listener.now, latest: status.latest };
    let accepted = judge(&blob, id, status.roster.as_ref(), (&here, &own())).unwrap();
    for taken in [JobOutcome::New, JobOutcome::Known, JobOutcome::Known] {
        let new = NewJob { blob: blob.clone(), job: accepted.clone(), correlation: None, at: listener.now };
        assert_eq!(listener.store.take_job(new).await.unwrap(), taken);
    }
    assert_eq!(taken_lines(&listener), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_ended_is_kept_for_thirty_days_after_its_own_end() {
    let mut listener = StoreFixture::open().await;
    let (id, payload) = listener.destroy().await;
    assert!(matches!(listener.leave(id, &job(payload.as_bytes(), &[&listener.alice])).await, Outcome::Taken));
    let order = format!("\"target\":{{\"kind\":\"host\"}},\"verb\":\"cancel\",\"args\":{{\"job\":\"{id}\"}}");
    let (cancel, payload) = listener.payload(&order).await;
    assert!(matches!(
        listener.leave(cancel, &job(payload.as_bytes(), &[&listener.bob])).await,
        Outcome::Taken
    ));
    // It would have ended an hour after it was written.
    for (seconds, kept) in [(30 * 86_400 + 3_600 - 1, true), (2, false)] {
        listener.pass(seconds);
        // Old jobs are deleted when another one arrives.
        listener.takes("another").await;
        let of_it = |(table, row): &Row| table == "job" && row.contains(&Value::Text(id.to_string()));
        assert_eq!(listener.state().iter().any(of_it), kept);
    }
}

fn base64(text: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(text)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_id_or_a_nonce_is_no_one_elses_afterwards() {
    let mut listener = StoreFixture::open().await;
    let (id, payload) = listener.destroy().await;
    assert!(matches!(listener.leave(id, &job(payload.as_bytes(), &[&listener.alice])).await, Outcome::Taken));
    let part = |text: &str, field: &str| {
        let start = text.find(&format!("\"{field}\":\"")).unwrap() + field.len() + 4;
        text[start..start + text[start..].find('"').unwrap()].to_owned()
    };
    let nonce = part(&payload, "nonce");
    for round in 0..3 {
        let (fresh, other) = listener.destroy().await;
        let same_nonce = other.replacen(&part(&other, "nonce"), &nonce, 1);
        let blob = job(same_nonce.as_bytes(), &[&listener.alice]);
        listener
            .refuses_and_takes(&format!("the nonce again, {round}"), fresh, &blob, ErrorCode::JobReplayed)
            .await;
        let (_, other) = listener.destroy().await;
        let same_id = other.replacen(&part(&other, "job_id"), &id.to_string(), 1);
        let blob = job(same_id.as_bytes(), &[&listener.alice]);
        // It is on record under this id, so the record speaks in the report, not the refusal.
        listener.pass(60);
        let outcome = listener.leave(id, &blob).await;
        assert!(
            matches!(&outcome, Outcome::Away(why) if why.code() == ErrorCode::JobReplayed),
            "{outcome:?}"
        );
        let both = other
            .replacen(&part(&other, "job_id"), &id.to_string(), 1)
            .replacen(&part(&other, "nonce"), &nonce, 1)
            .replacen("the customer left", "another reason", 1);
        let outcome = listener.leave(id, &job(both.as_bytes(), &[&listener.alice])).await;
        assert!(
            matches!(&outcome, Outcome::Away(why) if why.code() == ErrorCode::JobReplayed),
            "{outcome:?}"
        );
        listener = listener.reopen();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_that_were_set_back_do_not_take_it_again() {
    let mut listener = StoreFixture::open().await;
    let (id, payload) = listener.destroy().await;
    let blob = job(payload.as_bytes(), &[&listener.alice]);
    let copy = tempfile::tempdir().unwrap();
    let backup = copy.path().join("agent.db");
    let raw = rusqlite::Connection::open(listener.folder.path().join("agent.db")).unwrap();
    raw.execute("VACUUM INTO ?1", [backup.to_str().unwrap()]).unwrap();
    drop(raw);
    assert!(matches!(listener.leave(id, &blob).await, Outcome::Taken));
    let seen = listener.store.trust_section().await.unwrap();

    // The records are set back to before the job. The hub remembers how far the audit was.
    let mut listener = listener.reopen_after(|folder| {
        let path = folder.join("agent.db");
        for tail in ["-wal", "-shm"] {
            drop(std::fs::remove_file(format!("{}{tail}", path.display())));
        }
        std::fs::copy(&backup, &path).unwrap();
    });
    listener.pass(5);
    // A number that no audit can have reached is not believed, and does not hide a plausible one.
    for wild in [seen.audit.number + (1 << 24), i64::MAX as u64, u64::MAX] {
        assert!(!listener.store.heard_audit(wild, listener.now).await.unwrap(), "{wild}");
    }
    assert!(
        !listener.store.heard_audit(seen.audit.number - 1, listener.now).await.unwrap(),
        "no more than it knows"
    );
    assert!(listener.store.heard_audit(seen.audit.number, listener.now).await.unwrap());
    assert!(!listener.store.heard_audit(seen.audit.number, listener.now).await.unwrap(), "once is enough");
    let now = listener.store.trust_section().await.unwrap();
    assert!(now.epoch > seen.epoch, "{now:?}");
    listener.refuses("the job of the life before", id, &blob, ErrorCode::JobEpoch).await;
    listener.takes("what is signed for the new life").await;
    assert!(listener.audit().iter().any(|(action, _)| action == "set_back"));
}
