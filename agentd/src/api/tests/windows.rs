//! Tests of quiesce windows over the API.

use axum::http::Method;
use holdfast_protocol::local::window::{WindowPhase, WindowView};
use holdfast_protocol::local::work::{Acceptance, Accepted};

use super::*;
use crate::model::records::BackupWhy;
use crate::operation::log::{Entry, Finding};
use crate::operation::progress::OperationState;
use crate::operation::{Backup, QuiescedBackup, Target};
use crate::port::store::request::RequestOrOperation;

impl World {
    async fn put(&self, from: [u8; 4], token: &str, path: &str, body: serde_json::Value) -> Answer {
        self.say(from, Method::PUT, token, path, body.to_string()).await
    }

    async fn drop_window(&self, token: &str, id: OperationId) -> Answer {
        let path = format!("/v1/quiesce-windows/{id}");
        self.say(WEB_AT, Method::DELETE, token, &path, String::new()).await
    }

    async fn ask_window(&self, token: &str, body: &str) -> Answer {
        self.say(WEB_AT, Method::POST, token, "/v1/quiesce-windows", body.to_owned()).await
    }

    async fn say(&self, from: [u8; 4], method: Method, token: &str, path: &str, body: String) -> Answer {
        let request = Request::builder().method(method).uri(path);
        let request = request.header("authorization", format!("Bearer {token}"));
        self.send(from, request.body(Body::from(body)).unwrap()).await
    }

    async fn quiesced(&self, token: &str, id: OperationId, stack: &str) -> Answer {
        let path = format!("/v1/quiesce-windows/{id}/quiesced");
        self.put(WEB_AT, token, &path, json!({"stacks": [stack]})).await
    }

    async fn released(&self, token: &str, id: OperationId, down: serde_json::Value) -> Answer {
        let path = format!("/v1/quiesce-windows/{id}/released");
        self.put(WEB_AT, token, &path, json!({"down": down})).await
    }

    async fn window(&self, token: &str, id: OperationId) -> WindowView {
        self.get(WEB_AT, &format!("/v1/quiesce-windows/{id}"), Some(token)).await.data()
    }

    /// The guest's token, with the provision parked so that the guest's lane is free.
    async fn free(&self) -> String {
        let (id, claim) = self.provision(0).await;
        let bootstrap: Bootstrap = self.claim(WEB_AT, &claim, None).await.data();
        let progress = self.store.operation(id).await.unwrap().unwrap();
        let problem = holdfast_protocol::envelope::ErrorBody::new(ErrorCode::Internal, "out of the way");
        let parked = Event::Parked { problem, remedy: "none".to_owned() };
        self.store.append(&progress, parked, self.clock.now()).await.unwrap();
        bootstrap.token.expose().to_owned()
    }

    /// What the loop and the first step do with a request for a window.
    async fn grant(&self, id: OperationId) -> OperationState {
        let Some(RequestOrOperation::Request(record)) = self.store.asked(id).await.unwrap() else {
            panic!("no request")
        };
        let bound = QuiesceBound::usual();
        let target =
            Target { uid: record.request.guest, name: "web".parse().unwrap(), vmid: 100.try_into().unwrap() };
        let storage = "backup2".parse().unwrap();
        let backup =
            Backup { target, storage, why: BackupWhy::Asked, due: None, key: None, leaves_out: Vec::new() };
        let new = NewOperation {
            id,
            operation: Operation::QuiescedBackup(QuiescedBackup { backup, bound }),
            generation: Generation::new(1),
            reason: "test".to_owned(),
            at: self.clock.now(),
        };
        let mut progress = self.store.open_request(new).await.unwrap();
        let facts = vec![Finding::WindowGranted(self.clock.boot_moment())];
        for event in
            [Event::Begun, Event::Intended { step: 0 }, Event::Succeeded { step: 0, facts, note: None }]
        {
            progress = self.store.append(&progress, event, self.clock.now()).await.unwrap();
        }
        progress
    }

    pub(super) async fn granted(&self) -> (String, OperationId) {
        let token = self.free().await;
        let id = self.ask_window(&token, "").await.data::<Accepted>().operation;
        self.grant(id).await;
        (token, id)
    }
}

#[tokio::test]
async fn a_window_is_asked_for_granted_entered_and_left_and_a_waiting_look_hears_each() {
    let world = World::new().await;
    let token = world.free().await;
    let taken = world.ask_window(&token, "{}").await;
    assert_eq!(taken.status, StatusCode::ACCEPTED);
    let accepted: Accepted = taken.data();
    let again: Accepted = world.ask_window(&token, "").await.data();
    assert_eq!(
        (again.operation, again.taken),
        (accepted.operation, Acceptance::Joined),
        "one window per guest"
    );
    let id = accepted.operation;
    let view = world.window(&token, id).await;
    assert_eq!((view.phase, view.bound_s, view.left_s), (WindowPhase::Requested, 900, None));
    assert_eq!(world.quiesced(&token, id, "shop").await.code(), Some(ErrorCode::Locked), "not granted yet");
    assert_eq!(world.released(&token, id, json!([])).await.code(), Some(ErrorCode::Locked));

    let follow = format!("/v1/quiesce-windows/{id}?wait=30s");
    let heard = async {
        let both = async { tokio::join!(world.get(WEB_AT, &follow, Some(&token)), world.grant(id)).0 };
        tokio::time::timeout(Duration::from_secs(10), both).await.expect("woken by the grant")
    };
    // The grant is several writes, and the waiting call may be answered at an earlier one.
    assert!(!heard.await.data::<WindowView>().phase.is_over());
    assert_eq!(world.window(&token, id).await.left_s, Some(900));
    world.pass(100);
    let quiesced = async {
        let both = async {
            tokio::join!(world.get(WEB_AT, &follow, Some(&token)), world.quiesced(&token, id, "shop")).0
        };
        tokio::time::timeout(Duration::from_secs(10), both).await.expect("woken by the word")
    };
    let view: WindowView = quiesced.await.data();
    assert_eq!((view.phase, view.left_s), (WindowPhase::Quiesced, Some(800)));
    let released: WindowView = world.released(&token, id, json!([])).await.data();
    assert_eq!(released.phase, WindowPhase::Released);
    let late = world.quiesced(&token, id, "shop").await;
    assert_eq!((late.status, late.code()), (StatusCode::CONFLICT, Some(ErrorCode::WindowOver)));
}

#[tokio::test]
async fn the_same_word_twice_is_answered_the_same_and_another_is_refused() {
    let world = World::new().await;
    let (token, id) = world.granted().await;
    let first: WindowView = world.quiesced(&token, id, "shop").await.data();
    let audit = world.store.verify_audit().await.unwrap();
    let second: WindowView = world.quiesced(&token, id, "shop").await.data();
    assert_eq!(first, second);
    assert_eq!(world.quiesced(&token, id, "mail").await.code(), Some(ErrorCode::IdempotencyMismatch));
    assert_eq!(world.store.verify_audit().await.unwrap(), audit, "nothing more was written");
    for _ in 0..2 {
        let given_up: WindowView = world.drop_window(&token, id).await.data();
        assert_eq!(given_up.phase, WindowPhase::Cancelled);
        assert_eq!(given_up.problem.unwrap().code, ErrorCode::Cancelled);
    }
    assert_eq!(world.quiesced(&token, id, "shop").await.code(), Some(ErrorCode::WindowOver));
    assert!(world.released(&token, id, json!([])).await.code().is_none(), "a release is always heard");
}

#[tokio::test]
async fn a_bound_that_passed_ends_it_for_everybody() {
    let world = World::new().await;
    let (token, id) = world.granted().await;
    world.quiesced(&token, id, "shop").await;
    world.pass(900);
    let view = world.window(&token, id).await;
    assert_eq!((view.phase, view.left_s), (WindowPhase::Expired, Some(0)));
    assert_eq!(view.problem.unwrap().code, ErrorCode::WindowOver);
    for answer in [world.quiesced(&token, id, "shop").await, world.drop_window(&token, id).await] {
        assert_eq!(answer.code(), Some(ErrorCode::WindowOver));
    }
    let released: WindowView = world.released(&token, id, json!([])).await.data();
    assert_eq!(released.phase, WindowPhase::Expired, "an end stays");
}

#[tokio::test]
async fn a_goal_that_waits_is_cancelled_as_others_are() {
    let world = World::new().await;
    let token = world.token(0, WEB_AT).await;
    let id = world.ask_window(&token, "").await.data::<Accepted>().operation;
    for _ in 0..2 {
        let view: WindowView = world.drop_window(&token, id).await.data();
        assert_eq!((view.phase, view.problem.unwrap().code), (WindowPhase::Cancelled, ErrorCode::Cancelled));
    }
    assert_eq!(world.quiesced(&token, id, "shop").await.code(), Some(ErrorCode::WindowOver));
    assert_eq!(world.ask_window(&token, r#"{"tier":"snapshot"}"#).await.code(), Some(ErrorCode::Range));
}

/// Every call with another guest's window, in the path and in the body: all are refused in the same way, and nothing is
/// written.
#[tokio::test]
async fn no_guest_touches_anothers_window() {
    let world = World::new().await;
    let (token, id) = world.granted().await;
    let other = world.token(1, DB_AT).await;
    let before = world.store.look_at_window(id).await.unwrap();
    let audit = world.store.verify_audit().await.unwrap();
    let path = format!("/v1/quiesce-windows/{id}");
    let theirs = json!({"guest": WEB, "stacks": ["shop"]}).to_string();
    let plain = json!({"stacks": ["shop"]}).to_string();
    let calls = [
        (Method::GET, path.clone(), String::new()),
        (Method::DELETE, path.clone(), String::new()),
        (Method::PUT, format!("{path}/quiesced"), plain),
        (Method::PUT, format!("{path}/quiesced"), theirs),
        (Method::PUT, format!("{path}/released"), "{}".to_owned()),
        (Method::PUT, format!("{path}/released"), json!({"guest": WEB}).to_string()),
        (Method::POST, "/v1/quiesce-windows".to_owned(), json!({"guest": WEB}).to_string()),
    ];
    for (method, path, body) in &calls {
        let answer = world.say(DB_AT, method.clone(), &other, path, body.clone()).await;
        assert_eq!(
            (answer.status, answer.code()),
            (StatusCode::FORBIDDEN, Some(ErrorCode::NotYours)),
            "{method} {path} {body}"
        );
        for (from, token) in [(DB_AT, token.as_str()), (DB_AT, "none at all")] {
            let answer = world.say(from, method.clone(), token, path, body.clone()).await;
            assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{method} {path}");
            if token != "none at all" {
                // A good token from elsewhere freezes its guest until a person looked.
                world.store.thaw(WEB.parse().unwrap(), "test".to_owned(), world.clock.now()).await.unwrap();
            }
        }
    }
    assert_eq!(world.store.look_at_window(id).await.unwrap(), before);
    // Another kind of work of one's own is no window.
    let backup = Request::post("/v1/backups").header("authorization", format!("Bearer {other}"));
    let backup: Accepted = world.send(DB_AT, backup.body(Body::empty()).unwrap()).await.data();
    let path = format!("/v1/quiesce-windows/{}", backup.operation);
    let answer = world.say(DB_AT, Method::GET, &other, &path, String::new()).await;
    assert_eq!(answer.code(), Some(ErrorCode::NotFound));
    assert!(world.store.verify_audit().await.unwrap() >= audit);
}

#[tokio::test]
async fn a_word_is_of_the_form_or_nothing() {
    let world = World::new().await;
    let (token, id) = world.granted().await;
    let path = |end: &str| format!("/v1/quiesce-windows/{id}/{end}");
    let many: Vec<String> = (0..33).map(|n| format!("s{n}")).collect();
    let why = "x".repeat(513);
    for (end, body, code) in [
        ("quiesced", json!({}), ErrorCode::Missing),
        ("quiesced", json!({"stacks": ["../etc"]}), ErrorCode::Range),
        ("quiesced", json!({"stacks": ["a", "a"]}), ErrorCode::Range),
        ("quiesced", json!({"stacks": many}), ErrorCode::Range),
        ("quiesced", json!({"stacks": [], "force": true}), ErrorCode::UnknownField),
        ("released", json!({"down": [{"stack": "a", "why": ""}]}), ErrorCode::Range),
        ("released", json!({"down": [{"stack": "a", "why": why}]}), ErrorCode::Range),
        ("released", json!({"down": [{"stack": "a", "why": "a\u{1b}[2J"}]}), ErrorCode::Range),
    ] {
        let answer = world.put(WEB_AT, &token, &path(end), body.clone()).await;
        assert_eq!(answer.code(), Some(code), "{end} {body}");
    }
    assert_eq!(world.window(&token, id).await.phase, WindowPhase::Granted);
    let unknown = format!("/v1/quiesce-windows/{}/released", Uuid::now_v7());
    assert_eq!(world.put(WEB_AT, &token, &unknown, json!({})).await.code(), Some(ErrorCode::NotFound));
}

/// Only the journal's own rules write the grant: replayed it is the same.
#[test]
fn a_grant_is_an_event_that_reads_back() {
    let boot = BootMoment { boot: BootId::parse("b").unwrap(), ms: 7 };
    let facts = vec![Finding::WindowGranted(boot)];
    let entry = Entry {
        number: 1,
        at: Timestamp::UNIX_EPOCH,
        event: Event::Succeeded { step: 0, facts, note: None },
    };
    let text = serde_json::to_string(&entry).unwrap();
    assert_eq!(serde_json::from_str::<Entry>(&text).unwrap(), entry);
}
