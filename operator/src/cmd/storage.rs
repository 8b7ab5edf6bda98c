//! `holdfast storage`: storage targets as last reported by their agents.

use holdfast_protocol::id::HostName;
use holdfast_protocol::storage::report::TargetReport;
use serde::Serialize;

use super::guest::hosts;
use super::resource;
use crate::args::StorageCommand;
use crate::error::CliError;
use crate::hub::Hub;
use crate::screen::Screen;
use crate::{clock, render};

/// A target with its host: the document for programs.
#[derive(Debug, Serialize)]
struct OnHost {
    host: HostName,
    #[serde(flatten)]
    target: TargetReport,
}

pub async fn run(command: StorageCommand, hub: &Hub, screen: &Screen) -> Result<(), CliError> {
    let host = match command {
        StorageCommand::List { host } => host,
        StorageCommand::Set(args) => return resource::set(resource::STORAGE, &args, hub, screen).await,
        StorageCommand::Remove(args) => return resource::remove(resource::STORAGE, &args, hub, screen).await,
        StorageCommand::Seal(args) => return super::seal::run(args, hub, screen).await,
    };
    let mut targets = Vec::new();
    for detail in hosts(hub, host.as_deref()).await? {
        let host = detail.host.name;
        let reports = detail.sections.storage.unwrap_or_default();
        targets.extend(reports.into_iter().map(|target| OnHost { host: host.clone(), target }));
    }
    screen.show(&targets, |targets, style| {
        let pairs: Vec<_> = targets.iter().map(|on_host| (&on_host.host, &on_host.target)).collect();
        render::storage::targets(&pairs, clock::now(), style)
    })
}
