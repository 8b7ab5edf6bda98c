//! Tokens and roles.

use holdfast_protocol::access::{AccessScope, Grant};
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::CorrelationId;
use holdfast_protocol::operator::{
    EventView, InviteRequest, OperatorMade, OperatorRequest, OperatorView, Page, Role, WhoAmI,
};
use hubd::clock::Clock as _;
use hubd::run::new_token;
use hubd::store::NewOperator;
use jiff::SignedDuration;
use reqwest::{Method, StatusCode};
use serde_json::Value;

use crate::world::World;

pub async fn operator(world: &World, name: &str, role: Role) -> String {
    person(world, name, role, AccessScope::Everything {}).await
}

pub async fn person(world: &World, name: &str, role: Role, scope: AccessScope) -> String {
    let token = new_token().unwrap();
    let at = world.clock.now();
    let new = NewOperator {
        name: name.parse().unwrap(),
        grant: Grant::new(role, scope).unwrap(),
        token: token.hash(),
        expires_at: at + SignedDuration::from_hours(24),
        at,
        correlation: CorrelationId::new(uuid::Uuid::nil()),
    };
    assert!(world.store.add_operator(new).await.is_ok());
    token.expose().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_says_who_it_is_until_it_ends_or_is_revoked() {
    let world = World::start().await;
    let eve = world.with_token(&operator(&world, "eve", Role::Operator).await);
    let who: WhoAmI = eve.get("/v1/whoami").await.data(StatusCode::OK);
    assert_eq!((who.name.as_str(), who.role), ("eve", Role::Operator));
    for wrong in
        [world.anyone(), world.with_token("hfo_wrong"), world.anyone().with("authorization", "Basic YTpi")]
    {
        let refused = wrong.get::<Value>("/v1/whoami").await;
        assert_eq!(refused.code(), ErrorCode::Unauthenticated);
        assert_eq!(refused.headers["www-authenticate"], "Bearer");
    }
    let nil = CorrelationId::new(uuid::Uuid::nil());
    let name = "eve".parse().unwrap();
    assert!(world.store.revoke_operator(name, world.clock.now(), nil).await.is_ok());
    assert_eq!(eve.get::<Value>("/v1/whoami").await.code(), ErrorCode::Unauthenticated);
    let ada = world.with_token(&operator(&world, "ada", Role::Operator).await);
    world.clock.advance(24 * 3600);
    assert_eq!(ada.get::<Value>("/v1/whoami").await.code(), ErrorCode::Unauthenticated);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_viewer_looks_and_changes_nothing() {
    let world = World::start().await;
    world.enrol("box7").await;
    let viewer = world.with_token(&operator(&world, "vera", Role::Viewer).await);
    for path in
        ["/v1/hosts", "/v1/hosts/box7", "/v1/hosts/box7/jobs", "/v1/enrollment-requests", "/v1/events"]
    {
        assert_eq!(viewer.get::<Value>(path).await.status, StatusCode::OK, "{path}");
    }
    let request = InviteRequest { host_name: "box8".parse().unwrap() };
    let cases = [
        viewer.send::<Value>(Method::POST, "/v1/invites", &request).await,
        viewer.send::<Value>(Method::POST, "/v1/hosts/box7/revoke", &()).await,
        viewer.put_desired::<Value>("box7", Some("\"0\""), crate::world::document(1)).await,
        viewer.send::<Value>(Method::POST, "/v1/enrollment-requests/x/refuse", &()).await,
        viewer.send::<Value>(Method::POST, "/v1/hosts/box7/jobs", &()).await,
        viewer.send::<Value>(Method::POST, "/v1/hosts/box7/jobs/x/withdraw", &()).await,
    ];
    for refused in cases {
        assert_eq!(refused.code(), ErrorCode::Forbidden);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_token_and_no_secret_is_in_the_database() {
    let world = World::start().await;
    let invite = world.invite("box7").await;
    let token = world.token();
    let (folder, _temp) = world.stop().await;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if !path.to_string_lossy().contains("hub.db") {
            continue;
        }
        let bytes = std::fs::read(&path).unwrap();
        for secret in [token.as_bytes(), invite.secret.expose().as_bytes()] {
            assert!(!bytes.windows(secret.len()).any(|window| window == secret), "{path:?}");
        }
    }
}

fn asked(name: &str, role: Role) -> OperatorRequest {
    OperatorRequest {
        name: name.parse().unwrap(),
        role,
        scope: AccessScope::Everything {},
        days: 30.try_into().unwrap(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_admins_add_and_remove_operators() {
    let world = World::start().await;
    let path = "/v1/operators";
    let made: OperatorMade =
        world.admin().send(Method::POST, path, &asked("eve", Role::Operator)).await.data(StatusCode::CREATED);
    let eve = world.with_token(made.token.expose());
    let who: WhoAmI = eve.get("/v1/whoami").await.data(StatusCode::OK);
    assert_eq!((who.name.as_str(), who.role), ("eve", Role::Operator));
    for refused in [
        eve.send::<Value>(Method::POST, path, &asked("mallory", Role::Admin)).await,
        eve.send::<Value>(Method::POST, "/v1/operators/admin/revoke", &serde_json::json!({})).await,
        eve.get::<Value>(path).await,
    ] {
        assert_eq!(refused.code(), ErrorCode::Forbidden);
    }
    // The same request by its key is the same token; another role under the name is refused.
    let keyed = world.admin().with("idempotency-key", "k-1");
    let request = asked("ada", Role::Viewer);
    let one: OperatorMade = keyed.send(Method::POST, path, &request).await.data(StatusCode::CREATED);
    let two: OperatorMade = keyed.send(Method::POST, path, &request).await.data(StatusCode::CREATED);
    assert_eq!(one.token.expose(), two.token.expose());
    let other = world.admin().send::<Value>(Method::POST, path, &asked("ada", Role::Admin)).await;
    assert_eq!(other.code(), ErrorCode::NameTaken);

    let gone: OperatorView = world
        .admin()
        .send(Method::POST, "/v1/operators/eve/revoke", &serde_json::json!({}))
        .await
        .data(StatusCode::OK);
    assert!(gone.revoked_at.is_some());
    assert_eq!(eve.get::<Value>("/v1/whoami").await.code(), ErrorCode::Unauthenticated);
    let all: Page<OperatorView> = world.admin().get(path).await.data(StatusCode::OK);
    let seen: Vec<(&str, bool)> =
        all.items.iter().map(|one| (one.name.as_str(), one.revoked_at.is_some())).collect();
    assert_eq!(seen, [("ada", false), ("admin", false), ("eve", true)]);
    let events: Page<EventView> = world.admin().get("/v1/events").await.data(StatusCode::OK);
    let by_admin = |kind: &str| {
        events.items.iter().any(|event| {
            event.kind == kind && event.actor.as_ref().is_some_and(|actor| actor.as_str() == "admin")
        })
    };
    assert!(by_admin("operator_added") && by_admin("operator_revoked"), "{:?}", events.items);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_admin_cannot_be_let_go() {
    let world = World::start().await;
    let refused =
        world.admin().send::<Value>(Method::POST, "/v1/operators/admin/revoke", &serde_json::json!({})).await;
    assert_eq!(refused.code(), ErrorCode::PreconditionFailed);
    let made: OperatorMade = world
        .admin()
        .send(Method::POST, "/v1/operators", &asked("root", Role::Admin))
        .await
        .data(StatusCode::CREATED);
    let root = world.with_token(made.token.expose());
    let gone: OperatorView = root
        .send(Method::POST, "/v1/operators/admin/revoke", &serde_json::json!({}))
        .await
        .data(StatusCode::OK);
    assert!(gone.revoked_at.is_some());
}
