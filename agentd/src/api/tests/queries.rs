//! Tests of calls with a query, and of HEAD.

use super::*;

#[tokio::test]
async fn only_calls_that_describe_a_query_take_one() {
    let world = World::new().await;
    let token = world.token(0, WEB_AT).await;
    let taken = world.get(WEB_AT, "/v1/audit?after=0", Some(&token)).await;
    assert_eq!(taken.status, StatusCode::OK);
    let refused = world.get(WEB_AT, "/v1/self?after=0", Some(&token)).await;
    assert_eq!(refused.code(), Some(ErrorCode::Range), "no call of its path takes one");
    // Read, the same path takes one.
    let request = Request::post("/v1/snapshots?wait=1s")
        .header("authorization", format!("Bearer {token}"))
        .header("idempotency-key", "one");
    let written = world.send(WEB_AT, request.body(Body::from("{}")).unwrap()).await;
    assert_eq!(written.code(), Some(ErrorCode::Range), "{:?}", written.status);
    let why: serde_json::Value = serde_json::from_slice(&written.body).unwrap();
    assert_eq!(why["error"]["message"], refused_message(&refused));
}

fn refused_message(answer: &Answer) -> serde_json::Value {
    let body: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
    body["error"]["message"].clone()
}

#[tokio::test]
async fn head_is_refused_and_says_whether_there_is_such_a_call() {
    let world = World::new().await;
    let token = world.token(0, WEB_AT).await;
    for (path, status) in
        [("/v1/self", StatusCode::METHOD_NOT_ALLOWED), ("/v1/nothing", StatusCode::NOT_FOUND)]
    {
        let request = Request::head(path).header("authorization", format!("Bearer {token}"));
        let answer = world.send(WEB_AT, request.body(Body::empty()).unwrap()).await;
        // An answer to HEAD has no body.
        assert_eq!(answer.status, status, "{path}");
    }
}
