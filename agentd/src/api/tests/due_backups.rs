//! Tests of due backups.

use holdfast_protocol::local::due_backups::DueView;
use holdfast_protocol::protection::{Consistency, Tier};

use super::*;
use crate::plan::protect::Raise;

async fn promise(world: &World, guest: &str) {
    let schedule = json!({ "at": ["02:30"], "zone": "UTC", "jitter_min": 0, "window_min": 120 });
    let local = json!({ "target": "backup2", "schedule": schedule, "retention": { "keep": { "last": 3 } },
        "consistency": "application" });
    let to = serde_json::from_value(json!({ "tiers": { "local": local }, "volumes": [] })).unwrap();
    let raise = Raise { guest: guest.parse().unwrap(), from: None, to, what: "a test's".to_owned() };
    world.store.raise_protection(raise, world.clock.now()).await.unwrap();
}

#[tokio::test]
async fn a_guest_is_reported_what_is_due_to_it_and_not_while_it_is_taken() {
    let world = World::new().await;
    let (web, db) = (world.token(0, WEB_AT).await, world.token(1, DB_AT).await);
    let reported =
        async |at, token: &str| world.get(at, "/v1/backups/due", Some(token)).await.data::<DueView>();
    assert_eq!(reported(WEB_AT, &web).await, DueView::default(), "nothing is promised");
    promise(&world, WEB).await;
    let before = reported(WEB_AT, &web).await;
    assert_eq!((before.due.len(), before.next_at), (0, Some("2026-11-22T02:30:00Z".parse().unwrap())));
    assert_eq!(reported(DB_AT, &db).await, DueView::default(), "another guest's promise is not its own");

    world.pass(14 * 3_600 + 40 * 60);
    let due = reported(WEB_AT, &web).await.due;
    assert_eq!(due.len(), 1);
    let one = &due[0];
    assert_eq!((one.tier, one.consistency, &one.policy), (Tier::Local, Consistency::Application, &None));
    assert_eq!(one.since, "2026-11-22T02:30:00Z".parse().unwrap());
    // A backup that is requested already is not due once more.
    let ask = Request::post("/v1/backups").header("authorization", format!("Bearer {web}"));
    // A caller that waits for a change learns of it. A plain read that is sent besides it and has ended came after its
    // first read.
    let wait = world.get(WEB_AT, "/v1/backups/due?wait=55s", Some(&web));
    let asked = async {
        assert_eq!(reported(WEB_AT, &web).await.due.len(), 1);
        world.send(WEB_AT, ask.body(Body::empty()).unwrap()).await
    };
    let both = async { tokio::join!(wait, asked) };
    let (waited, asked) =
        tokio::time::timeout(Duration::from_secs(30), both).await.expect("woken by the request");
    assert_eq!(asked.status, StatusCode::ACCEPTED);
    assert_eq!(waited.data::<DueView>().due, []);
    assert_eq!(reported(WEB_AT, &web).await.due, []);
    assert_eq!(world.get(WEB_AT, "/v1/backups/due", None).await.code(), Some(ErrorCode::Unauthenticated));
    assert_eq!(
        world.get(DB_AT, "/v1/backups/due", Some(&web)).await.code(),
        Some(ErrorCode::Unauthenticated)
    );
}
