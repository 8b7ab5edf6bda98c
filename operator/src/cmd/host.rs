//! `holdfast host`: invites, enrollment requests, hosts.

use std::path::Path;

use holdfast_protocol::operator::{
    EnrollmentRequestView, HostDetail, HostView, InviteCreated, InviteRequest,
};
use serde_json::json;

use crate::args::HostCommand;
use crate::error::CliError;
use crate::hub::{Hub, WHOLE};
use crate::screen::Screen;
use crate::{clock, prompt, render};

pub async fn run(command: HostCommand, hub: &Hub, folder: &Path, screen: &Screen) -> Result<(), CliError> {
    match command {
        HostCommand::Invite { name } => {
            let request = InviteRequest { host_name: name };
            let invite: InviteCreated = hub.post(&["v1", "invites"], &request).await?;
            screen.show(&invite, |invite, _| render::host::invite(invite, clock::now()))
        }
        HostCommand::Restore(args) => super::restore::run(args, hub, folder, screen).await,
        HostCommand::Withdraw(args) => super::withdraw::run(args, hub, folder, screen).await,
        HostCommand::Pin(args) => super::pin::run(args, hub, folder, screen).await,
        HostCommand::List { requests: false, filter } => {
            let filter = filter.map(|filter| filter.to_string());
            let query: Vec<(&str, &str)> = filter.iter().map(|filter| ("filter", filter.as_str())).collect();
            let hosts: Vec<HostView> = hub.list(&["v1", "hosts"], &query, WHOLE).await?;
            screen.show(&hosts, |hosts, style| render::host::hosts(hosts, clock::now(), style))
        }
        HostCommand::Show { host } => {
            let detail: HostDetail = hub.get(&["v1", "hosts", &host]).await?;
            screen.show(&detail, |detail, style| render::host::host(detail, clock::now(), style))
        }
        HostCommand::Label { host, changes } => super::host_label::label(&host, changes, hub, screen).await,
        HostCommand::Window(args) => super::host_label::window(args, hub, screen).await,
        HostCommand::Maintenance { host, end, reason } => {
            super::silence::maintenance(&host, (end, reason), hub, screen).await
        }
        HostCommand::Requests | HostCommand::List { requests: true, .. } => {
            let requests: Vec<EnrollmentRequestView> =
                hub.list(&["v1", "enrollment-requests"], &[], WHOLE).await?;
            screen.show(&requests, |requests, style| {
                render::host::enrollment_requests(requests, clock::now(), style)
            })
        }
        HostCommand::Approve(args) => {
            show_request(super::approve::run(args, hub, folder, screen).await?, screen)
        }
        HostCommand::Refuse { request, assume_yes } => {
            prompt::confirm(&format!("Refuse enrollment request {request} for good?"), assume_yes)?;
            let path = ["v1", "enrollment-requests", &request.to_string(), "refuse"];
            let request: EnrollmentRequestView = hub.post(&path, &json!({})).await?;
            show_request(request, screen)
        }
        HostCommand::Revoke { host, assume_yes } => {
            let detail: HostDetail = hub.get(&["v1", "hosts", &host]).await?;
            let (name, guests) = (&detail.host.name, detail.host.guests);
            prompt::confirm(
                &format!(
                    "Revoke {name}? Its agent is not served any more; its {guests} guests keep running."
                ),
                assume_yes,
            )?;
            let id = detail.host.id.to_string();
            let host: HostView = hub.post(&["v1", "hosts", &id, "revoke"], &json!({})).await?;
            screen.show(&host, |host, style| {
                render::host::hosts(std::slice::from_ref(host), clock::now(), style)
            })
        }
    }
}

fn show_request(request: EnrollmentRequestView, screen: &Screen) -> Result<(), CliError> {
    screen.show(&request, |request, style| {
        render::host::enrollment_requests(std::slice::from_ref(request), clock::now(), style)
    })
}
