//! `holdfast alert`: alerts, their log, and explanations.

use holdfast_protocol::alert::{
    AcknowledgeRequest, DeliveryView, ExplainRequest, ExplanationView, IncidentDetail, IncidentView, LogView,
    ReceiverView,
};
use holdfast_protocol::condition::{ConditionCode, Severity};
use holdfast_protocol::id::GuestName;
use holdfast_protocol::operator::HostDetail;
use serde_json::json;

use super::{receiver_test, silence};
use crate::args::{AlertCommand, ExplainArgs, ListArgs, LogArgs};
use crate::error::CliError;
use crate::hub::{Hub, WHOLE};
use crate::screen::Screen;
use crate::{clock, render};

pub async fn run(command: AlertCommand, hub: &Hub, screen: &Screen) -> Result<(), CliError> {
    match command {
        AlertCommand::List(args) => list(&args, hub, screen).await,
        AlertCommand::Show { alert } => {
            let detail: IncidentDetail = hub.get(&["v1", "alerts", &alert_id(hub, &alert).await?]).await?;
            screen.show(&detail, |detail, style| render::alert::alert(detail, clock::now(), style))
        }
        AlertCommand::Ack { alert, end } => {
            let request = AcknowledgeRequest { until: end.at(clock::now()) };
            let id = alert_id(hub, &alert).await?;
            let known: IncidentView = hub.post(&["v1", "alerts", &id, "acknowledge"], &request).await?;
            show_one(&known, screen)
        }
        AlertCommand::Unack { alert } => {
            let id = alert_id(hub, &alert).await?;
            let open: IncidentView = hub.post(&["v1", "alerts", &id, "unacknowledge"], &json!({})).await?;
            show_one(&open, screen)
        }
        AlertCommand::Log(args) => log(&args, hub, screen).await,
        AlertCommand::Explain(args) => explain(args, hub, screen).await,
        AlertCommand::Silence(command) => silence::run(command, hub, screen).await,
        AlertCommand::Receivers => {
            let receivers: Vec<ReceiverView> = hub.list(&["v1", "receivers"], &[], WHOLE).await?;
            screen.show(&receivers, |all, style| render::receiver::receivers(all, clock::now(), style))
        }
        AlertCommand::Test { receiver, timeout } => receiver_test::run(receiver, timeout, hub, screen).await,
        AlertCommand::Deliveries { limit } => {
            let limit = usize::try_from(limit).unwrap_or(usize::MAX);
            let mut newest: Vec<DeliveryView> = hub.list(&["v1", "deliveries"], &[], limit).await?;
            newest.sort_by_key(|delivery| delivery.number);
            screen.show(&newest, |all, style| render::receiver::deliveries(all, style))
        }
    }
}

async fn list(args: &ListArgs, hub: &Hub, screen: &Screen) -> Result<(), CliError> {
    let ListArgs { all, host, guest, code, severity } = args;
    let query = [
        ("filter", all.then_some("all")),
        ("host", host.as_deref()),
        ("guest", guest.as_ref().map(GuestName::as_str)),
        ("code", code.map(ConditionCode::as_str)),
        ("severity", severity.map(Severity::as_str)),
    ];
    let query: Vec<(&str, &str)> =
        query.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
    let alerts: Vec<IncidentView> = hub.list(&["v1", "alerts"], &query, WHOLE).await?;
    screen.show(&alerts, |alerts, style| render::alert::alerts(alerts, clock::now(), style))
}

/// The whole id of an alert. The list shows `HOST/NUMBER`, which is shorter to type.
async fn alert_id(hub: &Hub, text: &str) -> Result<String, CliError> {
    Ok(match text.split_once('/') {
        None => text.to_owned(),
        Some(("hub", number)) => format!("hub-{number}"),
        Some((host, number)) => {
            let detail: HostDetail = hub.get(&["v1", "hosts", host]).await?;
            format!("{}-{number}", detail.host.id)
        }
    })
}

fn show_one(alert: &IncidentView, screen: &Screen) -> Result<(), CliError> {
    screen.show(alert, |alert, style| render::alert::alerts(std::slice::from_ref(alert), clock::now(), style))
}

async fn log(args: &LogArgs, hub: &Hub, screen: &Screen) -> Result<(), CliError> {
    let of = match (&args.host, &args.alert) {
        (Some(host), _) => {
            let detail: HostDetail = hub.get(&["v1", "hosts", host]).await?;
            Some(("host", detail.host.id.to_string()))
        }
        (None, Some(alert)) => Some(("alert", alert_id(hub, alert).await?)),
        (None, None) => None,
    };
    let query: Vec<(&str, &str)> = of.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let limit = usize::try_from(args.limit).unwrap_or(usize::MAX);
    let newest: Vec<LogView> = hub.list(&["v1", "alerts", "log"], &query, limit).await?;
    screen.show(&newest, |entries, style| render::alert::log(entries, style))
}

async fn explain(args: ExplainArgs, hub: &Hub, screen: &Screen) -> Result<(), CliError> {
    let ExplainArgs { code, host, guest, severity } = args;
    let request = ExplainRequest { code, host, guest, severity };
    let explained: ExplanationView = hub.post(&["v1", "alerts", "explain"], &request).await?;
    screen.show(&explained, |explained, _| render::explanation::explanation(explained))
}
