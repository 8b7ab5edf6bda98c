//! `holdfast order`: orders work from a host, follows and cancels it.

use std::time::Duration;

use holdfast_protocol::id::{GuestUid, HostName, WorkOrderId};
use holdfast_protocol::operator::HostDetail;
use holdfast_protocol::size::OrderSeconds;
use holdfast_protocol::work_order::{
    OrderAct, RestartTiming, WorkOrderDetail, WorkOrderRequest, WorkOrderState, WorkOrderView,
};
use serde::Serialize;
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::args::{OneOrder, OrderArgs, OrderCommand};
use crate::cmd_errors::OrderError;
use crate::error::CliError;
use crate::hub::{Hub, WHOLE};
use crate::screen::Screen;
use crate::{clock, render};

/// The agent reports a change within seconds.
const POLL: Duration = Duration::from_secs(1);

/// So long a text is waited for after its order ended. It may also be gone.
const TEXT_WAIT: Duration = Duration::from_secs(15);

/// With `--wait`, a started order is followed for a day at most.
const WAIT_MAX_S: u64 = 86_400;

/// An order with its host: the document for programs.
#[derive(Debug, Serialize)]
struct OnHost {
    host: HostName,
    #[serde(flatten)]
    order: WorkOrderView,
}

/// A host that orders go to, as the hub knows it.
struct Target {
    id: String,
    detail: HostDetail,
}

impl Target {
    async fn of(hub: &Hub, host: &str) -> Result<Self, CliError> {
        let detail: HostDetail = hub.get(&["v1", "hosts", host]).await?;
        Ok(Self { id: detail.host.id.to_string(), detail })
    }

    /// A guest by its uid, or by its name where only one has it.
    fn guest(&self, asked: &str) -> Result<GuestUid, CliError> {
        if let Ok(uid) = asked.parse() {
            return Ok(uid);
        }
        let guests = self.detail.sections.guests.iter().flatten();
        let mut named = guests.filter(|guest| guest.name == asked).filter_map(|guest| guest.uid);
        match (named.next(), named.next()) {
            (Some(uid), None) => Ok(uid),
            _ => Err(CliError::NoGuest { guest: asked.to_owned() }),
        }
    }
}

pub async fn run(command: OrderCommand, hub: &Hub, screen: &Screen) -> Result<(), CliError> {
    match command {
        OrderCommand::Backup { of, tier, order } => {
            let target = Target::of(hub, &of.host).await?;
            let act = OrderAct::BackupNow { guest: target.guest(&of.guest)?, tier: tier.map(Into::into) };
            make(hub, target, (act, order), screen).await
        }
        OrderCommand::Snapshot { of, name, keep, order } => {
            let target = Target::of(hub, &of.host).await?;
            let keep_s = seconds(keep.saturating_mul(3_600));
            let act = OrderAct::Snapshot { guest: target.guest(&of.guest)?, name, keep_s };
            make(hub, target, (act, order), screen).await
        }
        OrderCommand::Restart { of, at_once, order } => {
            let target = Target::of(hub, &of.host).await?;
            let timing = if at_once { RestartTiming::AtOnce } else { RestartTiming::InWindow };
            let act = OrderAct::RestartGuest { guest: target.guest(&of.guest)?, timing };
            make(hub, target, (act, order), screen).await
        }
        OrderCommand::RestoreTest { of, tier, order } => {
            let target = Target::of(hub, &of.host).await?;
            let act =
                OrderAct::RestoreTestNow { guest: target.guest(&of.guest)?, tier: tier.map(Into::into) };
            make(hub, target, (act, order), screen).await
        }
        OrderCommand::Refresh { host, order } => {
            let target = Target::of(hub, &host).await?;
            make(hub, target, (OrderAct::Refresh {}, order), screen).await
        }
        OrderCommand::Diagnose { host, name, guest, order } => {
            let target = Target::of(hub, &host).await?;
            let guest = guest.as_deref().map(|guest| target.guest(guest)).transpose()?;
            let act = OrderAct::CollectDiagnostics { name: name.into(), guest };
            make(hub, target, (act, order), screen).await
        }
        OrderCommand::List { host, state } => {
            let target = Target::of(hub, &host).await?;
            let state = state.map(WorkOrderState::from);
            let query: Vec<(&str, &str)> = state.iter().map(|state| ("state", state.as_str())).collect();
            let orders: Vec<WorkOrderView> =
                hub.list(&["v1", "hosts", &target.id, "work-orders"], &query, WHOLE).await?;
            let host = target.detail.host.name;
            let orders: Vec<OnHost> =
                orders.into_iter().map(|order| OnHost { host: host.clone(), order }).collect();
            screen.show(&orders, |orders, style| {
                let views: Vec<_> = orders.iter().map(|one| &one.order).collect();
                render::order::orders(&views, clock::now(), style)
            })
        }
        OrderCommand::Show(one) => {
            let found = detail(hub, &one.host, one.order).await?;
            screen.show(&found, |found, _| render::order::detail(found, clock::now()))
        }
        OrderCommand::Cancel(OneOrder { host, order }) => {
            let id = order.to_string();
            let order: WorkOrderView =
                hub.post(&["v1", "hosts", &host, "work-orders", &id, "cancel"], &json!({})).await?;
            screen.show(&order, |order, style| render::order::orders(&[order], clock::now(), style))
        }
        OrderCommand::Watch { one, timeout } => watch(hub, (&one.host, one.order), timeout, screen).await,
    }
}

fn seconds(seconds: u32) -> Option<OrderSeconds> {
    OrderSeconds::try_from(seconds).ok()
}

async fn detail(hub: &Hub, host: &str, order: WorkOrderId) -> Result<WorkOrderDetail, CliError> {
    Ok(hub.get(&["v1", "hosts", host, "work-orders", &order.to_string()]).await?)
}

async fn make(
    hub: &Hub,
    target: Target,
    (act, order): (OrderAct, OrderArgs),
    screen: &Screen,
) -> Result<(), CliError> {
    let request = WorkOrderRequest { act, life_s: seconds(order.within.saturating_mul(60)) };
    let made: WorkOrderView = hub.post(&["v1", "hosts", &target.id, "work-orders"], &request).await?;
    if order.wait {
        return watch(hub, (&target.id, made.id), WAIT_MAX_S, screen).await;
    }
    let host = target.detail.host.name;
    screen.show(&OnHost { host, order: made }, |made, style| {
        let table = render::order::orders(&[&made.order], clock::now(), style);
        format!("{table}Follow it with `holdfast order watch {} {}`.\n", made.host, made.order.id)
    })
}

async fn watch(
    hub: &Hub,
    (host, order): (&str, WorkOrderId),
    timeout_s: u64,
    screen: &Screen,
) -> Result<(), CliError> {
    let (begin, mut said, mut ended) = (Instant::now(), None, None);
    loop {
        let found = detail(hub, host, order).await?;
        let line = render::clean(&render::order::line(&found.order));
        if said.as_ref() != Some(&line) {
            screen.note(&line);
            said = Some(line);
        }
        let ended_for = if found.order.state.is_end() {
            ended.get_or_insert_with(Instant::now).elapsed()
        } else {
            Duration::ZERO
        };
        let text_comes = is_text_due(&found) && ended_for < TEXT_WAIT;
        if found.order.state.is_end() && !text_comes {
            screen.show(&found, |found, _| render::order::detail(found, clock::now()))?;
            return end(host, &found.order);
        }
        if begin.elapsed().as_secs() >= timeout_s {
            let (host, seconds) = (host.to_owned(), timeout_s);
            return Err(OrderError::TimedOut { host, order, seconds }.into());
        }
        sleep(POLL).await;
    }
}

/// Whether its text is on its way: it comes with the check-in after the report.
fn is_text_due(found: &WorkOrderDetail) -> bool {
    let is_reading = matches!(found.order.act, OrderAct::CollectDiagnostics { .. });
    is_reading && found.order.state == WorkOrderState::Succeeded && found.text.is_none()
}

fn end(host: &str, order: &WorkOrderView) -> Result<(), CliError> {
    let (host, id) = (host.to_owned(), order.id);
    let problem = order.report.as_ref().and_then(|report| report.problem.as_ref());
    let problem = problem.map_or_else(|| "it does not say why".to_owned(), ToString::to_string);
    match order.state {
        WorkOrderState::Failed => Err(OrderError::Failed { host, order: id, problem }.into()),
        WorkOrderState::Cancelled => Err(OrderError::Cancelled { host, order: id }.into()),
        WorkOrderState::Expired => Err(OrderError::Expired { host, order: id }.into()),
        WorkOrderState::Succeeded
        | WorkOrderState::Pending
        | WorkOrderState::Claimed
        | WorkOrderState::Running => Ok(()),
    }
}
