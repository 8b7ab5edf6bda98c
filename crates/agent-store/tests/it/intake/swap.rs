//! Tests of `swap_guest` at intake.

use agent_store::job_intake::Outcome;
use holdfast_protocol::code::ErrorCode;
use rusqlite::Connection;

use crate::intake::hand::job;
use crate::intake::store_fixture::{GUEST, StoreFixture, target};

/// A copy next to a guest.
fn copy_of(listener: &StoreFixture, guest: &str, vmid: u32, stage: &str) {
    let raw = Connection::open(listener.folder.path().join("agent.db")).unwrap();
    raw.execute(
        "INSERT INTO restored_copy (operation, guest, name, vmid, archive, stage) VALUES (?1, ?2, 'web-1', ?3, 'a:backup/b', ?4)",
        (format!("01906f3c-6b1f-7c1d-9d0a-2f6d1c0b7{vmid}"), guest, vmid, stage),
    )
    .unwrap();
}

fn order(copy: u32) -> String {
    format!(
        "\"target\":{},\"verb\":\"swap_guest\",\"args\":{{\"copy\":{{\"vmid\":{copy},\"fingerprint\":{{\"name\":\"web-1-copy\",\
         \"volumes\":[\"tank:{copy}/vm-{copy}-disk-0.raw\"]}}}},\"leaves\":[]}}",
        target()
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_a_whole_copy_of_this_guest_may_take_its_place() {
    let mut listener = StoreFixture::open().await;
    copy_of(&listener, GUEST, 301, "made");
    copy_of(&listener, GUEST, 302, "making");
    copy_of(&listener, "01906f3c-6b1f-7c1d-9d0a-2f6d1c0b7b04", 303, "made");
    for (name, copy) in [
        ("its own number", 300),
        ("half a copy", 302),
        ("another guest's copy", 303),
        ("nobody's number", 304),
    ] {
        let (id, payload) = listener.payload(&order(copy)).await;
        let blob = job(payload.as_bytes(), &[&listener.alice]);
        listener.refuses(name, id, &blob, ErrorCode::TargetChanged).await;
    }
    let (id, payload) = listener.payload(&order(301)).await;
    let outcome = listener.leave(id, &job(payload.as_bytes(), &[&listener.alice])).await;
    assert!(matches!(outcome, Outcome::Taken), "{outcome:?}");
}
