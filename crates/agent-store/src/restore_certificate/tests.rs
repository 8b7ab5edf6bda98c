//! Tests of which certificates are due, kept and sent.

use holdfast_protocol::restore_certificate::{DocumentText, SignatureText, SignedSchema};

use super::*;
use crate::tests::{at, open, uid};

fn test(number: u128) -> OperationId {
    OperationId::new(uuid::Uuid::from_u128(2_000 + number))
}

fn record(guest: u8, number: u128, document: &str) -> CertificateRecord {
    let signed = SignedCertificate {
        schema: SignedSchema::V1,
        document: DocumentText::try_from(document.to_owned()).unwrap(),
        host_signature: SignatureText::try_from("s".repeat(64)).unwrap(),
        hub: None,
    };
    CertificateRecord { guest: uid(guest), test: test(number), signed }
}

async fn due_tests(store: &Store, now: Timestamp) -> Vec<OperationId> {
    let due = store.certificates_due(now).await.unwrap();
    due.into_iter().map(|tested| tested.test.operation).collect()
}

#[tokio::test]
async fn a_test_is_certified_once_and_a_later_one_replaces_it() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    for (guest, number, second) in [(1, 1, 10), (1, 2, 20), (2, 3, 15)] {
        insert_proved_for_tests(folder.path(), (guest, number), at(second)).unwrap();
    }
    assert_eq!(due_tests(&store, at(30)).await, [test(3), test(2)], "the newest of each guest");
    store.keep_certificate(record(1, 2, "{\"a\":1}"), at(20), at(30)).await.unwrap();
    assert_eq!(due_tests(&store, at(30)).await, [test(3)]);

    // A second one of the same test, and one of an earlier test, change nothing, and the audit says nothing of them.
    for again in [record(1, 2, "{\"a\":2}"), record(1, 1, "{\"a\":3}")] {
        let tested_at = if again.test == test(2) { at(20) } else { at(10) };
        store.keep_certificate(again, tested_at, at(31)).await.unwrap();
    }
    assert_eq!(store.undelivered_certificates().await.unwrap(), [record(1, 2, "{\"a\":1}")]);
    let issued = |lines: Vec<audit::AuditLine>| {
        lines.into_iter().filter(|line| line.action == "restore_certificate_issued").count()
    };
    assert_eq!(issued(store.audit(100).await.unwrap()), 1);

    store.certificates_delivered([test(2)].into(), at(32)).await.unwrap();
    assert_eq!(store.undelivered_certificates().await.unwrap(), []);
    insert_proved_for_tests(folder.path(), (1, 4), at(40)).unwrap();
    assert_eq!(due_tests(&store, at(50)).await, [test(3), test(4)]);
    store.keep_certificate(record(1, 4, "{\"a\":4}"), at(40), at(50)).await.unwrap();
    assert_eq!(store.undelivered_certificates().await.unwrap(), [record(1, 4, "{\"a\":4}")]);
}

/// A hub that was restored from an older backup does not say so.
#[tokio::test]
async fn a_delivered_certificate_is_sent_again_after_a_day_while_its_guest_is_here() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    let day = 86_400;
    for (guest, number) in [(1, 1), (2, 2)] {
        insert_proved_for_tests(folder.path(), (guest, number), at(10)).unwrap();
        store.keep_certificate(record(guest, number.into(), "{}"), at(10), at(20)).await.unwrap();
    }
    let repeated = async |second: i64| {
        let found = store.certificates_to_repeat(at(second)).await.unwrap();
        found.into_iter().map(|one| one.test).collect::<Vec<_>>()
    };
    assert_eq!(repeated(2 * day).await, [], "these were never delivered");
    store.certificates_delivered([test(1)].into(), at(30)).await.unwrap();
    store.certificates_delivered([test(2)].into(), at(40)).await.unwrap();
    assert_eq!(repeated(30 + day).await, []);
    assert_eq!(repeated(31 + day).await, [test(1)]);
    assert_eq!(repeated(2 * day).await, [test(1), test(2)]);
    assert_eq!(repeated(20).await, [test(1), test(2)], "the clock was ahead when they were delivered");
    store.certificates_delivered([test(1)].into(), at(2 * day)).await.unwrap();
    assert_eq!(repeated(2 * day).await, [test(2)]);
    let connection = Connection::open(folder.path().join("agent.db")).unwrap();
    connection.execute("PRAGMA foreign_keys = OFF", []).unwrap();
    connection.execute("DELETE FROM guest WHERE uid = ?1", [uid(2).to_string()]).unwrap();
    assert_eq!(repeated(3 * day + 1).await, [test(1)]);
}

#[tokio::test]
async fn what_cannot_be_restored_any_more_is_not_certified() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    for guest in 1..=4 {
        insert_proved_for_tests(folder.path(), (guest, guest), at(i64::from(guest))).unwrap();
    }
    let connection = Connection::open(folder.path().join("agent.db")).unwrap();
    let edit = |sql: &str| assert_eq!(connection.execute(sql, []).unwrap(), 1);
    // A backup that is pruned, one that its storage lost, and a test from before checks were written down.
    edit("DELETE FROM backup WHERE volid = 'backup2:backup/1.tar.zst'");
    edit("UPDATE backup SET missing_since = 5 WHERE volid = 'backup2:backup/2.tar.zst'");
    edit("UPDATE restore_test SET checks = NULL WHERE archive = 'backup2:backup/3.tar.zst'");
    assert_eq!(due_tests(&store, at(30)).await, [test(4)]);
    // A clock that was ahead dated a test.
    edit("UPDATE restore_test SET at = at + 400 * 86400000000 WHERE archive = 'backup2:backup/4.tar.zst'");
    assert_eq!(due_tests(&store, at(30)).await, []);
}
