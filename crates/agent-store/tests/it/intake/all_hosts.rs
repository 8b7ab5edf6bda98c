//! Tests of approvals of images that were signed once for all hosts.

use agent_core::gate::job_validation::when_due;
use agent_core::model::records::ReleaseRecord;
use agent_store::job_intake::Outcome;
use holdfast_protocol::code::ErrorCode::{
    JobExpired, JobLife, JobNotYet, JobReplayed, KeyUnknown, NotYours, Quota, Signature, SignaturesMissing,
    UnknownField, Version,
};
use holdfast_protocol::id::JobId;
use holdfast_protocol::job::JobState;
use holdfast_protocol::job::act::ReleaseKind;
use holdfast_trust::scope::Here;
use jiff::SignedDuration;

use crate::intake::hand::{Hand, job};
use crate::intake::store_fixture::{HOST, StoreFixture, roster};

/// An approval that begins a minute ago, and ends after so many seconds.
fn approval(listener: &mut StoreFixture, version: &str, ends_s: i64) -> (JobId, String) {
    let (id, nonce) = listener.fresh();
    let second = |offset: i64| (listener.now + SignedDuration::from_secs(offset)).to_string();
    let (from, until, sha256) = (second(-60), second(ends_s), "ab".repeat(32));
    let text = format!(
        "{{\"schema\":\"holdfast.image-approval/v1\",\"job_id\":\"{id}\",\"version\":\"{version}\",\"sha256\":\"{sha256}\",\
         \"not_before\":\"{from}\",\"expires_at\":\"{until}\",\"nonce\":\"{nonce}\",\"reason\":\"the image of November\"}}"
    );
    (id, text)
}

const DAYS_20: i64 = 20 * 24 * 3_600;

fn image(version: &str) -> ReleaseRecord {
    ReleaseRecord {
        kind: ReleaseKind::Golden,
        version: version.to_owned().try_into().unwrap(),
        sha256: "ab".repeat(32).try_into().unwrap(),
    }
}

/// Takes what is due, as the agent does when a delay is over.
async fn carries_out(listener: &StoreFixture, id: JobId) {
    let due = listener.store.due_jobs(listener.now).await.unwrap();
    let due = due.into_iter().find(|due| due.id == id).unwrap();
    let status = listener.store.trust_state().await.unwrap();
    let here =
        Here { host: HOST.parse().unwrap(), epoch: status.epoch, now: listener.now, latest: listener.now };
    let job = when_due(&due.signed, due.due_at, &status.roster.unwrap(), &here).unwrap();
    listener.store.approve_release(job, listener.now).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_approval_is_admitted_once_on_each_host() {
    let mut first = StoreFixture::open().await;
    let (id, text) = approval(&mut first, "2026.11.1", DAYS_20);
    let blob = job(text.as_bytes(), &[&first.alice]);
    // The second host was off for two weeks.
    let mut second = StoreFixture::open().await;
    second.pass(14 * 24 * 3_600);
    for host in [&first, &second] {
        assert!(matches!(host.leave(id, &blob).await, Outcome::Taken));
        assert!(!host.store.is_approved(image("2026.11.1")).await.unwrap(), "taken, not carried out");
        carries_out(host, id).await;
        assert!(host.store.is_approved(image("2026.11.1")).await.unwrap());
        assert!(!host.store.is_approved(image("2026.11.2")).await.unwrap());
        let report = host.store.job_reports().await.unwrap().into_iter().find(|report| report.id == id);
        assert_eq!(report.unwrap().state, JobState::Done);
        // A replay changes nothing, however often it comes.
        let after = (host.state(), host.audit());
        for _ in 0..3 {
            assert!(matches!(host.leave(id, &blob).await, Outcome::Known));
        }
        assert_eq!((host.state(), host.audit()), after);
    }
    // Not after its end either.
    let mut first = first.reopen();
    first.pass(DAYS_20);
    assert!(matches!(first.leave(id, &blob).await, Outcome::Known));
    // The same id or nonce for another image is none.
    let other = text.replacen("2026.11.1", "2026.11.2", 1);
    let blob = job(other.as_bytes(), &[&second.alice]);
    let outcome = second.leave(id, &blob).await;
    assert!(matches!(&outcome, Outcome::Away(why) if why.code() == JobReplayed), "{outcome:?}");
    assert!(!second.store.is_approved(image("2026.11.2")).await.unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forged_scopes_other_verbs_and_wrong_times_are_refused() {
    let mut listener = StoreFixture::open().await;
    let eve = Hand::new(66);
    let (id, good) = approval(&mut listener, "2026.11.1", DAYS_20);
    let with = |from: &str, to: &str| {
        assert!(good.contains(from), "{from}");
        good.replacen(from, to, 1)
    };
    let more = |field: &str| with("\"version\"", &format!("{field},\"version\""));
    for (name, text, code) in [
        ("another verb", more("\"verb\":\"destroy_guest\""), UnknownField),
        ("a guest agent", more("\"kind\":\"controller\""), UnknownField),
        ("arguments", more("\"args\":{}"), UnknownField),
        ("a host", more(&format!("\"host_id\":\"{HOST}\"")), UnknownField),
        ("another scope", more("\"hosts\":\"all\""), UnknownField),
        ("a schema that is none", with("image-approval/v1", "image-approval/v2"), Version),
    ] {
        let blob = job(text.as_bytes(), &[&listener.alice]);
        listener.refuses_and_takes(name, id, &blob, code).await;
    }
    // A destroy that says it is for all hosts.
    let (destroy, text) = listener.destroy().await;
    let text = text.replacen("holdfast.job/v1", "holdfast.image-approval/v1", 1);
    let blob = job(text.as_bytes(), &[&listener.alice]);
    listener.refuses_and_takes("a destroy in the schema of approvals", destroy, &blob, UnknownField).await;

    // Each is judged at a later minute than the one before.
    let (id, late) = approval(&mut listener, "2026.11.1", 30);
    let blob = job(late.as_bytes(), &[&listener.alice]);
    listener.refuses("it ended", id, &blob, JobExpired).await;
    let (id, long) = approval(&mut listener, "2026.11.1", 31 * 24 * 3_600);
    listener.refuses("for longer than a month", id, &job(long.as_bytes(), &[&listener.alice]), JobLife).await;
    let (id, early) = approval(&mut listener, "2026.11.1", DAYS_20);
    let begins = (listener.now - SignedDuration::from_secs(60)).to_string();
    let later = (listener.now + SignedDuration::from_hours(1)).to_string();
    let early = early.replacen(&begins, &later, 1);
    listener.refuses("not yet", id, &job(early.as_bytes(), &[&listener.alice]), JobNotYet).await;

    let (id, good) = approval(&mut listener, "2026.11.1", DAYS_20);
    listener.refuses("a key that nobody listed", id, &job(good.as_bytes(), &[&eve]), KeyUnknown).await;
    let (other, _) = listener.fresh();
    let blob = job(good.as_bytes(), &[&listener.alice]);
    listener.refuses("left under another id", other, &blob, NotYours).await;
    let signed = job(good.replacen("2026.11.1", "2026.11.2", 1).as_bytes(), &[&listener.alice]);
    let good_signed = job(good.as_bytes(), &[&listener.alice]);
    let signature = |text: &str| {
        let value: serde_json::Value = serde_json::from_str(text).unwrap();
        value["signatures"].clone()
    };
    let mut forged: serde_json::Value = serde_json::from_str(&good_signed).unwrap();
    forged["signatures"] = signature(&signed);
    listener.refuses_and_takes("signed for another image", id, &forged.to_string(), Signature).await;
}

/// The rule of this host's policy for the verb holds for what was signed for all hosts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_policy_of_each_host_decides() {
    let mut listener = StoreFixture::open().await;
    let mut strict = roster(2);
    strict.policy += "[verbs.approve_release]\nsignatures = 2\ndelay_s = 3600\nper_day = 1\n";
    listener.store.lay_down(strict, listener.now).await.unwrap();
    let (id, text) = approval(&mut listener, "2026.11.1", DAYS_20);
    let one = job(text.as_bytes(), &[&listener.alice]);
    listener.refuses_and_takes("one of two operators", id, &one, SignaturesMissing).await;
    let both = job(text.as_bytes(), &[&listener.alice, &listener.bob]);
    assert!(matches!(listener.leave(id, &both).await, Outcome::Taken));
    assert!(listener.store.due_jobs(listener.now).await.unwrap().iter().all(|due| due.id != id), "it waits");
    listener.pass(3_600);
    carries_out(&listener, id).await;
    let (id, text) = approval(&mut listener, "2026.11.2", DAYS_20);
    let again = job(text.as_bytes(), &[&listener.alice, &listener.bob]);
    listener.refuses("the second of a day", id, &again, Quota).await;
}
