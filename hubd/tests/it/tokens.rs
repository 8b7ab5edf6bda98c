//! Machine tokens over HTTP, and what may be given.

use holdfast_protocol::access::AccessScope;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::machine_token::{TokenMade, TokenRequest, TokenRotation, TokenView};
use holdfast_protocol::operator::{
    EventView, OperatorMade, OperatorRequest, OperatorView, Page, Proof, Role, WhoAmI,
};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::operators::person;
use crate::world::World;

fn of_customer(name: &str) -> AccessScope {
    AccessScope::Customer { customer: name.parse().unwrap() }
}

fn of_hosts(selector: &str) -> AccessScope {
    AccessScope::Hosts { labels: selector.parse().unwrap() }
}

fn token(name: &str, role: Role, scope: AccessScope) -> TokenRequest {
    TokenRequest { name: name.parse().unwrap(), role, scope, days: 30.try_into().unwrap() }
}

fn asked(name: &str, role: Role, scope: AccessScope) -> OperatorRequest {
    OperatorRequest { name: name.parse().unwrap(), role, scope, days: 30.try_into().unwrap() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_works_until_it_is_rotated_out_or_revoked() {
    let world = World::start().await;
    let admin = world.admin();
    let request = token("ci", Role::Viewer, of_customer("acme"));
    let keyed = admin.with("idempotency-key", "t-1");
    let made: TokenMade = keyed.send(Method::POST, "/v1/tokens", &request).await.data(StatusCode::CREATED);
    let again: TokenMade = keyed.send(Method::POST, "/v1/tokens", &request).await.data(StatusCode::CREATED);
    assert_eq!(made.token.expose(), again.token.expose(), "a repeat shows the same token");
    let ci = world.with_token(made.token.expose());
    let who: WhoAmI = ci.get("/v1/whoami").await.data(StatusCode::OK);
    assert_eq!((who.name.as_str(), who.role, who.proof), ("ci", Role::Viewer, Proof::MachineToken));
    assert_eq!(who.scope, of_customer("acme"));
    let listed: Page<TokenView> = admin.get("/v1/tokens").await.data(StatusCode::OK);
    assert!(listed.items[0].used_at.is_some() && listed.items[0].maker.as_str() == "admin");
    let rotation = TokenRotation { days: 30.try_into().unwrap(), overlap_hours: 1.try_into().unwrap() };
    // A machine rotates itself, and makes nothing.
    let next: TokenMade = ci.send(Method::POST, "/v1/tokens/ci/rotate", &rotation).await.data(StatusCode::OK);
    let newer = world.with_token(next.token.expose());
    for client in [&ci, &newer] {
        client.get::<WhoAmI>("/v1/whoami").await.data(StatusCode::OK);
    }
    let other =
        newer.send::<Value>(Method::POST, "/v1/tokens", &token("x", Role::Viewer, of_customer("acme"))).await;
    assert_eq!(other.code(), ErrorCode::Forbidden);
    world.clock.advance(3_600);
    assert_eq!(ci.get::<Value>("/v1/whoami").await.code(), ErrorCode::Unauthenticated);
    newer.get::<WhoAmI>("/v1/whoami").await.data(StatusCode::OK);
    let gone: TokenView =
        admin.send(Method::POST, "/v1/tokens/ci/revoke", &json!({})).await.data(StatusCode::OK);
    assert!(gone.revoked_at.is_some());
    assert_eq!(newer.get::<Value>("/v1/whoami").await.code(), ErrorCode::Unauthenticated);
    let events: Page<EventView> = admin.get("/v1/events").await.data(StatusCode::OK);
    let by: Vec<(&str, &str)> = events
        .items
        .iter()
        .rev()
        .filter(|event| event.kind.starts_with("token_"))
        .map(|event| (event.kind.as_str(), event.actor.as_ref().unwrap().as_str()))
        .collect();
    assert_eq!(by, [("token_created", "admin"), ("token_rotated", "ci"), ("token_revoked", "admin")]);
    // Neither secret is in the database.
    let (folder, _temp) = world.stop().await;
    let bytes = std::fs::read(folder.join("hub.db")).unwrap();
    for secret in [made.token.expose(), next.token.expose()] {
        assert!(!bytes.windows(secret.len()).any(|window| window == secret.as_bytes()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_gives_no_more_than_they_have() {
    let world = World::start().await;
    let all = AccessScope::Everything {};
    let vienna = person(&world, "vienna", Role::Admin, of_hosts("site=vienna")).await;
    let vienna = world.with_token(&vienna);
    let people = |client: &crate::world::Client, request: OperatorRequest| {
        let client = client.clone();
        async move { client.send::<Value>(Method::POST, "/v1/operators", &request).await }
    };
    for (name, role, scope, wanted) in [
        ("a", Role::Admin, all.clone(), Some(ErrorCode::Forbidden)),
        ("b", Role::Viewer, all.clone(), Some(ErrorCode::Forbidden)),
        ("c", Role::Viewer, of_hosts("site=graz"), Some(ErrorCode::Forbidden)),
        ("d", Role::Customer, of_customer("acme"), Some(ErrorCode::Forbidden)),
        ("e", Role::Customer, all.clone(), Some(ErrorCode::Range)),
        ("f", Role::Admin, of_hosts("site=vienna+tier=prod"), None),
        ("g", Role::Viewer, of_hosts("site=vienna"), None),
    ] {
        let answer = people(&vienna, asked(name, role, scope)).await;
        match wanted {
            Some(code) => assert_eq!(answer.code(), code, "{name}"),
            None => assert_eq!(answer.status, StatusCode::CREATED, "{name}"),
        }
    }
    // They see those below them, and not the first admin.
    let seen: Page<OperatorView> = vienna.get("/v1/operators").await.data(StatusCode::OK);
    let names: Vec<&str> = seen.items.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["f", "g", "vienna"]);
    for (name, wanted) in
        [("admin", Some(ErrorCode::NotFound)), ("nobody", Some(ErrorCode::NotFound)), ("g", None)]
    {
        let path = format!("/v1/operators/{name}/revoke");
        let answer = vienna.send::<Value>(Method::POST, &path, &json!({})).await;
        match wanted {
            Some(code) => assert_eq!(answer.code(), code, "{name}"),
            None => assert_eq!(answer.status, StatusCode::OK, "{name}"),
        }
    }
    // A viewer's token is at most a viewer's, and another's token is not there for them.
    let vera = world.with_token(&person(&world, "vera", Role::Viewer, all.clone()).await);
    let refused =
        vera.send::<Value>(Method::POST, "/v1/tokens", &token("up", Role::Operator, all.clone())).await;
    assert_eq!(refused.code(), ErrorCode::Forbidden);
    let made: TokenMade = vera
        .send(Method::POST, "/v1/tokens", &token("vera-ci", Role::Viewer, all.clone()))
        .await
        .data(StatusCode::CREATED);
    let oscar = world.with_token(&person(&world, "oscar", Role::Operator, all).await);
    let hidden = oscar.send::<Value>(Method::POST, "/v1/tokens/vera-ci/revoke", &json!({})).await;
    assert_eq!(hidden.code(), ErrorCode::NotFound);
    let none: Page<TokenView> = oscar.get("/v1/tokens").await.data(StatusCode::OK);
    assert!(none.items.is_empty());
    // With its maker a token ends.
    let ci = world.with_token(made.token.expose());
    ci.get::<WhoAmI>("/v1/whoami").await.data(StatusCode::OK);
    world
        .admin()
        .send::<OperatorView>(Method::POST, "/v1/operators/vera/revoke", &json!({}))
        .await
        .data(StatusCode::OK);
    assert_eq!(ci.get::<Value>("/v1/whoami").await.code(), ErrorCode::Unauthenticated);
    let made: OperatorMade = world
        .admin()
        .send(Method::POST, "/v1/operators", &asked("ann", Role::Customer, of_customer("acme")))
        .await
        .data(StatusCode::CREATED);
    let who: WhoAmI = world.with_token(made.token.expose()).get("/v1/whoami").await.data(StatusCode::OK);
    assert_eq!((who.role, who.scope, who.proof), (Role::Customer, of_customer("acme"), Proof::PersonToken));
}
