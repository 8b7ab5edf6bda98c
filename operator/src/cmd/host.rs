//! `holdfast host`.

use std::path::Path;

use holdfast_protocol::operator::{
    HostDetail, HostView, InviteCreated, InviteRequest, KnockApproval, KnockView,
};
use serde_json::json;

use crate::args::HostCommand;
use crate::exit::CliError;
use crate::hub::{Hub, WHOLE};
use crate::screen::Screen;
use crate::{ask, clock, render};

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
        HostCommand::List { knocks: false } => {
            let hosts: Vec<HostView> = hub.list(&["v1", "hosts"], &[], WHOLE).await?;
            screen.show(&hosts, |hosts, style| render::host::hosts(hosts, clock::now(), style))
        }
        HostCommand::Show { host } => {
            let detail: HostDetail = hub.get(&["v1", "hosts", &host]).await?;
            screen.show(&detail, |detail, style| render::host::host(detail, clock::now(), style))
        }
        HostCommand::Knocks | HostCommand::List { knocks: true } => {
            let knocks: Vec<KnockView> = hub.list(&["v1", "knocks"], &[], WHOLE).await?;
            screen.show(&knocks, |knocks, style| render::host::knocks(knocks, clock::now(), style))
        }
        HostCommand::Approve { knock, name, fingerprint, returns } => {
            let approval = KnockApproval { host_name: name, fingerprint, returns };
            let knock: KnockView =
                hub.post(&["v1", "knocks", &knock.to_string(), "approve"], &approval).await?;
            one_knock(knock, screen)
        }
        HostCommand::Refuse { knock, sure } => {
            ask::confirm(&format!("Refuse knock {knock} for good?"), sure)?;
            let path = ["v1", "knocks", &knock.to_string(), "refuse"];
            let knock: KnockView = hub.post(&path, &json!({})).await?;
            one_knock(knock, screen)
        }
        HostCommand::Revoke { host, sure } => {
            let detail: HostDetail = hub.get(&["v1", "hosts", &host]).await?;
            let (name, guests) = (&detail.host.name, detail.host.guests);
            ask::confirm(
                &format!("Let {name} go? Its agent is not served any more; its {guests} guests run on."),
                sure,
            )?;
            let id = detail.host.id.to_string();
            let host: HostView = hub.post(&["v1", "hosts", &id, "revoke"], &json!({})).await?;
            screen.show(&host, |host, style| {
                render::host::hosts(std::slice::from_ref(host), clock::now(), style)
            })
        }
    }
}

fn one_knock(knock: KnockView, screen: &Screen) -> Result<(), CliError> {
    screen.show(&knock, |knock, style| render::host::knocks(std::slice::from_ref(knock), clock::now(), style))
}
