//! Tests of the audit of one guest.

use holdfast_protocol::local::audit::AuditPage;

use super::*;

impl World {
    async fn records(&self, from: [u8; 4], token: &str, query: &str) -> AuditPage {
        self.get(from, &format!("/v1/audit{query}"), Some(token)).await.data()
    }
}

#[tokio::test]
async fn two_guests_read_their_own_records_and_never_the_others() {
    let world = World::new().await;
    let (web, db) = (world.token(0, WEB_AT).await, world.token(1, DB_AT).await);
    // Both at work, alternately, so that the chain runs through both.
    for round in 0..5 {
        for (from, token) in [(WEB_AT, &web), (DB_AT, &db)] {
            let goal = json!({"name": format!("round-{round}")}).to_string();
            let request = Request::post("/v1/snapshots").header("authorization", format!("Bearer {token}"));
            let answer = world.send(from, request.body(Body::from(goal)).unwrap()).await;
            assert!(matches!(
                answer.status,
                StatusCode::ACCEPTED | StatusCode::CONFLICT | StatusCode::SERVICE_UNAVAILABLE
            ));
        }
    }
    let all = world.store.audit(u32::MAX).await.unwrap();
    let (chain_length, mut reported) = (all.len() as u64, 0);
    for (uid, from, token) in [(WEB, WEB_AT, &web), (DB, DB_AT, &db)] {
        let page = world.records(from, token, "").await;
        let own: Vec<i64> =
            all.iter().filter(|line| line.guest.as_deref() == Some(uid)).map(|line| line.number).collect();
        assert!(own.len() > 3, "{own:?}");
        assert_eq!(page.records.iter().map(|record| record.line.number).collect::<Vec<_>>(), own);
        for record in &page.records {
            assert_eq!(record.line.guest.as_deref(), Some(uid));
            assert!(record.holds(), "{record:?}");
        }
        assert_eq!((page.head.number, page.next), (chain_length, None));
        reported += page.records.len();
    }
    assert!(reported < all.len(), "lines about nobody are nobody's to read here");
    // Nothing in the request can name another guest.
    for query in [format!("?guest={DB}"), format!("?after=0&uid={DB}"), "?all=true".to_owned()] {
        let answer = world.get(WEB_AT, &format!("/v1/audit{query}"), Some(&web)).await;
        assert_eq!(answer.code(), Some(ErrorCode::Range), "{query}");
    }
    let other = world.get(WEB_AT, &format!("/v1/audit/{DB}"), Some(&web)).await;
    assert_eq!(other.code(), Some(ErrorCode::NotFound));
}

#[tokio::test]
async fn pages_are_bounded_and_fit_together() {
    let world = World::new().await;
    let token = world.token(0, WEB_AT).await;
    for _ in 0..12 {
        let now = world.clock.now();
        world.store.freeze_holders(WEB.parse().unwrap(), "seen ".repeat(20), now).await.unwrap();
        world.store.thaw(WEB.parse().unwrap(), "yes".to_owned(), now).await.unwrap();
    }
    let whole = world.records(WEB_AT, &token, "?limit=100").await;
    assert!(whole.records.len() >= 24 && whole.next.is_none(), "{}", whole.records.len());
    let (mut after, mut pieces) = (0, Vec::new());
    loop {
        let page = world.records(WEB_AT, &token, &format!("?after={after}&limit=7")).await;
        assert!(page.records.len() <= 7 && !page.records.is_empty());
        pieces.extend(page.records);
        match page.next {
            Some(next) => after = next,
            None => break,
        }
    }
    assert_eq!(pieces, whole.records);
    let beyond = world.records(WEB_AT, &token, &format!("?after={}", i64::MAX)).await;
    assert!(beyond.records.is_empty() && beyond.next.is_none() && beyond.head == whole.head);
    for query in [
        "?limit=0",
        "?limit=101",
        "?limit=-1",
        "?after=-1",
        "?after=x",
        "?after=9223372036854775808",
        "?limit=",
    ] {
        let answer = world.get(WEB_AT, &format!("/v1/audit{query}"), Some(&token)).await;
        assert_eq!(answer.code(), Some(ErrorCode::Range), "{query}");
    }
}

#[tokio::test]
async fn a_page_of_long_records_ends_early() {
    let world = World::new().await;
    let token = world.token(0, WEB_AT).await;
    for round in 0..40 {
        let now = world.clock.now();
        world
            .store
            .freeze_holders(WEB.parse().unwrap(), format!("{round} {}", "x".repeat(4_000)), now)
            .await
            .unwrap();
        world.store.thaw(WEB.parse().unwrap(), "y".to_owned(), now).await.unwrap();
    }
    let answer = world.get(WEB_AT, "/v1/audit", Some(&token)).await;
    assert!(answer.body.len() < 64 * 1024, "{}", answer.body.len());
    let page: AuditPage = answer.data();
    assert!(page.next == page.records.last().map(|record| record.line.number) && page.records.len() < 40);
}
