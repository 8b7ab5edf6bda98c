//! `holdfast events`: the event log of the hub.

use std::collections::BTreeMap;

use holdfast_protocol::id::{HostId, HostName};
use holdfast_protocol::operator::{EventView, HostDetail, HostView};

use crate::args::EventsArgs;
use crate::error::CliError;
use crate::hub::{Hub, WHOLE};
use crate::render;
use crate::screen::Screen;

pub async fn run(args: &EventsArgs, hub: &Hub, screen: &Screen) -> Result<(), CliError> {
    let hosts: Vec<HostView> = hub.list(&["v1", "hosts"], &[], WHOLE).await?;
    let only = match &args.host {
        Some(host) => Some(hub.get::<HostDetail>(&["v1", "hosts", host]).await?.host.id.to_string()),
        None => None,
    };
    let query: Vec<(&str, &str)> = only.iter().map(|id| ("host", id.as_str())).collect();
    let names: BTreeMap<HostId, HostName> = hosts.into_iter().map(|host| (host.id, host.name)).collect();
    let limit = usize::try_from(args.limit).unwrap_or(usize::MAX);
    let mut newest: Vec<EventView> = hub.list(&["v1", "events"], &query, limit).await?;
    newest.sort_by_key(|event| event.number);
    screen.show(&newest, |events, style| render::event::events(events, &names, style))
}
