//! Work orders over HTTP: ordering, delivery, reports, readings.

use std::time::{Duration, Instant};

use holdfast_protocol::checkin::CheckinRequest;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::{GuestUid, WorkOrderId};
use holdfast_protocol::operator::{Page, Role};
use holdfast_protocol::report::Sections;
use holdfast_protocol::work_order::report::REPORTED_MAX;
use holdfast_protocol::work_order::{
    DIAGNOSTIC_BYTES_MAX, DiagnosticText, HostOrderState, OrderAct, OrderCall, OrderText, WorkOrderDetail,
    WorkOrderReport, WorkOrderState, WorkOrderView,
};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::world::{Answered, Client, World};

const PATH: &str = "/v1/hosts/box7/work-orders";

async fn order(client: &Client, act: &Value) -> Answered<WorkOrderView> {
    client.send(Method::POST, PATH, &json!({ "act": act, "life_s": 600 })).await
}

fn backup(guest: u128) -> Value {
    json!({ "kind": "backup_now", "guest": Uuid::from_u128(guest), "tier": "local" })
}

fn says(id: WorkOrderId, state: HostOrderState) -> WorkOrderReport {
    WorkOrderReport {
        id,
        state,
        claimed_at: "2026-11-27T14:00:00Z".parse().unwrap(),
        operation: None,
        ended_at: None,
        phases: Vec::new(),
        log: Vec::new(),
        result: None,
        problem: None,
    }
}

fn sections(reports: Vec<WorkOrderReport>) -> Sections {
    Sections { orders: Some(reports), ..Sections::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_wakes_a_held_check_in_and_ends_with_the_word_of_its_host() {
    let world = World::start().await;
    let (host, admin) = (world.enrol("box7").await, world.admin());
    host.check_in(&host.full(1, 0), "0s").await.data(StatusCode::OK);
    let (began, request) = (Instant::now(), host.changed(2, 0, Sections::default()));
    let held = host.check_in(&request, "25s");
    let made = async {
        crate::world::until("held", || async { world.view("box7").await.held.number() == 0 }).await;
        order(&admin, &backup(7)).await.data(StatusCode::CREATED)
    };
    let (held, made) = tokio::join!(held, made);
    let answer = held.data(StatusCode::OK);
    assert!(began.elapsed() < Duration::from_secs(20), "at once");
    assert_eq!((answer.orders[0].id, answer.orders[0].call), (made.id, OrderCall::CarryOut));
    let text = OrderText::parse(&answer.orders[0].text).unwrap();
    assert_eq!(text.act.guest(), Some(GuestUid::new(Uuid::from_u128(7))));
    assert_eq!((text.expires_at, made.state), (made.expires_at, WorkOrderState::Pending));
    for (sequence, said) in
        [(3, HostOrderState::Claimed), (4, HostOrderState::Running), (5, HostOrderState::Succeeded)]
    {
        let request = host.changed(sequence, 0, sections(vec![says(made.id, said)]));
        assert!(host.check_in(&request, "0s").await.data(StatusCode::OK).orders.is_empty());
        let found: WorkOrderDetail = admin.get(&format!("{PATH}/{}", made.id)).await.data(StatusCode::OK);
        assert_eq!(found.order.state, said.into());
    }
    let late = format!("{PATH}/{}/cancel", made.id);
    let refused = admin.send::<Value>(Method::POST, &late, &json!({})).await;
    assert_eq!(refused.code(), ErrorCode::UnderWay);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_in_the_list_cannot_be_ordered_and_viewers_order_nothing() {
    let world = World::start().await;
    let (_, admin) = (world.enrol("box7").await, world.admin());
    for act in [
        json!({ "kind": "destroy_guest", "guest": Uuid::from_u128(7) }),
        json!({ "kind": "run", "command": "id" }),
        json!({ "kind": "collect_diagnostics", "name": "shell" }),
        json!({ "kind": "refresh", "path": "/etc/shadow" }),
    ] {
        let refused = admin.send::<Value>(Method::POST, PATH, &json!({ "act": act })).await;
        assert_ne!(refused.code(), ErrorCode::Internal, "{act}");
    }
    let long = json!({ "act": { "kind": "refresh" }, "life_s": 86_401 });
    assert_eq!(admin.send::<Value>(Method::POST, PATH, &long).await.code(), ErrorCode::Range);
    let viewer = world.with_token(&crate::operators::operator(&world, "eve", Role::Viewer).await);
    let refused = viewer.send::<Value>(Method::POST, PATH, &json!({ "act": { "kind": "refresh" } })).await;
    assert_eq!(refused.code(), ErrorCode::Forbidden);
    let page: Page<WorkOrderView> = viewer.get(PATH).await.data(StatusCode::OK);
    assert!(page.items.is_empty());
    let nowhere = "/v1/hosts/box9/work-orders";
    let refused = admin.send::<Value>(Method::POST, nowhere, &json!({ "act": { "kind": "refresh" } })).await;
    assert_eq!(refused.code(), ErrorCode::NotFound);
}

#[tokio::test(flavor = "multi_thread")]
async fn orders_are_listed_by_state_in_pages_and_cancelled_through_the_host() {
    let world = World::start().await;
    let (host, admin) = (world.enrol("box7").await, world.admin());
    let mut made = Vec::new();
    for guest in 1..=3 {
        made.push(order(&admin, &backup(guest)).await.data(StatusCode::CREATED).id);
    }
    let cancel = format!("{PATH}/{}/cancel", made[0]);
    let view: WorkOrderView = admin.send(Method::POST, &cancel, &json!({})).await.data(StatusCode::OK);
    assert!(view.cancel_requested_at.is_some() && view.state == WorkOrderState::Pending);
    let answer = host.check_in(&host.full(1, 0), "0s").await.data(StatusCode::OK);
    assert_eq!(answer.orders[0].call, OrderCall::Cancel);
    let request = host.changed(2, 0, sections(vec![says(made[0], HostOrderState::Cancelled)]));
    assert_eq!(host.check_in(&request, "0s").await.data(StatusCode::OK).orders.len(), 2);
    let pending: Page<WorkOrderView> =
        admin.get(&format!("{PATH}?state=pending&limit=1")).await.data(StatusCode::OK);
    assert_eq!(pending.items[0].id, made[2]);
    let next = pending.next.unwrap();
    let rest: Page<WorkOrderView> =
        admin.get(&format!("{PATH}?state=pending&limit=1&cursor={next}")).await.data(StatusCode::OK);
    assert_eq!((rest.items[0].id, rest.next), (made[1], None));
    assert_eq!(admin.get::<Value>(&format!("{PATH}?state=lost")).await.code(), ErrorCode::Range);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_text_of_a_reading_comes_with_a_check_in_and_is_bounded() {
    let world = World::start().await;
    let (host, admin) = (world.enrol("box7").await, world.admin());
    let act = json!({ "kind": "collect_diagnostics", "name": "locks" });
    let made = order(&admin, &act).await.data(StatusCode::CREATED);
    assert!(matches!(made.act, OrderAct::CollectDiagnostics { .. }));
    host.check_in(&host.full(1, 0), "0s").await.data(StatusCode::OK);
    let text = |text: String| {
        Some(DiagnosticText { order: made.id, read_at: "2026-11-27T14:00:00Z".parse().unwrap(), text })
    };
    let reports = || sections(vec![says(made.id, HostOrderState::Succeeded)]);
    let long = CheckinRequest {
        diagnostic: text("x".repeat(DIAGNOSTIC_BYTES_MAX + 1)),
        ..host.changed(2, 0, reports())
    };
    assert_eq!(host.check_in(&long, "0s").await.code(), ErrorCode::Range);
    let sent = CheckinRequest {
        diagnostic: text("lock backup on web-1".to_owned()),
        ..host.changed(3, 0, reports())
    };
    host.check_in(&sent, "0s").await.data(StatusCode::OK);
    let found: WorkOrderDetail = admin.get(&format!("{PATH}/{}", made.id)).await.data(StatusCode::OK);
    assert_eq!(found.text.unwrap().text, "lock backup on web-1");
    let many = (0..=u128::from(REPORTED_MAX))
        .map(|n| says(WorkOrderId::new(Uuid::from_u128(n)), HostOrderState::Claimed));
    let many = host.changed(4, 0, sections(many.collect()));
    assert_eq!(host.check_in(&many, "0s").await.code(), ErrorCode::Range);
}
