//! Desired documents: compare-and-set, the law of generations, history.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::operator::{DesiredVersion, Page};
use reqwest::StatusCode;
use serde_json::Value;

use crate::world::{World, document};

#[tokio::test(flavor = "multi_thread")]
async fn a_document_is_put_over_the_one_that_was_seen() {
    let world = World::start().await;
    world.enrol("box7").await;
    let admin = world.admin();
    assert_eq!(admin.get::<Value>("/v1/hosts/box7/desired").await.code(), ErrorCode::NotFound);
    let bare = admin.put_desired::<Value>("box7", None, document(1)).await;
    assert_eq!(bare.code(), ErrorCode::PreconditionRequired);
    let first = admin.put_desired::<DesiredVersion>("box7", Some("\"0\""), document(1)).await;
    assert_eq!(first.headers["etag"], "\"1\"");
    let first = first.data(StatusCode::OK);
    assert_eq!((first.author.as_str(), first.document), ("admin", document(1)));
    let stale = admin.put_desired::<Value>("box7", Some("\"0\""), document(2)).await;
    assert_eq!(stale.code(), ErrorCode::PreconditionFailed);
    assert_eq!(stale.envelope.error.unwrap().details["current"], "1");
    let read = admin.get::<DesiredVersion>("/v1/hosts/box7/desired").await;
    assert_eq!(read.headers["etag"], "\"1\"");
    assert_eq!(read.data(StatusCode::OK).generation.number(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_law_of_generations_holds_and_a_refusal_changes_nothing() {
    let world = World::start().await;
    world.enrol("box7").await;
    let admin = world.admin();
    admin.put_desired::<DesiredVersion>("box7", Some("\"0\""), document(5)).await.data(StatusCode::OK);
    let other = document(5).replace("30", "31");
    let cases = [
        (document(4), ErrorCode::StaleGeneration),
        (other, ErrorCode::GenerationConflict),
        (document(5000), ErrorCode::GenerationJump),
        (document(6).replace("guests", "gests"), ErrorCode::UnknownField),
        (document(6).replace("30", "0"), ErrorCode::Range),
        (document(6).replace("/v1", "/v9"), ErrorCode::Version),
        ("{".to_owned(), ErrorCode::Syntax),
    ];
    for (text, code) in cases {
        let refused = admin.put_desired::<Value>("box7", Some("\"5\""), text.clone()).await;
        assert_eq!(refused.code(), code, "{text}");
    }
    // The same document again is no change, however it is spaced.
    let same = admin.put_desired::<DesiredVersion>("box7", Some("\"5\""), document(5).replace(':', ": "));
    assert_eq!(same.await.data(StatusCode::OK).document, document(5));
    let page: Page<DesiredVersion> = admin.get("/v1/hosts/box7/desired/history").await.data(StatusCode::OK);
    assert_eq!(page.items.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_who_saw_the_same_one_writes() {
    let world = World::start().await;
    world.enrol("box7").await;
    let mut writers = tokio::task::JoinSet::new();
    for poll in 10..30 {
        let (admin, text) = (world.admin(), document(1).replace("30", &poll.to_string()));
        writers.spawn(async move { admin.put_desired::<Value>("box7", Some("\"0\""), text).await.status });
    }
    let mut statuses = writers.join_all().await;
    statuses.sort_unstable();
    assert_eq!(statuses[0], StatusCode::OK);
    assert!(statuses[1..].iter().all(|status| *status == StatusCode::PRECONDITION_FAILED), "{statuses:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn history_pages_backwards_with_who_and_why() {
    let world = World::start().await;
    world.enrol("box7").await;
    let admin = world.admin();
    for generation in 1..=5_u64 {
        let seen = format!("\"{}\"", generation - 1);
        admin
            .put_desired::<DesiredVersion>("box7", Some(&seen), document(generation))
            .await
            .data(StatusCode::OK);
    }
    let (mut seen, mut cursor) = (Vec::new(), None::<String>);
    loop {
        let cursor_part = cursor.map(|cursor| format!("&cursor={cursor}")).unwrap_or_default();
        let path = format!("/v1/hosts/box7/desired/history?limit=2{cursor_part}");
        let page: Page<DesiredVersion> = admin.get(&path).await.data(StatusCode::OK);
        assert!(page.items.iter().all(|version| version.reason.as_str().starts_with("because")));
        seen.extend(page.items.iter().map(|version| version.generation.number()));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(seen, [5, 4, 3, 2, 1]);
    for bad in ["limit=0", "limit=9999", "cursor=!!", "cursor=YWJj", "what=1"] {
        let answer = admin.get::<Value>(&format!("/v1/hosts/box7/desired/history?{bad}")).await;
        assert_eq!(answer.code(), ErrorCode::Range, "{bad}");
    }
}
