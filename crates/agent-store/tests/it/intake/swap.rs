//! `swap_guest` at the door: only a whole copy of this very guest, under the numbers that were signed for.

use agent_store::job_intake::Outcome;
use holdfast_protocol::code::ErrorCode;
use rusqlite::Connection;

use crate::intake::door::{Door, GUEST, target};
use crate::intake::hand::job;

/// What stands beside a guest.
fn beside(door: &Door, guest: &str, vmid: u32, stage: &str) {
    let raw = Connection::open(door.folder.path().join("agent.db")).unwrap();
    raw.execute(
        "INSERT INTO beside (operation, guest, name, vmid, archive, stage) VALUES (?1, ?2, 'web-1', ?3, 'a:backup/b', ?4)",
        (format!("01906f3c-6b1f-7c1d-9d0a-2f6d1c0b7{vmid}"), guest, vmid, stage),
    )
    .unwrap();
}

fn order(copy: u32) -> String {
    format!(
        "\"target\":{},\"verb\":\"swap_guest\",\"args\":{{\"copy\":{{\"vmid\":{copy},\"fingerprint\":{{\"name\":\"web-1-beside\",\
         \"volumes\":[\"tank:{copy}/vm-{copy}-disk-0.raw\"]}}}},\"leaves\":[]}}",
        target()
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_a_whole_copy_of_this_guest_may_take_its_place() {
    let mut door = Door::open().await;
    beside(&door, GUEST, 301, "made");
    beside(&door, GUEST, 302, "making");
    beside(&door, "01906f3c-6b1f-7c1d-9d0a-2f6d1c0b7b04", 303, "made");
    for (name, copy) in [
        ("its own number", 300),
        ("half a copy", 302),
        ("another guest's copy", 303),
        ("nobody's number", 304),
    ] {
        let (id, payload) = door.payload(&order(copy)).await;
        let blob = job(payload.as_bytes(), &[&door.alice]);
        door.refuses(name, id, &blob, ErrorCode::TargetChanged).await;
    }
    let (id, payload) = door.payload(&order(301)).await;
    let outcome = door.leave(id, &job(payload.as_bytes(), &[&door.alice])).await;
    assert!(matches!(outcome, Outcome::Taken), "{outcome:?}");
}
