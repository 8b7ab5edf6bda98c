//! Events, their forwarding, and the end of old rows.

use holdfast_protocol::id::InviteId;
use holdfast_protocol::secret::Secret;
use hubd::store::{ANSWERS_KEPT, EventFilter, NewInvite, WriteError};
use uuid::Uuid;

use super::fixture::{Fixture, at, by, checkin, claiming, fresh_key, host_id};

pub async fn events_are_read_by_host_and_page_and_passed_on_in_order(fixture: Fixture) {
    let store = &fixture.store;
    let host = fixture.box7().await;
    let other = fixture.enrol("box8", host_id(8), &fresh_key()).await.host;
    store.check_in(checkin(host, 1, 1)).await.unwrap().unwrap();
    let of = |host, before| store.events(EventFilter { host, before }, 2);
    let newest = of(None, None).await.unwrap();
    assert_eq!(newest[0].kind, "host_online");
    let before = of(None, Some(newest[1].number)).await.unwrap();
    assert!(before.iter().all(|event| event.number < newest[1].number) && before.len() == 2);
    assert!(of(Some(other), None).await.unwrap().iter().all(|event| event.host == Some(other)));

    store.pass_over_all().await.unwrap();
    assert!(store.next_outgoing().await.unwrap().is_none());
    store.revoke_host(by(20), hubd::domain::host::HostRef::Id(host)).await.ok().unwrap();
    store.revoke_host(by(21), hubd::domain::host::HostRef::Id(other)).await.ok().unwrap();
    let mut passed = Vec::new();
    while let Some(outgoing) = store.next_outgoing().await.unwrap() {
        // Until it is passed on it is the next one.
        assert_eq!(store.next_outgoing().await.unwrap().unwrap().event.number, outgoing.event.number);
        store.passed_on(outgoing.event.number).await.unwrap();
        passed.push(outgoing.event.host);
    }
    assert_eq!(passed, [Some(host), Some(other)]);
    // An older one does not call back what was passed on.
    store.passed_on(1).await.unwrap();
    assert!(store.next_outgoing().await.unwrap().is_none());
}

pub async fn a_commit_with_an_event_is_announced(fixture: Fixture) {
    let store = &fixture.store;
    let host = fixture.box7().await;
    // A write that is answered comes after what earlier commits announced.
    store.ready().await.unwrap();
    let mut written = store.events_written();
    written.mark_unchanged();
    store.check_in(checkin(host, 1, 1)).await.unwrap().unwrap();
    written.changed().await.unwrap();
}

pub async fn what_is_past_its_time_goes_and_the_rest_stays(fixture: Fixture) {
    let store = &fixture.store;
    let invite = |number: u128, name: &str| NewInvite {
        id: InviteId::new(Uuid::from_u128(number)),
        host_name: name.parse().unwrap(),
        secret: Secret::new(format!("{number}")).hash(),
    };
    let made = store.create_invite(claiming(0, "k", 1), invite(1, "box7")).await.ok().unwrap();
    store.prune(at(0) + ANSWERS_KEPT).await.unwrap();
    let again = store.create_invite(claiming(1, "k", 1), invite(2, "box7")).await.ok().unwrap();
    assert_eq!(again, made, "the answer is kept for its whole day");
    let reused = store.create_invite(claiming(1, "k", 2), invite(2, "box7")).await;
    assert!(matches!(reused, Err(WriteError::KeyReused)));
    store.prune(at(1) + ANSWERS_KEPT).await.unwrap();
    let fresh = store.create_invite(claiming(2, "k", 2), invite(2, "box7")).await.ok().unwrap();
    assert_ne!(fresh, made);
    assert!(fixture.kinds().await.len() == 2, "events stay");
}
