//! Roles and scopes of operators, changed in place.

use holdfast_protocol::access::AccessScope;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::grant_change::GrantChanged;
use holdfast_protocol::operator::{EventView, OperatorView, Page, Role, WhoAmI};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::operators::{operator, person};
use crate::world::{Client, World};

const GRANT: &str = "/v1/operators/kim/grant";

async fn set(client: &Client, seen: &str, grant: Value) -> crate::world::Answered<GrantChanged> {
    client.with("if-match", seen).send(Method::PUT, GRANT, &grant).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_holds_at_the_next_request_and_is_bound_to_what_was_seen() {
    let world = World::start().await;
    let admin = world.admin();
    world.enrol("box7").await;
    let kim = world.with_token(&operator(&world, "kim", Role::Operator).await);
    let read = admin.get::<OperatorView>("/v1/operators/kim").await;
    let tag = read.headers["etag"].to_str().unwrap().to_owned();
    assert_eq!((read.status, tag.as_str()), (StatusCode::OK, "\"operator.of.everything\""));
    let vienna = json!({ "role": "viewer", "scope": { "kind": "hosts", "labels": { "site": "vienna" } } });
    let unbound: crate::world::Answered<Value> = admin.send(Method::PUT, GRANT, &vienna).await;
    assert_eq!(unbound.code(), ErrorCode::PreconditionRequired);
    for (seen, wanted) in [
        ("operator.of.everything", ErrorCode::Range),
        ("\"viewer.of.everything\"", ErrorCode::PreconditionFailed),
    ] {
        assert_eq!(set(&admin, seen, vienna.clone()).await.code(), wanted, "{seen}");
    }
    kim.get::<Value>("/v1/hosts/box7").await.data(StatusCode::OK);
    let done = set(&admin, &tag, vienna).await.data(StatusCode::OK);
    assert_eq!((done.operator.role, done.ended_tokens.len()), (Role::Viewer, 0));
    let who: WhoAmI = kim.get("/v1/whoami").await.data(StatusCode::OK);
    assert_eq!((who.role, who.scope.to_string().as_str()), (Role::Viewer, "hosts site=vienna"));
    assert_eq!(kim.get::<Value>("/v1/hosts/box7").await.code(), ErrorCode::NotFound);
    let invite = kim.send::<Value>(Method::POST, "/v1/invites", &json!({ "host_name": "box8" })).await;
    assert_eq!(invite.code(), ErrorCode::Forbidden);
    let events: Page<EventView> = admin.get("/v1/events").await.data(StatusCode::OK);
    let said = events.items.iter().find(|event| event.kind == "operator_changed").unwrap();
    assert_eq!(said.message, "kim is viewer of hosts site=vienna, and was operator of everything");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_admin_gives_no_more_than_their_own_and_changes_none_above() {
    let world = World::start().await;
    let vienna = || AccessScope::Hosts { labels: "site=vienna".parse().unwrap() };
    let bea = world.with_token(&person(&world, "bea", Role::Admin, vienna()).await);
    person(&world, "kim", Role::Operator, vienna()).await;
    operator(&world, "ada", Role::Operator).await;
    let tag = "\"operator.of.hosts.site=vienna\"";
    let wider = set(&bea, tag, json!({ "role": "viewer" })).await;
    assert_eq!(wider.code(), ErrorCode::Forbidden);
    let graz = json!({ "role": "viewer", "scope": { "kind": "hosts", "labels": { "site": "graz" } } });
    assert_eq!(set(&bea, tag, graz).await.code(), ErrorCode::Forbidden);
    let own = json!({ "role": "admin", "scope": { "kind": "hosts", "labels": { "site": "vienna" } } });
    assert_eq!(set(&bea, tag, own).await.data(StatusCode::OK).operator.role, Role::Admin);
    let above = bea.with("if-match", "\"operator.of.everything\"");
    let above: crate::world::Answered<Value> =
        above.send(Method::PUT, "/v1/operators/ada/grant", &json!({ "role": "viewer" })).await;
    assert_eq!(above.code(), ErrorCode::NotFound, "who stands above is not there");
    let customer = set(&world.admin(), "\"admin.of.hosts.site=vienna\"", json!({ "role": "customer" })).await;
    assert_eq!(customer.code(), ErrorCode::Range, "a customer has a customer");
}
