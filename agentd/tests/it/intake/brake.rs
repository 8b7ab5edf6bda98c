//! `release_brake`: whom a signed release lets pass, under which document, and until when.

use agentd::port::store::job::Settled;
use agentd::task::intake::Outcome;
use holdfast_protocol::generation::Generation;
use holdfast_protocol::id::{GuestUid, JobId};

use crate::intake::door::{Door, GUEST};
use crate::intake::hand::job;

/// Signed by both, as the policy asks.
async fn release(door: &mut Door, generation: u64, guest: GuestUid) -> JobId {
    let order = format!(
        "\"target\":{{\"kind\":\"host\"}},\"verb\":\"release_brake\",\"args\":{{\"generation\":{generation},\
         \"changes\":[{{\"guest\":\"{guest}\",\"name\":\"web-1\",\"operation\":\"stop\"}}]}}"
    );
    let (id, payload) = door.payload(&order).await;
    let outcome = door.leave(id, &job(payload.as_bytes(), &[&door.alice, &door.bob])).await;
    assert!(matches!(outcome, Outcome::Taken), "{outcome:?}");
    id
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_lets_its_guests_pass_under_its_document_while_it_lives() {
    let mut door = Door::open().await;
    let guest: GuestUid = GUEST.parse().unwrap();
    let other: GuestUid = GUEST.replace("7a03", "7a09").parse().unwrap();
    let passes = async |door: &Door, generation: u64| {
        door.store.released_guests(Generation::new(generation), door.now).await.unwrap()
    };
    let ids = [release(&mut door, 7, guest).await, release(&mut door, 8, other).await];
    assert_eq!(passes(&door, 7).await, [], "it waits");
    for id in ids {
        door.store.settle_job(id, Settled::Done, door.now).await.unwrap();
    }
    assert_eq!(passes(&door, 6).await, []);
    assert_eq!(passes(&door, 7).await, [guest]);
    assert_eq!(passes(&door, 8).await, [other]);
    door.pass(3_599);
    assert_eq!(passes(&door, 7).await, [guest], "its last second");
    door.pass(1);
    assert_eq!(passes(&door, 7).await, [], "it has ended");
}
