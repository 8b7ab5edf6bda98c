//! Tests of `reassign_volume` at intake.

use agent_store::job_intake::Outcome;
use holdfast_protocol::code::ErrorCode;
use rusqlite::Connection;

use crate::intake::hand::job;
use crate::intake::store_fixture::{StoreFixture, target};

/// Another guest that was made.
fn copy_of(listener: &StoreFixture, n: u32, customer: &str) {
    let raw = Connection::open(listener.folder.path().join("agent.db")).unwrap();
    raw.execute(
        "INSERT INTO guest (uid, name, customer, golden, place, vmid, made_by, volumes)
         VALUES (?1, ?2, ?3, '2026.11.1', 'made', ?4, ?1, '[]')",
        (uid(n), format!("web-{n}"), customer, 300 + n),
    )
    .unwrap();
}

fn uid(n: u32) -> String {
    format!("01906f3c-6b1f-7c1d-9d0a-2f6d1c0b7b{n:02}")
}

fn order(to: u32, customer: &str) -> String {
    format!(
        "\"target\":{},\"verb\":\"reassign_volume\",\"args\":{{\"volume\":\"tank:300/vm-300-disk-0.raw\",\"to\":\
         {{\"uid\":\"{}\",\"vmid\":{},\"fingerprint\":{{\"name\":\"web-{to}\",\"customer\":\"{customer}\",\"volumes\":[]}}}}}}",
        target(),
        uid(to),
        300 + to
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_volume_goes_only_between_guests_of_one_customer() {
    let mut listener = StoreFixture::open().await;
    copy_of(&listener, 4, "acme");
    copy_of(&listener, 5, "globex");
    let (id, payload) = listener.payload(&order(5, "globex")).await;
    let blob = job(payload.as_bytes(), &[&listener.alice]);
    listener.refuses("to another customer's guest", id, &blob, ErrorCode::Forbidden).await;
    // The hub called it this customer's.
    let (id, payload) = listener.payload(&order(5, "acme")).await;
    let blob = job(payload.as_bytes(), &[&listener.alice]);
    listener
        .refuses("to another customer's guest under this one's name", id, &blob, ErrorCode::TargetChanged)
        .await;
    let (id, payload) = listener.payload(&order(4, "acme")).await;
    let outcome = listener.leave(id, &job(payload.as_bytes(), &[&listener.alice])).await;
    assert!(matches!(outcome, Outcome::Taken), "{outcome:?}");
}
