//! Tests of the growth ledger over restarts and refusals.

use holdfast_protocol::id::JobId;

use super::*;
use crate::journal::OpenOperationError;
use crate::tests::{at, new_operation, open, operation_id, provision, uid};

fn growth(disk_gib: u64, passed: Passed) -> Growth {
    let amount = Amount { cores: 1, memory_mib: 256, swap_mib: 0, disk_gib, guests: 1, volumes: 0 };
    Growth { part: growth::Part::Guest, amount, passed, at: at(0), disks: Vec::new() }
}

fn amounts(growths: &Growths) -> Vec<(Passed, u64, UnderWay)> {
    growths.ledger.iter().map(|one| (one.passed, one.amount.disk_gib, one.under_way)).collect()
}

#[tokio::test]
async fn growth_is_counted_once_with_its_operation_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    store.open_growing(new_operation(1, provision(1)), growth(2, Passed::Budget)).await.unwrap();
    // The guest is busy: neither operation nor growth.
    let refused = store.open_growing(new_operation(2, provision(1)), growth(40, Passed::Budget)).await;
    assert!(matches!(refused, Err(OpenOperationError::Busy(_))));
    // The same operation once more, as after an answer that was lost.
    store.open_growing(new_operation(1, provision(1)), growth(2, Passed::Budget)).await.unwrap_err();
    drop(store);
    let store = open(folder.path()).await;
    let counted = store.growth(at(10)).await.unwrap();
    assert_eq!(amounts(&counted), [(Passed::Budget, 2, UnderWay::Yes)]);
    assert_eq!((counted.ledger[0].guest, counted.ledger[0].at), (uid(1), at(0)));
    // Independent of the wall clock: a row expires by the time of later rows.
    assert_eq!(store.growth(at(99 * 24 * 3_600)).await.unwrap().ledger.len(), 1);
    for (n, hours, rows) in [(3, 47, 2), (4, 49, 2)] {
        let later = Growth { at: at(hours * 3_600), ..growth(1, Passed::Budget) };
        store.open_growing(new_operation(n, provision(n)), later).await.unwrap();
        assert_eq!(store.growth(at(0)).await.unwrap().ledger.len(), rows, "{hours} hours");
    }
}

#[tokio::test]
async fn a_guest_that_was_taken_back_does_not_count_and_a_disk_that_may_have_grown_does() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    let parts = [
        (1, "done", growth::Part::Guest),
        (2, "undone", growth::Part::Guest),
        (3, "parked", growth::Part::Guest),
        (4, "undone", growth::Part::Rootfs),
    ];
    for (n, outcome, part) in parts {
        let growth = Growth { part, ..growth(n.into(), Passed::Budget) };
        store.open_growing(new_operation(n, provision(n)), growth).await.unwrap();
        let id = operation_id(n).to_string();
        let end = move |transaction: &Transaction<'_>| {
            transaction
                .execute(
                    "UPDATE operation SET outcome = ?2, ended_at = opened_at WHERE id = ?1",
                    (id, outcome),
                )
                .map(|_| ())
                .map_err(StoreError::sqlite("end an operation"))
        };
        store.write(Part::Operations, "end an operation", end).await.unwrap();
    }
    let counted = amounts(&store.growth(at(1)).await.unwrap());
    assert_eq!(counted, [1, 3, 4].map(|gib| (Passed::Budget, gib, UnderWay::No)));
}

#[tokio::test]
async fn rows_are_forgotten_and_a_signature_is_used_up_by_its_part() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    let job = JobId::new(uuid::Uuid::from_u128(70));
    let permit = move |transaction: &Transaction<'_>| {
        let intended = r#"{"cores":1,"memory_mib":256,"swap_mib":0,"rootfs_gib":2,"volumes_gib":{}}"#;
        transaction
            .execute(
                "INSERT INTO growth_permit (job, guest, name, seen, requested, expires_at) VALUES (?1, ?2, 'web-1', NULL, ?3, ?4)",
                (job.to_string(), uid(1).to_string(), intended, micros(at(100_000))),
            )
            .map(|_| ())
            .map_err(StoreError::sqlite("permit"))
    };
    store.write(Part::Jobs, "permit", permit).await.unwrap();
    let found = store.growth(at(0)).await.unwrap().permits;
    assert!(found.len() == 1 && found[0].used.is_empty() && found[0].from.is_none(), "{found:?}");
    store.open_growing(new_operation(1, provision(1)), growth(2, Passed::Signed(job))).await.unwrap();
    // Used up for as long as the job lives.
    let later = store.growth(at(90_000)).await.unwrap();
    assert_eq!(later.permits.len(), 1);
    assert_eq!(later.permits[0].used.iter().collect::<Vec<_>>(), [&growth::Part::Guest]);
    assert!(store.growth(at(100_000)).await.unwrap().permits.is_empty(), "the job is over");
    let late = Growth { at: at(3 * 24 * 3_600), ..growth(1, Passed::Recovery) };
    store.open_growing(new_operation(2, provision(2)), late).await.unwrap();
    let rows: i64 = store
        .read(|connection| {
            let count = connection.query_row("SELECT count(*) FROM growth", [], |row| row.get(0));
            count.map_err(StoreError::sqlite("count"))
        })
        .await
        .unwrap();
    assert_eq!(rows, 1);
}
