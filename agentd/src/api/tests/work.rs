//! Tests of requested work: recorded first, and bounded.

use axum::http::Method;
use holdfast_protocol::id::GuestUid;
use holdfast_protocol::local::work::{Acceptance, Accepted, BackupView, BackupsView, SnapshotsView};
use holdfast_protocol::operation::OperationKind;

use super::*;
use crate::model::limits;
use crate::model::request::QueuedRequest;

struct Call<'a> {
    method: Method,
    path: &'a str,
    token: &'a str,
    body: serde_json::Value,
    key: Option<&'a str>,
}

impl<'a> Call<'a> {
    fn post(path: &'a str, token: &'a str, body: serde_json::Value) -> Self {
        Self { method: Method::POST, path, token, body, key: None }
    }

    fn delete(path: &'a str, token: &'a str) -> Self {
        Self { method: Method::DELETE, path, token, body: serde_json::Value::Null, key: None }
    }

    fn key(self, key: &'a str) -> Self {
        Self { key: Some(key), ..self }
    }
}

impl World {
    async fn call(&self, from: [u8; 4], call: Call<'_>) -> Answer {
        let mut request = Request::builder().method(call.method).uri(call.path);
        request = request.header("authorization", format!("Bearer {}", call.token));
        if let Some(key) = call.key {
            request = request.header("idempotency-key", key);
        }
        let body = if call.body.is_null() { Body::empty() } else { Body::from(call.body.to_string()) };
        self.send(from, request.body(body).unwrap()).await
    }

    async fn snapshot(&self, token: &str, name: &str) -> Answer {
        self.call(WEB_AT, Call::post("/v1/snapshots", token, json!({"name": name}))).await
    }

    async fn waiting(&self) -> Vec<QueuedRequest> {
        self.store.records(Generation::new(1), self.clock.now()).await.unwrap().requests
    }

    /// All that a refusal could have changed.
    async fn written(&self) -> (Vec<QueuedRequest>, i64) {
        (self.waiting().await, self.store.verify_audit().await.unwrap())
    }

    async fn operation(&self, token: &str, id: OperationId) -> OperationView {
        self.get(WEB_AT, &format!("/v1/operations/{id}"), Some(token)).await.data()
    }
}

fn web() -> GuestUid {
    WEB.parse().unwrap()
}

#[tokio::test]
async fn what_is_asked_for_is_written_down_and_can_be_followed_and_cancelled() {
    let world = World::new().await;
    let token = world.token(0, WEB_AT).await;
    let answer = world.call(WEB_AT, Call::post("/v1/snapshots", &token, json!({}))).await;
    assert_eq!(answer.status, StatusCode::ACCEPTED);
    let accepted: Accepted = answer.data();
    assert_eq!((accepted.taken, accepted.before), (Acceptance::Queued, 1), "behind the provision");
    assert!(accepted.snapshot.unwrap().as_str().starts_with("asked-20261121T120000-"));
    let view = world.operation(&token, accepted.operation).await;
    assert_eq!(
        (view.status, view.kind, view.guest),
        (OperationStatus::Queued, OperationKind::Snapshot, web())
    );

    let path = format!("/v1/operations/{}", accepted.operation);
    let follow = format!("{path}?wait=30s");
    let cancelling = async {
        let view: OperationView = world.call(WEB_AT, Call::delete(&path, &token)).await.data();
        assert_eq!(view.problem.unwrap().code, ErrorCode::Cancelled);
    };
    let both = async { tokio::join!(world.get(WEB_AT, &follow, Some(&token)), cancelling).0 };
    let reported = tokio::time::timeout(Duration::from_secs(10), both).await.expect("woken by the change");
    assert_eq!(reported.data::<OperationView>().status, OperationStatus::Undone);
    assert!(world.waiting().await.is_empty());
    let again: OperationView = world.call(WEB_AT, Call::delete(&path, &token)).await.data();
    assert_eq!(again.status, OperationStatus::Undone, "cancelled once more is as it was");
}

#[tokio::test]
async fn what_is_under_way_says_so_and_goes_on() {
    let world = World::new().await;
    let (id, claim) = world.provision(0).await;
    let token: Bootstrap = world.claim(WEB_AT, &claim, None).await.data();
    let path = format!("/v1/operations/{id}");
    let answer = world.call(WEB_AT, Call::delete(&path, token.token.expose())).await;
    assert_eq!((answer.status, answer.code()), (StatusCode::CONFLICT, Some(ErrorCode::UnderWay)));
    assert_eq!(world.store.open_operations().await.unwrap().len(), 1);
    let unknown = format!("/v1/operations/{}", Uuid::now_v7());
    let answer = world.call(WEB_AT, Call::delete(&unknown, token.token.expose())).await;
    assert_eq!(answer.code(), Some(ErrorCode::NotFound));
}

#[tokio::test]
async fn a_full_lane_is_busy_changes_nothing_and_takes_the_next_when_a_place_is_free() {
    let world = World::new().await;
    let token = world.token(0, WEB_AT).await;
    let mut ids = Vec::new();
    for n in 0..limits::LANE_WAITING_MAX {
        // Half of them snapshots, the others their ends: the quota is not what is tested here.
        let name = format!("s-{}", n / 2);
        let answer = if n % 2 == 0 {
            world.snapshot(&token, &name).await
        } else {
            world.call(WEB_AT, Call::delete(&format!("/v1/snapshots/{name}"), &token)).await
        };
        assert_eq!(answer.status, StatusCode::ACCEPTED, "{n}: {:?}", answer.code());
        ids.push(answer.data::<Accepted>().operation);
    }
    let before = world.written().await;
    let busy = world.call(WEB_AT, Call::post("/v1/backups", &token, json!({})).key("b-1")).await;
    assert_eq!((busy.status, busy.code()), (StatusCode::SERVICE_UNAVAILABLE, Some(ErrorCode::Busy)));
    assert_eq!(busy.retry_after, Some(limits::BUSY_HEAVY_S.to_string()), "a provision holds the lane");
    assert_eq!(world.written().await, before);

    let other = world.token(1, DB_AT).await;
    let answer = world.call(DB_AT, Call::post("/v1/backups", &other, json!({}))).await;
    assert_eq!(answer.status, StatusCode::ACCEPTED, "a full lane is its own guest's alone");

    let path = format!("/v1/operations/{}", ids[3]);
    assert_eq!(world.call(WEB_AT, Call::delete(&path, &token)).await.status, StatusCode::OK);
    let taken = world.call(WEB_AT, Call::post("/v1/backups", &token, json!({})).key("b-1")).await;
    assert_eq!(taken.status, StatusCode::ACCEPTED, "the refusal used nothing up, the key neither");
}

#[tokio::test]
async fn a_key_is_one_request_and_gets_one_answer() {
    let world = World::new().await;
    let token = world.token(0, WEB_AT).await;
    let ask = |body| Call::post("/v1/snapshots", &token, body).key("k-1");
    let first: Accepted = world.call(WEB_AT, ask(json!({}))).await.data();
    world.pass(5);
    let second: Accepted = world.call(WEB_AT, ask(json!({}))).await.data();
    assert_eq!(first, second, "the name that was made for it included");
    let before = world.written().await;
    assert_eq!(before.0.len(), 1);
    for other in [ask(json!({"name": "other"})), Call::post("/v1/backups", &token, json!({})).key("k-1")] {
        let answer = world.call(WEB_AT, other).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY);
        assert_eq!(answer.code(), Some(ErrorCode::IdempotencyMismatch));
    }
    let long = "k".repeat(129);
    let answer = world.call(WEB_AT, Call::post("/v1/backups", &token, json!({})).key(&long)).await;
    assert_eq!(answer.code(), Some(ErrorCode::Range));
    assert_eq!(world.written().await, before);
    // The key is this guest's; another one may use the same.
    let other = world.token(1, DB_AT).await;
    let answer = world.call(DB_AT, Call::post("/v1/snapshots", &other, json!({})).key("k-1")).await;
    assert_ne!(answer.data::<Accepted>().operation, first.operation);
}

#[tokio::test]
async fn a_second_backup_is_the_first() {
    let world = World::new().await;
    let token = world.token(0, WEB_AT).await;
    let first: Accepted = world.call(WEB_AT, Call::post("/v1/backups", &token, json!(null))).await.data();
    let second: Accepted = world.call(WEB_AT, Call::post("/v1/backups", &token, json!({}))).await.data();
    assert_eq!((second.operation, second.taken), (first.operation, Acceptance::Joined));
    assert_eq!(world.waiting().await.len(), 1);
    let back = Call::post("/v1/rollback", &token, json!({"snapshot": "none"}));
    assert_eq!(world.call(WEB_AT, back).await.code(), Some(ErrorCode::NotFound));
    world.snapshot(&token, "before").await;
    let back = Call::post("/v1/rollback", &token, json!({"snapshot": "before"}));
    let answer = world.call(WEB_AT, back).await;
    assert_eq!((answer.status, answer.code()), (StatusCode::CONFLICT, Some(ErrorCode::Locked)));
}

#[tokio::test]
async fn no_guest_asks_for_another() {
    let world = World::new().await;
    let (token, other) = (world.token(0, WEB_AT).await, world.token(1, DB_AT).await);
    let theirs: Accepted =
        world.call(DB_AT, Call::post("/v1/backups", &other, json!({"guest": DB}))).await.data();
    let before = world.written().await;
    let id = theirs.operation;
    let (operation, backup) = (format!("/v1/operations/{id}"), format!("/v1/backups/{id}"));
    for call in [
        Call::post("/v1/snapshots", &token, json!({"guest": DB})),
        Call::post("/v1/rollback", &token, json!({"guest": DB, "snapshot": "before"})),
        Call::post("/v1/backups", &token, json!({"guest": DB})),
        Call::delete(&operation, &token),
        Call { method: Method::GET, ..Call::delete(&operation, &token) },
        Call { method: Method::GET, ..Call::delete(&backup, &token) },
    ] {
        let path = format!("{} {}", call.method, call.path);
        let answer = world.call(WEB_AT, call).await;
        assert_eq!(
            (answer.status, answer.code()),
            (StatusCode::FORBIDDEN, Some(ErrorCode::NotYours)),
            "{path}"
        );
    }
    assert_eq!(world.written().await, before);
    let list: BackupsView = world.get(WEB_AT, "/v1/backups", Some(&token)).await.data();
    assert_eq!(list.backups, []);
    let list: BackupsView = world.get(DB_AT, "/v1/backups", Some(&other)).await.data();
    assert_eq!(list.backups, [BackupView { id, phase: OperationStatus::Queued, kept: None }]);
}

#[tokio::test]
async fn a_goal_is_of_the_form_or_nothing() {
    let world = World::new().await;
    let token = world.token(0, WEB_AT).await;
    let before = world.written().await;
    for (path, body, code) in [
        ("/v1/snapshots", json!({"name": "../etc"}), ErrorCode::Range),
        ("/v1/snapshots", json!({"name": "current"}), ErrorCode::Range),
        ("/v1/snapshots", json!({"keep_s": 59}), ErrorCode::Range),
        ("/v1/snapshots", json!({"keep_s": 31 * 24 * 3_600}), ErrorCode::Range),
        ("/v1/snapshots", json!({"vmstate": true}), ErrorCode::UnknownField),
        ("/v1/rollback", json!({}), ErrorCode::Missing),
        ("/v1/rollback", json!({"snapshot": "gone", "force": true}), ErrorCode::UnknownField),
        ("/v1/backups", json!({"storage": "elsewhere"}), ErrorCode::UnknownField),
        ("/v1/backups", json!({"guest": "x".repeat(17_000)}), ErrorCode::Size),
    ] {
        let answer = world.call(WEB_AT, Call::post(path, &token, body.clone())).await;
        assert_eq!(
            answer.code(),
            Some(code),
            "{path} {}",
            body.to_string().chars().take(60).collect::<String>()
        );
    }
    for path in ["/v1/snapshots/gone", "/v1/snapshots/current"] {
        assert_eq!(world.call(WEB_AT, Call::delete(path, &token)).await.code(), Some(ErrorCode::NotFound));
    }
    assert_eq!(world.written().await, before);
    assert_eq!(world.snapshot(&token, "fine").await.status, StatusCode::ACCEPTED);
}

#[tokio::test]
async fn snapshots_are_counted_and_shown() {
    let world = World::new().await;
    let token = world.token(0, WEB_AT).await;
    let raw = rusqlite::Connection::open(world._dir.path().join("agent.db")).unwrap();
    let taken_at = world.clock.now().as_microsecond();
    for (n, by) in ["guest", "guest", "agent"].iter().enumerate() {
        raw.execute(
            "INSERT INTO snapshot (guest, name, vmid, operation, taken_by, taken_at, expires_at)
             VALUES (?1, ?2, 100, ?3, ?4, ?5, ?6)",
            (WEB, format!("kept-{n}"), Uuid::now_v7().to_string(), by, taken_at, taken_at + 3_600_000_000),
        )
        .unwrap();
    }
    let list: SnapshotsView = world.get(WEB_AT, "/v1/snapshots", Some(&token)).await.data();
    let names: Vec<&str> = list.snapshots.iter().map(|snapshot| snapshot.name.as_str()).collect();
    assert_eq!(names, ["kept-0", "kept-1"], "what the agent took for itself is not the guest's");
    assert_eq!(world.snapshot(&token, "kept-0").await.code(), Some(ErrorCode::NameTaken));
    let delete = Call::delete("/v1/snapshots/kept-2", &token);
    assert_eq!(world.call(WEB_AT, delete).await.code(), Some(ErrorCode::NotFound));
    for n in 2..limits::SNAPSHOTS_PER_GUEST {
        assert_eq!(world.snapshot(&token, &format!("new-{n}")).await.status, StatusCode::ACCEPTED);
    }
    assert_eq!(world.snapshot(&token, "one-more").await.code(), Some(ErrorCode::Quota));
    let back = Call::post("/v1/rollback", &token, json!({"snapshot": "kept-1"}));
    assert_eq!(world.call(WEB_AT, back).await.status, StatusCode::ACCEPTED);
    let delete = Call::delete("/v1/snapshots/kept-1", &token);
    assert_eq!(world.call(WEB_AT, delete).await.code(), Some(ErrorCode::Locked), "the rollback needs it");
}

#[tokio::test]
async fn a_cancel_under_a_key_is_one_cancel_and_no_other_request() {
    let world = World::new().await;
    let token = world.token(0, WEB_AT).await;
    let taken: Accepted = world.snapshot(&token, "first").await.data();
    let path = format!("/v1/operations/{}", taken.operation);
    let written = world.written().await;
    let bad = world.call(WEB_AT, Call::delete(&path, &token).key("a b")).await;
    assert_eq!(bad.code(), Some(ErrorCode::Range));
    let unknown = format!("/v1/operations/{}", Uuid::now_v7());
    let no_one = world.call(WEB_AT, Call::delete(&unknown, &token).key("k-1")).await;
    assert_eq!(no_one.code(), Some(ErrorCode::NotFound));
    assert_eq!(world.written().await, written, "a refusal uses no key up");
    for _ in 0..2 {
        let view: OperationView = world.call(WEB_AT, Call::delete(&path, &token).key("k-1")).await.data();
        assert_eq!(view.status, OperationStatus::Undone);
    }
    let other = world.call(WEB_AT, Call::delete(&unknown, &token).key("k-1")).await;
    assert_eq!(other.code(), Some(ErrorCode::IdempotencyMismatch));
    let goal = Call::post("/v1/snapshots", &token, json!({"name": "second"}));
    assert_eq!(world.call(WEB_AT, goal.key("k-1")).await.code(), Some(ErrorCode::IdempotencyMismatch));
}
