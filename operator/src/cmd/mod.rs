//! Commands, one module each.

mod alert;
mod approval;
pub mod approve;
pub mod audit;
mod certificate;
mod customer;
mod desired;
pub mod escrow;
mod events;
mod export;
pub mod golden;
mod guest;
pub mod guest_audit;
mod guest_job;
mod host;
mod host_label;
mod image_builds;
mod job;
mod login;
mod operator;
mod order;
mod pin;
mod policy;
mod receiver_test;
mod release;
mod resource;
pub mod restore;
mod rollout;
pub mod seal;
mod sign;
mod silence;
mod state;
mod storage;
mod token;
mod top;
pub mod tunnel_token;
mod watch;
pub mod withdraw;

use std::path::PathBuf;

use net::tls::Trust;

use crate::args::{AuditCommand, Command};
use crate::config::{self, Login};
use crate::error::CliError;
use crate::hub::Hub;
use crate::render;
use crate::screen::Screen;

/// Runs the command.
pub async fn run(command: Command, config: Option<PathBuf>, screen: &Screen) -> Result<(), CliError> {
    let folder = config::folder(config)?;
    if let Command::Login(args) = command {
        return login::login(args, &folder, screen).await;
    }
    if let Command::Audit(AuditCommand::Verify { file, host: None }) = &command {
        return audit::run(file, None, screen).await;
    }
    if let Command::Certificate(command) = command {
        return certificate::run(command, screen);
    }
    let command = match command {
        Command::Release(command) => match release::offline(command, screen)? {
            Some(command) => Command::Release(command),
            None => return Ok(()),
        },
        other => other,
    };
    let login = config::load(&folder)?;
    let hub = connect(&login, screen)?;
    match command {
        Command::Login(_) | Command::Certificate(_) => Ok(()),
        Command::Whoami => {
            let who = hub.get(&["v1", "whoami"]).await?;
            screen.show(&who, |who, _| render::login::whoami(&login.url, who))
        }
        Command::Host(command) => host::run(command, &hub, &folder, screen).await,
        Command::Desired(command) => desired::run(command, &hub, screen).await,
        Command::Guest(command) => guest::run(command, &hub, screen).await,
        Command::Policy(command) => policy::run(command, &hub, screen).await,
        Command::Golden(command) => golden::run(command, &hub, screen).await,
        Command::Storage(command) => storage::run(command, &hub, screen).await,
        Command::Escrow(command) => escrow::run(command, &hub, screen).await,
        Command::Sign(args) => sign::run(*args, &hub, &folder, screen).await,
        Command::Release(command) => release::run(command, &hub, screen).await,
        Command::Rollout(command) => rollout::run(command, &hub, screen).await,
        Command::Order(command) => Box::pin(order::run(command, &hub, screen)).await,
        Command::Job(command) => job::run(command, &hub, &folder, screen).await,
        Command::Audit(AuditCommand::Verify { file, host }) => {
            audit::run(&file, host.as_deref().map(|host| (host, &hub)), screen).await
        }
        Command::Operator(command) => operator::run(command, &hub, screen).await,
        Command::Token(command) => token::run(command, &hub, screen).await,
        Command::Customer(command) => customer::run(command, &hub, screen).await,
        Command::Alert(command) => alert::run(command, &hub, screen).await,
        Command::Top(args) => top::run(args, &hub, screen).await,
        Command::Events(args) => events::run(&args, &hub, screen).await,
        Command::State(command) => state::run(command, &hub, screen).await,
        Command::Export(args) => export::run(args, &hub, screen).await,
    }
}

fn connect(login: &Login, screen: &Screen) -> Result<Hub, CliError> {
    Ok(Hub::new(&login.url, &Trust::from(&login.ca), &login.token, screen.correlation())?)
}
