//! Tests of work orders through the whole loop.

use std::time::Duration;

use agentd::port::store::work_order::OrderOutcome;
use holdfast_protocol::id::WorkOrderId;
use holdfast_protocol::operation::OperationKind;
use holdfast_protocol::work_order::{
    HostOrderState, OrderAct, OrderCall, OrderResult, OrderText, QueuedOrder, RestartTiming, WorkOrderReport,
};
use jiff::SignedDuration;
use uuid::Uuid;

use super::drift::{Agent, serves, start};
use super::world::{World, guest, uid};

impl Agent {
    async fn order(&self, act: OrderAct) -> WorkOrderId {
        let now = self.ports.clock.now();
        let order = OrderText { act, expires_at: now + SignedDuration::from_hours(1) };
        let id = WorkOrderId::new(Uuid::now_v7());
        let text = serde_json::to_string(&order).unwrap();
        let queued = QueuedOrder { id, call: OrderCall::CarryOut, text, correlation_id: None };
        assert_eq!(self.ports.store.take_order(queued.clone(), now).await.unwrap(), OrderOutcome::Taken);
        assert_eq!(self.ports.store.take_order(queued, now).await.unwrap(), OrderOutcome::Known);
        id
    }

    async fn report(&self, id: WorkOrderId) -> WorkOrderReport {
        let mut changes = self.ports.store.changes();
        let ended = async {
            loop {
                changes.mark_unchanged();
                let all = self.ports.store.order_reports(self.ports.clock.now()).await.unwrap().unwrap();
                let report = all.into_iter().find(|report| report.id == id).unwrap();
                if report.state.is_end() {
                    return report;
                }
                changes.changed().await.unwrap();
            }
        };
        match tokio::time::timeout(Duration::from_secs(120), ended).await {
            Ok(report) => report,
            Err(_) => panic!("never ended: {:#?}", self.ports.store.operation_views(20).await.unwrap()),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn orders_become_operations_of_their_own_id_with_phases_log_and_result() {
    let world = World::start().await;
    let mut agent = start(&world).await;
    agent.goal(1, vec![guest(1)]).await;
    agent.until("a guest that serves", |view| serves(view, 1)).await;
    let guest = uid(1);
    let backup = agent.order(OrderAct::BackupNow { guest, tier: None }).await;
    let name = "before-update".parse().unwrap();
    let snapshot = agent.order(OrderAct::Snapshot { guest, name, keep_s: None }).await;
    let restart = agent.order(OrderAct::RestartGuest { guest, timing: RestartTiming::AtOnce }).await;
    let refresh = agent.order(OrderAct::Refresh {}).await;

    let report = agent.report(backup).await;
    assert_eq!(report.state, HostOrderState::Succeeded, "{report:#?}");
    assert_eq!(
        report.operation.map(|id| id.uuid()),
        Some(backup.uuid()),
        "one id from the order to the journal"
    );
    let Some(OrderResult::Backup { archive, storage, bytes, .. }) = &report.result else {
        panic!("{report:#?}")
    };
    assert!(archive.starts_with("backup2:") && *bytes > 0 && storage.as_str() == "backup2", "{report:#?}");
    assert!(report.phases.iter().all(|phase| phase.attempts == 1 && phase.took_ms.is_some()), "{report:#?}");
    assert!(report.log.iter().any(|line| line.contains("UPID:")), "{report:#?}");

    let report = agent.report(snapshot).await;
    assert!(matches!(report.result, Some(OrderResult::Snapshot { .. })), "{report:#?}");
    assert!(agent.ports.store.snapshots_asked_by(guest).await.unwrap().is_empty(), "it is not the guest's");

    let report = agent.report(restart).await;
    assert_eq!(
        (report.state, &report.result),
        (HostOrderState::Succeeded, &Some(OrderResult::Restart {})),
        "{report:#?}"
    );
    let names: Vec<&str> = report.phases.iter().map(|phase| phase.name.as_str()).collect();
    assert_eq!(names, ["shut_down", "confirm_stopped", "start", "confirm_running"]);
    assert!(matches!(agent.report(refresh).await.result, Some(OrderResult::Refresh { .. })));

    let views = agent.ports.store.operation_views(20).await.unwrap();
    let count = |kind| views.iter().filter(|view| view.kind == kind).count();
    assert_eq!((count(OperationKind::RestartGuest), count(OperationKind::Snapshot)), (1, 1));
    agent.until("a guest that serves again", |view| serves(view, 1)).await;
    let unknown = agent.order(OrderAct::BackupNow { guest: uid(9), tier: None }).await;
    let report = agent.report(unknown).await;
    assert_eq!((report.state, report.operation), (HostOrderState::Failed, None), "{report:#?}");
    agent.stop().await;
}
