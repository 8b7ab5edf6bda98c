//! Silences by operators of a narrower scope.

use holdfast_protocol::access::AccessScope;
use holdfast_protocol::alert::SilenceView;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::operator::{Page, Role};
use hubd::clock::Clock as _;
use jiff::SignedDuration;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::operators::person;
use crate::world::{Client, World};

async fn silence(client: &Client, world: &World, matchers: &[&str]) -> crate::world::Answered<SilenceView> {
    let until = world.clock.now() + SignedDuration::from_hours(2);
    let request = json!({ "matchers": matchers, "until": until, "comment": "a new disk comes" });
    client.send(Method::POST, "/v1/silences", &request).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_of_some_hosts_silences_these_and_sees_no_others() {
    let world = World::start().await;
    let admin = world.admin();
    for (name, site) in [("box1", "vienna"), ("box2", "graz")] {
        world.enrol(name).await;
        let change = json!({ "set": { "site": site } });
        let path = format!("/v1/hosts/{name}/labels");
        admin.send::<Value>(Method::POST, &path, &change).await.data(StatusCode::OK);
    }
    let scope = AccessScope::Hosts { labels: "site=vienna".parse().unwrap() };
    let vera = world.with_token(&person(&world, "vera", Role::Operator, scope).await);
    let other = silence(&admin, &world, &["host=box2"]).await.data(StatusCode::CREATED);
    for beyond in
        [&["host=box2"][..], &["code=GUEST_BROKEN"], &["host!=box2", "severity=critical"], &["host=box9"]]
    {
        let refused = silence(&vera, &world, beyond).await;
        assert_eq!(refused.code(), ErrorCode::Forbidden, "{beyond:?}");
        let says = refused.envelope.error.unwrap().message;
        assert!(says.contains("nothing was silenced: add the matcher host=NAME"), "{says}");
    }
    let own = silence(&vera, &world, &["host=box1", "code=GUEST_BROKEN"]).await.data(StatusCode::CREATED);
    let seen: Page<SilenceView> = vera.get("/v1/silences").await.data(StatusCode::OK);
    assert_eq!(seen.items.iter().map(|one| one.id).collect::<Vec<_>>(), [own.id]);
    let end = |id| format!("/v1/silences/{id}/end");
    let hidden = vera.send::<Value>(Method::POST, &end(other.id), &json!({})).await;
    assert_eq!(hidden.code(), ErrorCode::NotFound);
    vera.send::<Value>(Method::POST, &end(own.id), &json!({})).await.data(StatusCode::OK);
    let left: Page<SilenceView> = admin.get("/v1/silences").await.data(StatusCode::OK);
    assert_eq!(left.items.len(), 1, "the other one is as it was");
    let customer = AccessScope::Customer { customer: "acme".parse().unwrap() };
    let oda = world.with_token(&person(&world, "oda", Role::Operator, customer).await);
    assert_eq!(silence(&oda, &world, &["customer=beta"]).await.code(), ErrorCode::Forbidden);
    silence(&oda, &world, &["customer=acme"]).await.data(StatusCode::CREATED);
}
