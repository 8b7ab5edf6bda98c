//! `holdfast policy`: backup policies of hosts' documents.

use holdfast_protocol::resource::view::PartView;

use super::resource;
use crate::args::PolicyCommand;
use crate::error::CliError;
use crate::hub::{Hub, WHOLE};
use crate::screen::Screen;
use crate::{clock, render};

pub async fn run(command: PolicyCommand, hub: &Hub, screen: &Screen) -> Result<(), CliError> {
    match command {
        PolicyCommand::List { host } => {
            let path = ["v1", "hosts", &host, resource::POLICIES];
            let policies: Vec<PartView> = hub.list(&path, &[], WHOLE).await?;
            screen.show(&policies, |policies, style| render::policy::policies(policies, clock::now(), style))
        }
        PolicyCommand::Put(args) => resource::put(resource::POLICIES, &args, hub, screen).await,
        PolicyCommand::Set(args) => resource::set(resource::POLICIES, &args, hub, screen).await,
        PolicyCommand::Remove(args) => resource::remove(resource::POLICIES, &args, hub, screen).await,
    }
}
