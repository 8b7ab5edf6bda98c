//! Tests of certificates over lost replies, refusals and restarts.

use std::path::Path;
use std::sync::{Mutex, MutexGuard};

use holdfast_protocol::restore_certificate::SignedCertificate;
use net::client::Method;
use rcgen::KeyPair;
use restore_certificate::countersign::receive;
use serde_json::{Value, json};

use super::*;
use crate::port::clock::RealClock;
use crate::port::hub::{Hub, Line, Posted};
use crate::port::store::restore_certificate::insert_proved_for_tests;
use crate::task::enrolled_agent;

/// What becomes of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Fate {
    #[default]
    Taken,
    /// The hub takes it, and the answer says otherwise.
    ReplyLost,
    Refused,
}

#[derive(Debug, Default)]
struct Records {
    fate: Fate,
    puts: Vec<SignedCertificate>,
}

#[derive(Clone, Debug, Default)]
struct FakeHub(Arc<Mutex<Records>>);

impl FakeHub {
    fn records(&self) -> MutexGuard<'_, Records> {
        self.0.lock().unwrap()
    }

    fn answer(&self, body: &[u8]) -> (u16, Value, Value) {
        let mut records = self.records();
        let put: CertificatePut = serde_json::from_slice(body).unwrap();
        let document = put.certificate.read().unwrap();
        let refused = |status, code| (status, Value::Null, json!({ "code": code, "message": "no" }));
        match records.fate {
            Fate::Refused => return refused(403, "RESTORE_CERTIFICATE"),
            Fate::Taken | Fate::ReplyLost => records.puts.push(put.certificate),
        }
        if records.fate == Fate::ReplyLost {
            return refused(503, "UNAVAILABLE");
        }
        (200, json!({ "guest": document.guest.uid, "received_at": "2026-11-21T12:00:00Z" }), Value::Null)
    }
}

impl Line for FakeHub {
    fn send<'a>(&'a self, method: Method, path: &'a str, body: Vec<u8>, _: Duration) -> Posted<'a> {
        assert_eq!((method, path), (Method::PUT, "/v1/agent/restore-certificates"));
        let answer = enrolled_agent::answer(self.answer(&body));
        Box::pin(async move { Ok(answer) })
    }
}

/// An enrolled agent in a folder. Started again, it finds what was there.
fn start(state: &Path, hub: &FakeHub) -> RestoreCertificatesTask {
    let clock: Arc<dyn Clock> = Arc::new(RealClock::start());
    let folder = IdentityFolder::open(state).unwrap();
    let line = hub.clone();
    RestoreCertificatesTask {
        store: Store::open(state, clock.now()).unwrap(),
        folder,
        dial: Arc::new(move |identity| Ok(Hub::over(Arc::new(line.clone()), &identity.hub))),
        node: "pve1".parse().unwrap(),
        clock,
    }
}

fn enrol(state: &Path) -> KeyPair {
    IdentityFolder::open(state).unwrap();
    enrolled_agent::enrol(state)
}

/// Waits until the thread of a dropped store has released the folder.
fn wait_for_lock(state: &Path) {
    std::fs::File::options().write(true).open(state.join("agent.lock")).unwrap().lock().unwrap();
}

#[tokio::test]
async fn a_lost_reply_and_a_restart_give_no_second_certificate() {
    let folder = tempfile::tempdir().unwrap();
    let (state, hub) = (folder.path(), FakeHub::default());
    let key = enrol(state);
    let task = start(state, &hub);
    insert_proved_for_tests(state, (1, 1), task.clock.now()).unwrap();
    hub.records().fate = Fate::ReplyLost;
    task.round().await.unwrap_err();
    let [kept] = &task.store.undelivered_certificates().await.unwrap()[..] else { panic!("not one") };
    let first = kept.signed.clone();
    drop(task);
    wait_for_lock(state);

    // The agent is started again, and its key is renewed meanwhile.
    enrol(state);
    let task = start(state, &hub);
    hub.records().fate = Fate::Taken;
    task.round().await.unwrap();
    assert_eq!(hub.records().puts, [first.clone(), first.clone()], "the same bytes again");
    task.round().await.unwrap();
    assert_eq!(hub.records().puts.len(), 2, "nothing is sent that the hub has");

    let received = receive(first).unwrap();
    let own = restore_certificate::SigningKey::from_pkcs8(&key.serialize_der()).unwrap();
    assert_eq!(&received.key, own.public());
    let said = serde_json::to_value(&received.document).unwrap();
    assert_eq!(said["host"]["node"], "pve1");
    assert_eq!((&said["guest"]["name"], &said["guest"]["customer"]), (&json!("web-1"), &json!("acme")));
    assert_eq!(received.document.test.return_s(), Some(222));
}

#[tokio::test]
async fn a_certificate_that_is_refused_keeps_no_other_from_the_hub() {
    let folder = tempfile::tempdir().unwrap();
    let (state, hub) = (folder.path(), FakeHub::default());
    enrol(state);
    let task = start(state, &hub);
    for guest in 1..=3 {
        insert_proved_for_tests(state, (guest, guest), task.clock.now()).unwrap();
    }
    hub.records().fate = Fate::Refused;
    let refused = task.round().await.unwrap_err();
    assert!(matches!(refused, RoundError::Hub(HubError::Refused { .. })), "{refused}");
    assert_eq!(task.store.undelivered_certificates().await.unwrap().len(), 3);
    hub.records().fate = Fate::Taken;
    task.round().await.unwrap();
    assert_eq!(hub.records().puts.len(), 3);
    assert!(task.store.undelivered_certificates().await.unwrap().is_empty());
}

/// The hub was restored from a backup of before it took the certificates.
#[tokio::test]
async fn a_hub_that_lost_certificates_has_them_again_after_a_day() {
    let folder = tempfile::tempdir().unwrap();
    let (state, hub) = (folder.path(), FakeHub::default());
    enrol(state);
    let task = start(state, &hub);
    for guest in 1..=2 {
        insert_proved_for_tests(state, (guest, guest), task.clock.now()).unwrap();
    }
    task.round().await.unwrap();
    let first = std::mem::take(&mut hub.records().puts);
    task.round().await.unwrap();
    assert_eq!((first.len(), hub.records().puts.len()), (2, 0), "the day is not over");
    let delivered_yesterday = || {
        let connection = rusqlite::Connection::open(state.join("agent.db")).unwrap();
        let sql = "UPDATE restore_certificate SET delivered_at = delivered_at - 90000000000";
        assert_eq!(connection.execute(sql, []).unwrap(), 2);
    };
    for fate in [Fate::Taken, Fate::Refused] {
        delivered_yesterday();
        hub.records().fate = fate;
        task.round().await.unwrap();
        task.round().await.unwrap();
    }
    assert_eq!(hub.records().puts, first, "the same bytes, once a day");
}
