//! Duties of one hub at a time, and rows that hubs share.

use std::time::Duration;

use holdfast_protocol::id::InviteId;
use holdfast_protocol::secret::Secret;
use hubd::domain::deadman::Liveness;
use hubd::store::duty::{DutyType, Upkeep, Webhook};
use hubd::store::{
    ANSWERS_KEPT, DeliveryEnd, Duty, Grant, HolderId, LEASE, Lease, NewInvite, SharedStore, StoreError, Term,
};
use jiff::SignedDuration;
use tokio::time::Instant;
use uuid::Uuid;

use super::alerts::says;
use super::fixture::{CORRELATION, Fixture, at, by, claiming, host_id};

const FIRST: HolderId = HolderId::new(Uuid::from_u128(10));

const SECOND: HolderId = HolderId::new(Uuid::from_u128(20));

/// A lease that ends while a story waits for it.
const SHORT: Duration = Duration::from_millis(1_200);

async fn asked<D: DutyType>(store: &SharedStore, holder: HolderId, length: Duration) -> Option<Term<D>> {
    let asked_at = Instant::now();
    let grants: Vec<Grant> = store.hold_leases(holder, &[D::DUTY], length).await.unwrap();
    Lease::granted(&grants, asked_at).term()
}

/// Asks until the lease is granted.
async fn granted<D: DutyType>(store: &SharedStore, holder: HolderId, length: Duration) -> Term<D> {
    let asking = async {
        loop {
            if let Some(term) = asked::<D>(store, holder, length).await {
                return term;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), asking).await.expect("the lease is granted")
}

/// Whether an effect was refused for its term.
fn over<T>(done: Result<T, StoreError>) -> bool {
    matches!(done, Err(StoreError::TermOver(_)))
}

pub async fn a_paused_holder_writes_nothing_after_its_term(fixture: Fixture) {
    use hubd::store::duty;
    let store = &fixture.store;
    let host = fixture.box7().await;
    let wrong = holdfast_protocol::condition::ConditionCode::RecordsBroken;
    store.check_in(says(host, (1, 5), &[wrong])).await.unwrap().unwrap();
    let contact = store.listened_to().await.unwrap().remove(0);
    let old_invite = NewInvite {
        id: InviteId::new(Uuid::from_u128(1)),
        host_name: "box9".parse().unwrap(),
        secret: Secret::new("secret".to_owned()).hash(),
    };
    store.create_invite(claiming(0, "k", 1), old_invite).await.ok().unwrap();
    // The first hub has all duties, takes a notice to send, and is stopped.
    macro_rules! terms {
        ($store:expr, $holder:expr, $length:expr) => {
            (
                granted::<duty::DeadMansSwitch>($store, $holder, $length).await,
                granted::<duty::Alerts>($store, $holder, $length).await,
                granted::<duty::Deliveries>($store, $holder, $length).await,
                granted::<Webhook>($store, $holder, $length).await,
                granted::<duty::EscrowNotices>($store, $holder, $length).await,
                granted::<duty::WorkOrders>($store, $holder, $length).await,
                granted::<Upkeep>($store, $holder, $length).await,
            )
        };
    }
    let (_, alerts, deliveries, _, _, _, _) = terms!(store, FIRST, LEASE);
    store.advance_alerts(&alerts, at(100), CORRELATION, 64).await.unwrap();
    let taken = store.take_outgoing(&deliveries, at(100)).await.unwrap().remove(0);
    let (deadman, alerts, deliveries, webhook, notices, orders, upkeep) = terms!(store, FIRST, SHORT);
    let (other, _writer) = fixture.second();
    let (_, _, second, _, _, _, _) = terms!(&other, SECOND, LEASE);
    assert!(second.epoch() > deliveries.epoch(), "{:?} {:?}", second.epoch(), deliveries.epoch());
    // It wakes and does not know.
    let events = fixture.kinds().await;
    let offline = vec![(contact, Liveness::Offline)];
    assert!(over(store.write_down(&deadman, offline, at(900), CORRELATION).await));
    assert!(over(store.listen(&deadman, at(900)).await));
    assert!(over(store.advance_alerts(&alerts, at(90_000), CORRELATION, 64).await));
    assert!(over(store.observe(&alerts, Vec::new(), at(900), CORRELATION).await));
    assert!(over(store.take_outgoing(&deliveries, at(900)).await));
    assert!(over(store.release_outgoing(&deliveries).await));
    let end = DeliveryEnd::Delivered { remark: None };
    assert!(over(store.delivery_ended(&deliveries, taken.clone(), end, at(900)).await));
    assert!(over(store.pass_over_all(&webhook).await));
    assert!(over(store.passed_on(&webhook, 1).await));
    assert!(over(store.expire_work_orders(&orders, at(900), CORRELATION).await));
    assert!(over(store.prune(&upkeep, at(1) + ANSWERS_KEPT).await));
    assert!(over(store.thin_usage(&upkeep, 0).await));
    assert!(store.open_notices().await.unwrap().is_empty() && notices.fence().duty == Duty::EscrowNotices);
    assert_eq!(fixture.kinds().await, events);
    assert_eq!(store.next_outgoing().await.unwrap().unwrap().event.number, 1, "nothing was passed over");
    let reused = NewInvite {
        id: InviteId::new(Uuid::from_u128(2)),
        host_name: "box9".parse().unwrap(),
        secret: Secret::new("other".to_owned()).hash(),
    };
    assert!(store.create_invite(claiming(1, "k", 2), reused).await.is_err(), "its answer is still kept");
    // The hub that took over sends the notice, once.
    assert!(
        other.take_outgoing(&second, at(900)).await.unwrap().is_empty(),
        "it is being sent, as far as is known"
    );
    other.release_outgoing(&second).await.unwrap();
    let again = other.take_outgoing(&second, at(900)).await.unwrap();
    assert_eq!(again.iter().map(|one| &one.notice.key).collect::<Vec<_>>(), [&taken.notice.key]);
}

pub async fn epochs_rise_with_each_holder_and_never_fall(fixture: Fixture) {
    let (store, (other, _writer)) = (&fixture.store, fixture.second());
    let mut last = granted::<Upkeep>(store, FIRST, LEASE).await;
    assert_eq!(
        asked::<Upkeep>(store, FIRST, LEASE).await.unwrap().epoch(),
        last.epoch(),
        "a renewal is no new term"
    );
    for round in 0..4 {
        let (from, from_holder, to, holder) =
            if round % 2 == 0 { (store, FIRST, &other, SECOND) } else { (&other, SECOND, store, FIRST) };
        // A hub that stops ends its leases, and the next one need not wait.
        from.end_leases(from_holder).await.unwrap();
        assert!(over(from.prune(&last, at(0)).await), "its own term is over, too");
        let next = asked::<Upkeep>(to, holder, LEASE).await.unwrap();
        assert_eq!(next.epoch().number(), last.epoch().number() + 1);
        to.prune(&next, at(0)).await.unwrap();
        last = next;
    }
}

/// Times of a request are the hub's; the end of a lease is not judged by them.
pub async fn a_hub_s_clock_that_jumps_moves_no_lease(fixture: Fixture) {
    let store = &fixture.store;
    let term = granted::<Webhook>(store, FIRST, LEASE).await;
    let upkeep = granted::<Upkeep>(store, FIRST, LEASE).await;
    for second in [-1_000_000_000, 2_000_000_000] {
        store.prune(&upkeep, at(second)).await.unwrap();
        store.pass_over_all(&term).await.unwrap();
    }
    assert_eq!(asked::<Webhook>(store, FIRST, LEASE).await.unwrap().epoch(), term.epoch());
}

pub async fn hubs_hear_hosts_together_since_one_of_them_began(fixture: Fixture) {
    let store = &fixture.store;
    let listen = async |second| {
        let term = granted(store, FIRST, LEASE).await;
        store.listen(&term, at(second)).await.unwrap()
    };
    assert_eq!(listen(0).await, at(0));
    assert_eq!(listen(5).await, at(0));
    // Another hub takes over after fifteen seconds; its clock is a second behind.
    store.end_leases(FIRST).await.unwrap();
    let (other, _writer) = fixture.second();
    let term = asked(&other, SECOND, LEASE).await.unwrap();
    assert_eq!(other.listen(&term, at(20)).await.unwrap(), at(0), "no alarm is delayed");
    assert_eq!(other.listen(&term, at(19)).await.unwrap(), at(0));
    // Nobody heard hosts for a while: their silence counts anew.
    assert_eq!(other.listen(&term, at(60)).await.unwrap(), at(60));
    assert_eq!(other.listen(&term, at(60) + SignedDuration::from_secs(20)).await.unwrap(), at(60));
}

pub async fn the_first_ca_is_kept_and_another_one_is_seen(fixture: Fixture) {
    let (store, (other, _writer)) = (&fixture.store, fixture.second());
    for (hub, ca) in [(store, "leaf/one"), (&other, "leaf/two"), (store, "leaf/one")] {
        assert_eq!(hub.keep_ca(ca.to_owned(), None).await.unwrap(), "leaf/one");
    }
    // A host that it knows is no reason for another answer.
    store
        .create_invite(
            by(0),
            NewInvite {
                id: InviteId::new(host_id(3).uuid()),
                host_name: "box3".parse().unwrap(),
                secret: Secret::new("three".to_owned()).hash(),
            },
        )
        .await
        .ok()
        .unwrap();
    assert_eq!(other.keep_ca("leaf/two".to_owned(), Some("leaf/zero".to_owned())).await.unwrap(), "leaf/one");
    // The CA that was changed to takes the place of the one that it came after, and the old one does not come back.
    assert_eq!(other.keep_ca("leaf/two".to_owned(), Some("leaf/one".to_owned())).await.unwrap(), "leaf/two");
    assert_eq!(store.keep_ca("leaf/one".to_owned(), None).await.unwrap(), "leaf/two");
}
