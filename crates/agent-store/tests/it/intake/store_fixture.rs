//! A store with one guest, operators and a policy.

use std::path::Path;

use agent_core::model::records::VolumeId;
use agent_core::model::warrant::{Allows, SignedState, Warrant};
use agent_core::operation::{Destroy, Operation};
use agent_store::Store;
use agent_store::job_intake::{Outcome, take};
use agent_store::journal::NewOperation;
use agent_store::roster::RosterTexts;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::generation::Generation;
use holdfast_protocol::id::{HostId, JobId, OperationId};
use holdfast_protocol::job::{QueuedJob, SeenHost};
use holdfast_trust::Accepted;
use jiff::{SignedDuration, Timestamp};
use rusqlite::{Connection, OpenFlags};
use uuid::Uuid;

use crate::intake::hand::{Hand, job};
use crate::rows::{Row, rows};

pub const HOST: &str = "01906f3c-6b1f-7c1d-9d0a-2f6d1c0b7a02";
pub const GUEST: &str = "01906f3c-6b1f-7c1d-9d0a-2f6d1c0b7a03";

/// This host as the operator who signs knows it, as written in a payload.
pub const OWN: &str = r#""host":{"name":"box7","fingerprint":"4f2a-9c01-77de-b3a8-0c11"}"#;

/// [`OWN`], as the host knows itself.
pub fn own() -> SeenHost {
    SeenHost { name: "box7".parse().unwrap(), fingerprint: "4f2a-9c01-77de-b3a8-0c11".parse().unwrap() }
}

pub struct StoreFixture {
    pub store: Store,
    pub folder: tempfile::TempDir,
    pub now: Timestamp,
    pub alice: Hand,
    pub bob: Hand,
    next: u128,
}

pub fn began() -> Timestamp {
    "2026-11-21T14:00:00Z".parse().unwrap()
}

/// Alice and Bob may sign; Carol might once; Dave signs other things.
pub fn roster(version: u32) -> RosterTexts {
    let key = |seed: u8, name: &str| Hand::new(seed).line(name);
    let operators = [
        key(1, "alice"),
        key(2, "bob"),
        key(3, "carol valid-before=\"20260101Z\""),
        key(4, "dave namespaces=\"git\""),
        key(6, "alice"),
    ];
    let policy = format!(
        "version = {version}\n[verbs.destroy_guest]\nper_day = 100000\ndelay_s = 600\n\
         [verbs.release_brake]\nsignatures = 2\n[verbs.rollback]\nsigners = [\"bob\"]\n\
         [verbs.backup_now]\nper_day = 2\n"
    );
    RosterTexts { operators: operators.concat(), policy }
}

/// A guest as our records have it after it was made.
fn guest(folder: &Path) {
    let raw = Connection::open(folder.join("agent.db")).unwrap();
    raw.execute(
        "INSERT INTO guest (uid, name, customer, golden, place, vmid, made_by, volumes)
         VALUES (?1, 'web-1', 'acme', '2026.11.1', 'made', 300, ?1, '[\"tank:300/vm-300-disk-0.raw\"]')",
        [GUEST],
    )
    .unwrap();
}

/// Waits until the thread of a dropped store has released the folder.
fn wait_for_lock(folder: &Path) {
    let file = std::fs::File::options().write(true).open(folder.join("agent.lock")).unwrap();
    rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive).unwrap();
}

impl StoreFixture {
    pub async fn open() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), began()).unwrap();
        guest(folder.path());
        store.lay_down(roster(1), began()).await.unwrap();
        let (alice, bob) = (Hand::new(1), Hand::new(2));
        Self { store, folder, now: began(), alice, bob, next: 1 }
    }

    /// As after a restart of the agent. The old store must be gone first, with its lock.
    pub fn reopen(self) -> Self {
        self.reopen_after(|_| {})
    }

    /// The same, after something was done to the files meanwhile.
    pub fn reopen_after(self, meanwhile: impl FnOnce(&Path)) -> Self {
        let Self { store, folder, now, alice, bob, next } = self;
        drop(store);
        wait_for_lock(folder.path());
        meanwhile(folder.path());
        let store = Store::open(folder.path(), now).unwrap();
        Self { store, folder, now, alice, bob, next }
    }

    pub fn pass(&mut self, seconds: i64) {
        self.now += SignedDuration::from_secs(seconds);
    }

    /// An id and a nonce that no job used yet.
    pub fn fresh(&mut self) -> (JobId, String) {
        self.next += 1;
        (JobId::new(Uuid::from_u128(self.next << 64 | 7)), format!("{:032x}", self.next))
    }

    /// A payload that is right now, in every part but its order. The id is in it.
    pub async fn payload(&mut self, order: &str) -> (JobId, String) {
        let (id, nonce) = self.fresh();
        let epoch = self.store.trust_state().await.unwrap().epoch;
        let second = |offset: i64| Timestamp::from_second(self.now.as_second() + offset).unwrap().to_string();
        let (from, until) = (second(-60), second(3_600));
        let text = format!(
            "{{\"schema\":\"holdfast.job/v1\",\"job_id\":\"{id}\",\"host_id\":\"{HOST}\",\"host_epoch\":{epoch},{OWN},{order},\
             \"not_before\":\"{from}\",\"expires_at\":\"{until}\",\"nonce\":\"{nonce}\",\"reason\":\"the customer left\"}}"
        );
        (id, text)
    }

    /// The destroy of the guest, right in every part.
    pub async fn destroy(&mut self) -> (JobId, String) {
        self.payload(&format!("\"target\":{},\"verb\":\"destroy_guest\",\"args\":{{}}", target())).await
    }

    /// A job whose delay is over, checked again.
    pub async fn due(&self, id: JobId) -> Accepted {
        let due = self.store.due_jobs(self.now).await.unwrap();
        let due = due.into_iter().find(|due| due.id == id).unwrap();
        let roster = self.store.trust_state().await.unwrap().roster.unwrap();
        roster.accept(&due.signed, self.now).unwrap()
    }

    pub async fn leave(&self, id: JobId, blob: &str) -> Outcome {
        let host: HostId = HOST.parse().unwrap();
        take(
            &self.store,
            (host, &own()),
            &QueuedJob { id, blob: blob.to_owned(), correlation_id: None },
            self.now,
        )
        .await
        .unwrap()
    }

    /// Offers a text and checks its refusal: exactly this code, nothing on disk but one line of the audit about it, and
    /// a valid text passes afterwards.
    pub async fn refuses(&mut self, name: &str, id: JobId, blob: &str, code: ErrorCode) {
        // The number of refusals an hour is limited, and the table is longer.
        self.pass(60);
        let before = (self.state(), self.audit());
        let outcome = self.leave(id, blob).await;
        let Outcome::Away(why) = outcome else { panic!("{name}: {outcome:?}") };
        assert_eq!(why.code(), code, "{name}: {why}");
        assert_eq!(self.state(), before.0, "{name}: a refusal changed something");
        let after = self.audit();
        assert_eq!(after.len(), before.1.len() + 1, "{name}");
        let (action, detail) = after.last().unwrap();
        assert!(action == "job_refused" && detail.contains(code.as_str()), "{name}: {action} {detail}");
        let reported = self.store.job_reports().await.unwrap();
        let reported =
            reported.iter().find(|report| report.id == id).unwrap_or_else(|| panic!("{name}: not told"));
        assert_eq!(reported.problem.as_ref().unwrap().code, code, "{name}");
    }

    /// A right job is taken.
    pub async fn takes(&mut self, name: &str) {
        let (id, payload) = self.destroy().await;
        let outcome = self.leave(id, &job(payload.as_bytes(), &[&self.alice])).await;
        assert!(matches!(outcome, Outcome::Taken), "{name}: {outcome:?}");
    }

    pub async fn refuses_and_takes(&mut self, name: &str, id: JobId, blob: &str, code: ErrorCode) {
        self.refuses(name, id, blob, code).await;
        self.takes(name).await;
    }

    fn raw(&self) -> Connection {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
        Connection::open_with_flags(self.folder.path().join("agent.db"), flags).unwrap()
    }

    /// Every row of every table but the audit.
    pub fn state(&self) -> Vec<Row> {
        let mut all = rows(&self.folder.path().join("agent.db"));
        all.retain(|(table, _)| table != "audit");
        all
    }

    pub fn audit(&self) -> Vec<(String, String)> {
        let raw = self.raw();
        let mut select = raw.prepare("SELECT action, detail FROM audit ORDER BY number").unwrap();
        let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        rows.map(Result::unwrap).collect()
    }
}

pub fn target() -> String {
    format!(
        "{{\"kind\":\"guest\",\"uid\":\"{GUEST}\",\"vmid\":300,\"fingerprint\":{{\"name\":\"web-1\",\"customer\":\"acme\",\
         \"volumes\":[\"tank:300/vm-300-disk-0.raw\"]}}}}"
    )
}

/// The operation that the agent opens to destroy the guest.
pub fn destruction(id: JobId, at: Timestamp) -> NewOperation {
    let target = SignedState {
        uid: GUEST.parse().unwrap(),
        vmid: 300.try_into().unwrap(),
        name: "web-1".parse().unwrap(),
        volumes: ["tank:300/vm-300-disk-0.raw"].map(VolumeId::new).into(),
    };
    let warrant = Warrant::for_tests(id, Allows::DestroyGuest, target);
    NewOperation {
        id: OperationId::new(id.uuid()),
        operation: Operation::Destroy(Box::new(Destroy::new(warrant).unwrap())),
        generation: Generation::NONE,
        reason: "signed".to_owned(),
        at,
    }
}
