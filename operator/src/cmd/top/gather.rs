//! One look at the hub.

use std::collections::BTreeSet;

use holdfast_protocol::alert::IncidentView;
use holdfast_protocol::operator::{HostDetail, HostState, HostView};

use super::picture::{GuestLine, Picture, WorkLine};
use crate::clock;
use crate::error::CliError;
use crate::hub::{Hub, WHOLE};

/// Hosts that are looked into at each look, at most. Each costs a call.
const LOOKED_INTO: usize = 20;

pub async fn picture(hub: &Hub) -> Result<Picture, CliError> {
    let alerts: Vec<IncidentView> = hub.list(&["v1", "alerts"], &[], WHOLE).await?;
    let mut hosts: Vec<HostView> = hub.list(&["v1", "hosts"], &[], WHOLE).await?;
    hosts.retain(|host| host.state != HostState::Revoked);
    let of_alerts: BTreeSet<String> =
        alerts.iter().filter_map(|alert| Some(alert.host.as_ref()?.to_string())).collect();
    hosts.sort_by_key(|host| {
        let alerted = of_alerts.contains(host.name.as_str());
        (!alerted, host.attention == 0, host.guests_running == host.guests, host.name.clone())
    });
    let (mut guests, mut work) = (Vec::new(), Vec::new());
    for host in hosts.iter().take(LOOKED_INTO) {
        let id = host.id.to_string();
        // One that was let go meanwhile is not there.
        let Some(detail) = hub.find::<HostDetail>(&["v1", "hosts", &id]).await? else { continue };
        let name = detail.host.name;
        let reported = detail.sections.guests.unwrap_or_default();
        guests.extend(reported.into_iter().map(|guest| GuestLine { host: name.clone(), guest }));
        let open = detail.sections.operations.unwrap_or_default().into_iter();
        let open = open.filter(|operation| !operation.status.is_end());
        work.extend(open.map(|operation| WorkLine { host: name.clone(), operation }));
    }
    let looked_into = hosts.len().min(LOOKED_INTO);
    Ok(Picture::of(clock::now(), (alerts, hosts), (guests, work), looked_into))
}
