//! Stories of work orders.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::id::{CorrelationId, GuestUid, WorkOrderId};
use holdfast_protocol::work_order::{
    DiagnosticText, HostOrderState, OrderAct, OrderCall, WorkOrderReport, WorkOrderState,
};
use hubd::domain::work_order::{EXPIRY_MARGIN, OPEN_PER_GUEST_MAX, TEXTS_PER_HOST_MAX, WorkOrderError};
use hubd::store::{Checkin, NewWorkOrder, READINGS_KEPT, WORK_ORDERS_KEPT, WorkOrderFilter, WriteError};
use jiff::SignedDuration;
use uuid::Uuid;

use super::fixture::{Fixture, at, by, checkin, claiming, named};
use super::quiet::quiet_after_first;

fn id(n: u128) -> WorkOrderId {
    WorkOrderId::new(Uuid::from_u128(n))
}

fn backup(n: u128, guest: u128) -> NewWorkOrder {
    let act = OrderAct::BackupNow { guest: GuestUid::new(Uuid::from_u128(guest)), tier: None };
    NewWorkOrder { host: named("box7"), id: id(n), act, life_s: 600 }
}

fn says(n: u128, state: HostOrderState) -> WorkOrderReport {
    WorkOrderReport {
        id: id(n),
        state,
        claimed_at: at(3),
        operation: None,
        ended_at: state.is_end().then(|| at(5)),
        phases: Vec::new(),
        log: Vec::new(),
        result: None,
        problem: (state == HostOrderState::Failed).then(|| ErrorBody::new(ErrorCode::Quota, "too many")),
    }
}

async fn state(fixture: &Fixture, n: u128) -> WorkOrderState {
    fixture.store.work_order(named("box7"), id(n)).await.unwrap().unwrap().order.state
}

pub async fn an_order_is_passed_on_until_its_host_speaks_of_it_and_ends_once(fixture: Fixture) {
    let store = &fixture.store;
    assert!(store.order_work(by(2), backup(1, 1)).await.ok().unwrap().is_none(), "no such host");
    let host = fixture.box7().await;
    store.check_in(checkin(host, 1, 1)).await.unwrap().unwrap();
    let done = store.order_work(claiming(2, "k", 1), backup(1, 1)).await.ok().unwrap().unwrap();
    assert_eq!((done.host, done.order.state), (host, WorkOrderState::Pending));
    // The same key is the same order, whatever id it would have had.
    let again = store.order_work(claiming(3, "k", 1), backup(2, 1)).await.ok().unwrap().unwrap();
    assert_eq!(again, done);
    for sequence in [2, 3] {
        let reply = store.check_in(checkin(host, 1, sequence)).await.unwrap().unwrap();
        assert_eq!(
            (reply.orders.len(), reply.orders[0].id, reply.orders[0].call),
            (1, id(1), OrderCall::CarryOut)
        );
    }
    let states = [
        HostOrderState::Claimed,
        HostOrderState::Running,
        HostOrderState::Succeeded,
        HostOrderState::Running,
    ];
    for (sequence, said) in (4..).zip(states) {
        let checkin = Checkin { orders: vec![says(1, said)], ..checkin(host, 1, sequence) };
        assert!(store.check_in(checkin).await.unwrap().unwrap().orders.is_empty());
    }
    assert_eq!(state(&fixture, 1).await, WorkOrderState::Succeeded, "what is done stays done");
    // What a host says of an order that is none of its own is no answer.
    let strange = Checkin { orders: vec![says(9, HostOrderState::Failed)], ..checkin(host, 1, 20) };
    store.check_in(strange).await.unwrap().unwrap();
    let kinds = fixture.kinds().await;
    let of_orders: Vec<&str> =
        kinds.iter().map(String::as_str).filter(|kind| kind.starts_with("work")).collect();
    assert_eq!(of_orders, ["work_ordered", "work_order_succeeded"]);
}

pub async fn a_quiet_host_gets_an_order_and_what_it_says_of_it_is_news(fixture: Fixture) {
    let store = &fixture.store;
    let host = fixture.box7().await;
    for sequence in [1, 2, 3] {
        let kept = store.check_in(quiet_after_first(host, sequence)).await.unwrap().unwrap();
        assert!(kept.orders.is_empty());
    }
    store.order_work(by(3), NewWorkOrder { act: OrderAct::Refresh {}, ..backup(1, 1) }).await.ok().unwrap();
    for sequence in [4, 5] {
        let kept = store.check_in(quiet_after_first(host, sequence)).await.unwrap().unwrap();
        assert_eq!(kept.orders.len(), 1);
    }
    for (sequence, said) in [(6, HostOrderState::Claimed), (8, HostOrderState::Running)] {
        let checkin = Checkin { orders: vec![says(1, said)], ..quiet_after_first(host, sequence) };
        assert!(store.check_in(checkin).await.unwrap().unwrap().orders.is_empty());
        let quiet = store.check_in(quiet_after_first(host, sequence + 1)).await.unwrap().unwrap();
        assert!(quiet.orders.is_empty());
    }
    assert_eq!(state(&fixture, 1).await, WorkOrderState::Running);
    let text = DiagnosticText { order: id(1), read_at: at(4), text: "what was read".to_owned() };
    let checkin = Checkin { diagnostic: Some(text.clone()), ..quiet_after_first(host, 10) };
    store.check_in(checkin).await.unwrap().unwrap();
    let detail = store.work_order(named("box7"), id(1)).await.unwrap().unwrap();
    assert_eq!(detail.text, Some(text));
}

pub async fn an_order_is_taken_back_by_its_host_and_expires_without_one(fixture: Fixture) {
    let store = &fixture.store;
    let host = fixture.box7().await;
    for n in [1, 2, 3] {
        store.order_work(by(2), backup(n, n)).await.ok().unwrap().unwrap();
    }
    for _ in 0..2 {
        let view = store.cancel_work_order(by(4), named("box7"), id(1)).await.ok().unwrap().unwrap().order;
        assert_eq!((view.state, view.cancel_requested_at), (WorkOrderState::Pending, Some(at(4))));
    }
    let reply = store.check_in(checkin(host, 1, 1)).await.unwrap().unwrap();
    assert_eq!((reply.orders[0].call, reply.orders[1].call), (OrderCall::Cancel, OrderCall::CarryOut));
    let orders = vec![says(1, HostOrderState::Cancelled), says(2, HostOrderState::Running)];
    store.check_in(Checkin { orders, ..checkin(host, 1, 2) }).await.unwrap().unwrap();
    assert_eq!(state(&fixture, 1).await, WorkOrderState::Cancelled);
    let late = store.cancel_work_order(by(6), named("box7"), id(2)).await.err().unwrap();
    assert!(matches!(late, WriteError::Refused(WorkOrderError::UnderWay)), "{late:?}");
    // The third was never spoken of.
    let (end, correlation) = (at(2) + SignedDuration::from_secs(600), CorrelationId::new(Uuid::from_u128(5)));
    store
        .expire_work_orders(
            &fixture.term().await,
            end + EXPIRY_MARGIN - SignedDuration::from_secs(1),
            correlation,
        )
        .await
        .unwrap();
    assert_eq!(state(&fixture, 3).await, WorkOrderState::Pending);
    store.expire_work_orders(&fixture.term().await, end + EXPIRY_MARGIN, correlation).await.unwrap();
    assert_eq!(
        (state(&fixture, 3).await, state(&fixture, 2).await),
        (WorkOrderState::Expired, WorkOrderState::Running)
    );
    // The host took it in time, and says so late.
    let orders = vec![says(3, HostOrderState::Failed)];
    store.check_in(Checkin { orders, ..checkin(host, 1, 3) }).await.unwrap().unwrap();
    assert_eq!(state(&fixture, 3).await, WorkOrderState::Failed);
}

pub async fn orders_are_bounded_listed_by_state_and_deleted(fixture: Fixture) {
    let store = &fixture.store;
    let host = fixture.box7().await;
    for n in 1..=u128::from(OPEN_PER_GUEST_MAX) {
        store.order_work(by(2), backup(n, 1)).await.ok().unwrap().unwrap();
    }
    let full = store.order_work(by(2), backup(99, 1)).await.err().unwrap();
    assert!(matches!(full, WriteError::Refused(WorkOrderError::GuestFull)), "{full:?}");
    store.order_work(by(2), backup(99, 2)).await.ok().unwrap().unwrap();
    let orders = vec![says(99, HostOrderState::Succeeded)];
    store.check_in(Checkin { orders, ..checkin(host, 1, 1) }).await.unwrap().unwrap();
    let list = |state, before| store.work_orders(named("box7"), WorkOrderFilter { state, before }, 2);
    let first = list(Some(WorkOrderState::Pending), None).await.unwrap().unwrap();
    assert_eq!(first.iter().map(|(_, view)| view.id).collect::<Vec<_>>(), [id(4), id(3)]);
    let rest = list(Some(WorkOrderState::Pending), Some(first[1].0)).await.unwrap().unwrap();
    assert_eq!(rest.iter().map(|(_, view)| view.id).collect::<Vec<_>>(), [id(2), id(1)]);
    assert_eq!(list(Some(WorkOrderState::Succeeded), None).await.unwrap().unwrap().len(), 1);
    store.prune(&fixture.term().await, at(3) + WORK_ORDERS_KEPT).await.unwrap();
    assert!(list(None, None).await.unwrap().unwrap().is_empty());
}

pub async fn texts_of_readings_are_kept_few_and_for_a_time(fixture: Fixture) {
    let store = &fixture.store;
    let host = fixture.box7().await;
    let texts = u128::from(TEXTS_PER_HOST_MAX) + 2;
    for n in 1..=texts {
        let new = NewWorkOrder { act: OrderAct::Refresh {}, ..backup(n, 1) };
        store.order_work(by(2), new).await.ok().unwrap().unwrap();
        let text = DiagnosticText { order: id(n), read_at: at(4), text: format!("text {n}") };
        let checkin = Checkin { diagnostic: Some(text), ..checkin(host, 1, u64::try_from(n).unwrap()) };
        store.check_in(checkin).await.unwrap().unwrap();
    }
    let text = |n| async move { store.work_order(named("box7"), id(n)).await.unwrap().unwrap().text };
    assert_eq!((text(1).await, text(2).await), (None, None));
    assert_eq!(text(3).await.unwrap().text, "text 3");
    store.prune(&fixture.term().await, at(5) + READINGS_KEPT).await.unwrap();
    assert_eq!(text(texts).await, None);
}
