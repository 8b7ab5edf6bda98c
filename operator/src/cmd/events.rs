//! `holdfast events`: the event log of the hub.

use std::collections::BTreeMap;

use holdfast_protocol::id::{HostId, HostName};
use holdfast_protocol::operator::{EventView, GuestOnHost, HostDetail, HostView};

use crate::args::EventsArgs;
use crate::error::CliError;
use crate::hub::{Hub, HubError, WHOLE};
use crate::render;
use crate::screen::Screen;

pub async fn run(args: &EventsArgs, hub: &Hub, screen: &Screen) -> Result<(), CliError> {
    let only = match &args.host {
        Some(host) => Some(hub.get::<HostDetail>(&["v1", "hosts", host]).await?.host.id.to_string()),
        None => None,
    };
    let query: Vec<(&str, &str)> = only.iter().map(|id| ("host", id.as_str())).collect();
    let names = names(hub).await?;
    let limit = usize::try_from(args.limit).unwrap_or(usize::MAX);
    let mut newest: Vec<EventView> = hub.list(&["v1", "events"], &query, limit).await?;
    newest.sort_by_key(|event| event.number);
    screen.show(&newest, |events, style| render::event::events(events, &names, style))
}

/// Names of hosts. A customer has no hosts, and knows those of their guests.
async fn names(hub: &Hub) -> Result<BTreeMap<HostId, HostName>, CliError> {
    let hosts: Result<Vec<HostView>, HubError> = hub.list(&["v1", "hosts"], &[], WHOLE).await;
    match hosts {
        Ok(hosts) => Ok(hosts.into_iter().map(|host| (host.id, host.name)).collect()),
        Err(error) if error.is_forbidden() => {
            let guests: Vec<GuestOnHost> = hub.list(&["v1", "guests"], &[], WHOLE).await?;
            Ok(guests.into_iter().map(|guest| (guest.host_id, guest.host)).collect())
        }
        Err(error) => Err(error.into()),
    }
}
