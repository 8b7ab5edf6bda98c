//! One effect per key, over repeats, races and restarts.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::operator::{DesiredVersion, InviteCreated, InviteRequest};
use reqwest::{Method, StatusCode};
use serde_json::Value;

use crate::world::{World, document};

fn request(name: &str) -> InviteRequest {
    InviteRequest { host_name: name.parse().unwrap() }
}

#[tokio::test(flavor = "multi_thread")]
async fn same_key_same_body_same_answer_and_one_effect() {
    let world = World::start().await;
    let keyed = world.admin().with("idempotency-key", "k-1");
    let mut tries = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let keyed = keyed.clone();
        tries.spawn(async move {
            keyed.send::<InviteCreated>(Method::POST, "/v1/invites", &request("box7")).await
        });
    }
    let mut codes: Vec<String> = tries
        .join_all()
        .await
        .into_iter()
        .map(|answer| answer.data(StatusCode::CREATED).code.expose().to_owned())
        .collect();
    codes.dedup();
    assert_eq!(codes.len(), 1);
    let made = world.event_kinds().await.into_iter().filter(|kind| kind == "invite_created").count();
    assert_eq!(made, 1);
    let other = keyed.send::<Value>(Method::POST, "/v1/invites", &request("box8")).await;
    assert_eq!(other.code(), ErrorCode::IdempotencyMismatch);
    let elsewhere = keyed.send::<Value>(Method::POST, "/v1/hosts/box7/revoke", &request("box7")).await;
    assert_eq!(elsewhere.code(), ErrorCode::IdempotencyMismatch);
    let bad = world.admin().with("idempotency-key", "not a key");
    assert_eq!(
        bad.send::<Value>(Method::POST, "/v1/invites", &request("box7")).await.code(),
        ErrorCode::Range
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_is_not_kept_and_a_repeat_after_more_changes_gives_the_first_answer() {
    let world = World::start().await;
    world.enrol("box7").await;
    let keyed = world.admin().with("idempotency-key", "k-1");
    let stale = keyed.put_desired::<Value>("box7", Some("\"4\""), document(1)).await;
    assert_eq!(stale.code(), ErrorCode::PreconditionFailed);
    let put = keyed.put_desired::<DesiredVersion>("box7", Some("\"0\""), document(1)).await;
    let put = put.data(StatusCode::OK);
    let admin = world.admin();
    admin.put_desired::<DesiredVersion>("box7", Some("\"1\""), document(2)).await.data(StatusCode::OK);
    let again = keyed.put_desired::<DesiredVersion>("box7", Some("\"0\""), document(1)).await;
    assert_eq!(again.data(StatusCode::OK), put);
    let now = admin.get::<DesiredVersion>("/v1/hosts/box7/desired").await.data(StatusCode::OK);
    assert_eq!(now.generation.number(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_answer_outlives_a_restart() {
    let world = World::start().await;
    let key = "k-1";
    let send = |world: &World| {
        let keyed = world.admin().with("idempotency-key", key);
        async move { keyed.send::<InviteCreated>(Method::POST, "/v1/invites", &request("box7")).await }
    };
    let first = send(&world).await.data(StatusCode::CREATED);
    let (folder, _temp) = world.stop().await;
    let world = World::in_folder(folder, None).await;
    let again = send(&world).await.data(StatusCode::CREATED);
    assert_eq!(first.invite, again.invite);
}
