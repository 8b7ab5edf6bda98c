//! `holdfast alert silence`, and maintenance of hosts.

use holdfast_protocol::alert::{MaintenanceRequest, MaintenanceView, SilenceRequest, SilenceView};
use holdfast_protocol::condition::ConditionText;
use serde_json::json;

use crate::args::{EndOrNow, SilenceCommand};
use crate::error::CliError;
use crate::hub::{Hub, WHOLE};
use crate::screen::Screen;
use crate::{clock, render};

pub async fn run(command: SilenceCommand, hub: &Hub, screen: &Screen) -> Result<(), CliError> {
    match command {
        SilenceCommand::Add { matchers, end, comment } => {
            let request = SilenceRequest { matchers, until: end.at(clock::now()), comment };
            let added: SilenceView = hub.post(&["v1", "silences"], &request).await?;
            screen.show(&added, |added, style| {
                render::mute::silences(std::slice::from_ref(added), clock::now(), style)
            })
        }
        SilenceCommand::List => {
            let all: Vec<SilenceView> = hub.list(&["v1", "silences"], &[], WHOLE).await?;
            screen.show(&all, |all, style| render::mute::silences(all, clock::now(), style))
        }
        SilenceCommand::End { silence } => {
            let path = ["v1", "silences", &silence.to_string(), "end"];
            let ended: SilenceView = hub.post(&path, &json!({})).await?;
            screen.show(&ended, |ended, _| render::mute::ended(ended))
        }
    }
}

/// Announces or ends maintenance of a host.
pub async fn maintenance(
    host: &str,
    (end, reason): (EndOrNow, Option<ConditionText>),
    hub: &Hub,
    screen: &Screen,
) -> Result<(), CliError> {
    let view: MaintenanceView = match end.at(clock::now()) {
        Some(until) => {
            hub.post(&["v1", "hosts", host, "maintenance"], &MaintenanceRequest { until, reason }).await?
        }
        None => hub.post(&["v1", "hosts", host, "maintenance", "end"], &json!({})).await?,
    };
    screen.show(&view, |view, _| render::mute::maintenance(view, clock::now()))
}
