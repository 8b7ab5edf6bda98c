//! The command line of `hubd`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};
use holdfast_protocol::id::OperatorName;
use holdfast_protocol::operator::Role;

use crate::settings::PublicUrl;

mod operator;
mod serve;
mod step_down;

/// The Holdfast hub: holds what is wanted, hears how it is, notices silence.
#[derive(Debug, Parser)]
#[command(name = "hubd", version)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs the hub. In an empty folder everything is made.
    Serve {
        /// The folder in which everything is kept.
        #[arg(long, env = "HOLDFAST_HUB_DIR")]
        dir: PathBuf,
        /// A settings file [default: hub.toml in the folder, if it is there].
        #[arg(long, env = "HOLDFAST_HUB_CONFIG")]
        config: Option<PathBuf>,
        /// Where to listen [default: 127.0.0.1:8440].
        #[arg(long)]
        listen: Option<SocketAddr>,
        /// How agents and operators reach the hub, such as `https://hub.example:8440`.
        #[arg(long)]
        public_url: Option<PublicUrl>,
    },
    /// Who may use the hub. Works on the folder itself, while the hub runs or not.
    Operator {
        /// The folder of the hub.
        #[arg(long, env = "HOLDFAST_HUB_DIR", global = true, default_value = ".")]
        dir: PathBuf,
        #[command(subcommand)]
        command: OperatorCommand,
    },
}

#[derive(Debug, Subcommand)]
enum OperatorCommand {
    /// Makes an operator, or another token for one, and prints the token this once.
    Add {
        /// The name.
        name: OperatorName,
        /// What they may do.
        #[arg(long, value_enum)]
        role: RoleArgument,
        /// How many days the token lives.
        #[arg(long, default_value_t = 90, value_parser = clap::value_parser!(u32).range(1..=3650))]
        days: u32,
    },
    /// Shows who there is, and was.
    List,
    /// Lets an operator go: their tokens end at once.
    Revoke {
        /// The name.
        name: OperatorName,
    },
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum RoleArgument {
    /// Looks.
    Viewer,
    /// Invites, approves, puts desired documents.
    Operator,
    /// Makes and revokes operators.
    Admin,
}

impl From<RoleArgument> for Role {
    fn from(role: RoleArgument) -> Self {
        match role {
            RoleArgument::Viewer => Self::Viewer,
            RoleArgument::Operator => Self::Operator,
            RoleArgument::Admin => Self::Admin,
        }
    }
}

/// Does what the command line says.
///
/// # Errors
/// Whatever kept it from that, for a person to read.
pub async fn run(arguments: Arguments) -> anyhow::Result<()> {
    match arguments.command {
        Command::Serve { dir, config, listen, public_url } => {
            step_down::to_owner_of(&dir)?;
            serve::run(crate::settings::Given { dir, config, listen, public_url }).await
        }
        Command::Operator { dir, command } => {
            step_down::to_owner_of(&dir)?;
            operator::run(&dir, command).await
        }
    }
}
