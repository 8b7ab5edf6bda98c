//! Tests that endless requests are refused and cost little.

use uuid::Uuid;

use super::*;
use crate::tests::{at, open, uid};
use crate::{Store, compact::Upkeep};
use holdfast_protocol::id::OperationId;

fn ask(n: u32, guest: u8, second: i64, ask: Ask) -> NewRequest {
    let id = OperationId::new(Uuid::from_u128(5_000_000 + u128::from(n)));
    NewRequest { id, guest: uid(guest), ask, key: None, correlation: None, at: at(second) }
}

fn snapshot(n: u32) -> Ask {
    Ask::Snapshot { name: format!("s-{n}").parse().unwrap(), keep_s: None }
}

/// Makes a request and cancels it at once, which keeps the lane free for more.
async fn once(store: &Store, n: u32, guest: u8, second: i64) -> Result<(), AskError> {
    let new = ask(n, guest, second, snapshot(n));
    let id = new.id;
    store.ask(new).await?;
    store.cancel_request(uid(guest), id, None, at(second)).await?;
    Ok(())
}

#[tokio::test]
async fn a_kind_of_work_is_asked_for_so_often_a_day_whatever_becomes_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    let most = limits::asked_per_day(OperationKind::Snapshot);
    for n in 0..most {
        once(&store, n, 1, i64::from(n)).await.unwrap();
    }
    let spent = once(&store, most, 1, 100).await.unwrap_err();
    assert!(matches!(spent, AskError::Daily(OperationKind::Snapshot)), "{spent}");
    assert_eq!(
        spent.to_string(),
        format!("a guest may ask for snapshot {most} times a day: ask again later")
    );
    // Another kind, and another guest, have their own.
    store.ask(ask(900, 1, 100, Ask::Backup { tier: None })).await.unwrap();
    once(&store, 901, 2, 100).await.unwrap();
    // Refused ones did not count: a day and an hour later all of it is over.
    let next_day = 25 * HOUR_S;
    once(&store, 902, 1, next_day).await.unwrap();
    let left =
        store.read(move |connection| within_a_day(connection, uid(1), OperationKind::Snapshot, at(next_day)));
    assert_eq!(left.await.unwrap(), 1);
    // A clock that was ahead for a while locks no guest out once it is right again.
    for n in 0..most {
        once(&store, 2_000 + n, 1, 400 * 24 * HOUR_S).await.unwrap();
    }
    once(&store, 3_000, 1, next_day).await.unwrap();
    // At most a row an hour, and none that is over.
    let rows: i64 = store
        .read(|connection| {
            let count = connection.query_row("SELECT count(*) FROM asked", [], |row| row.get(0));
            count.map_err(StoreError::sqlite("count"))
        })
        .await
        .unwrap();
    assert!(rows <= 4, "{rows}");
}

/// A whole day of everything that a guest may request, each request cancelled as soon as it was written. The remaining
/// records are bounded, and after a week and two months they are nearly gone.
#[tokio::test]
async fn a_day_of_goals_leaves_little() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    let before = store.measure().await.unwrap();
    let mut asked = 0;
    for day in 0..3 {
        for n in 0..200 {
            let second = day * 24 * HOUR_S + i64::from(n) * 400;
            asked += u32::from(once(&store, day as u32 * 1_000 + n, 1, second).await.is_ok());
        }
    }
    assert!((3 * 48..=4 * 48).contains(&asked), "{asked}");
    let grown = store.measure().await.unwrap() - before;
    assert!(grown < 512 * 1024, "{grown}");
    while store.file_audit(at(100 * 24 * HOUR_S)).await.unwrap() == Upkeep::More {}
    store.verify_audit().await.unwrap();
}
