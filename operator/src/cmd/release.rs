//! `holdfast release`: manifests, signatures, and releases at the hub.

mod manifest;
mod offer;
mod sign;
mod stored;
mod verify;

use crate::args::ReleaseCommand;
use crate::error::CliError;
use crate::hub::Hub;
use crate::screen::Screen;

/// Runs what needs no hub, and hands back what does.
pub fn offline(command: ReleaseCommand, screen: &Screen) -> Result<Option<ReleaseCommand>, CliError> {
    match command {
        ReleaseCommand::Manifest(args) => manifest::run(args, screen)?,
        ReleaseCommand::Sign { file, key } => sign::run(file, &key, screen)?,
        ReleaseCommand::Verify(args) => verify::run(args, screen)?,
        online @ (ReleaseCommand::Upload { .. }
        | ReleaseCommand::List
        | ReleaseCommand::Offer { .. }
        | ReleaseCommand::Withdraw { .. }
        | ReleaseCommand::Delete { .. }) => return Ok(Some(online)),
    }
    Ok(None)
}

/// Runs what needs the hub.
pub async fn run(command: ReleaseCommand, hub: &Hub, screen: &Screen) -> Result<(), CliError> {
    match offline(command, screen)? {
        Some(ReleaseCommand::Upload { signed, files }) => stored::upload(&signed, &files, hub, screen).await,
        Some(ReleaseCommand::List) => stored::list(hub, screen).await,
        Some(ReleaseCommand::Offer { version, hosts }) => offer::offer(version, &hosts, hub, screen).await,
        Some(ReleaseCommand::Withdraw { hosts }) => offer::withdraw(&hosts, hub, screen).await,
        Some(ReleaseCommand::Delete { version, assume_yes }) => {
            stored::delete(version, assume_yes, hub, screen).await
        }
        None
        | Some(ReleaseCommand::Manifest(_) | ReleaseCommand::Sign { .. } | ReleaseCommand::Verify(_)) => {
            Ok(())
        }
    }
}
