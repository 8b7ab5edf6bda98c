//! The command line of `hubd`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};
use holdfast_protocol::id::{HostName, OperatorName};
use holdfast_protocol::operator::Role;

use crate::settings::PublicUrl;

mod ca;
mod db;
mod opened_store;
mod operator;
mod serve;
mod step_down;

/// The Holdfast hub: stores desired documents, receives reports from hosts, and notices hosts that are silent.
#[derive(Debug, Parser)]
#[command(name = "hubd", version)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the hub. In an empty folder, everything is created.
    Serve {
        /// The folder for all of the hub's data.
        #[arg(long, env = "HOLDFAST_HUB_DIR")]
        dir: PathBuf,
        /// A settings file [default: hub.toml in the folder, if it exists].
        #[arg(long, env = "HOLDFAST_HUB_CONFIG")]
        config: Option<PathBuf>,
        /// The address to listen on [default: 127.0.0.1:8440].
        #[arg(long)]
        listen: Option<SocketAddr>,
        /// The URL at which agents and operators reach the hub, such as `https://hub.example:8440`.
        #[arg(long)]
        public_url: Option<PublicUrl>,
    },
    /// Operators of the hub. Works on the folder itself, whether or not the hub runs.
    Operator {
        /// The folder of the hub.
        #[arg(long, env = "HOLDFAST_HUB_DIR", global = true, default_value = ".")]
        dir: PathBuf,
        /// The settings file of the hub [default: hub.toml in the folder, if it exists].
        #[arg(long, env = "HOLDFAST_HUB_CONFIG", global = true)]
        config: Option<PathBuf>,
        #[command(subcommand)]
        command: OperatorCommand,
    },
    /// The hub's own CA, which agents and operators pin. Works on the folder itself, whether or not the hub runs.
    Ca {
        /// The folder of the hub.
        #[arg(long, env = "HOLDFAST_HUB_DIR", global = true, default_value = ".")]
        dir: PathBuf,
        /// The settings file of the hub [default: hub.toml in the folder, if it exists].
        #[arg(long, env = "HOLDFAST_HUB_CONFIG", global = true)]
        config: Option<PathBuf>,
        #[command(subcommand)]
        command: CaCommand,
    },
    /// The PostgreSQL database that the settings name.
    Db {
        /// The folder of the hub.
        #[arg(long, env = "HOLDFAST_HUB_DIR", global = true, default_value = ".")]
        dir: PathBuf,
        /// The settings file of the hub [default: hub.toml in the folder, if it exists].
        #[arg(long, env = "HOLDFAST_HUB_CONFIG", global = true)]
        config: Option<PathBuf>,
        #[command(subcommand)]
        command: DbCommand,
    },
}

#[derive(Debug, Subcommand)]
enum CaCommand {
    /// Change the CA. Hosts follow by themselves; a running hub takes each step within seconds.
    Rotate {
        #[command(subcommand)]
        step: RotateStep,
    },
}

#[derive(Debug, Subcommand)]
enum RotateStep {
    /// Make a second CA. Each host gets a certificate of it with its next check-in.
    Begin,
    /// Show which CA each host's certificate is of, and what `finish` would do.
    Status,
    /// End the change: the hub's own certificate is of the new CA, and those of the old one are accepted no more.
    Finish {
        /// A host that still uses the old CA and is left behind: it has to ask to be let in again.
        #[arg(long, value_name = "HOST")]
        leave: Vec<HostName>,
        /// Leave all behind that still use the old CA.
        #[arg(long, conflicts_with = "leave")]
        force: bool,
    },
    /// Take the change back: hosts get certificates of the old CA again. `finish` removes the new one.
    Abort,
}

#[derive(Debug, Subcommand)]
enum DbCommand {
    /// Create the tables in an empty database, or bring them to this version. Run it before a newer hub starts.
    Migrate,
}

#[derive(Debug, Subcommand)]
enum OperatorCommand {
    /// Create an operator, or another token for one. The token is shown only once.
    Add {
        /// The name.
        name: OperatorName,
        /// What the operator may do.
        #[arg(long, value_enum)]
        role: RoleArgument,
        /// How many days the token is valid.
        #[arg(long, default_value_t = 90, value_parser = clap::value_parser!(u32).range(1..=3650))]
        days: u32,
    },
    /// Show all operators, including revoked ones.
    List,
    /// Revoke an operator: all their tokens become invalid at once.
    Revoke {
        /// The name.
        name: OperatorName,
    },
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum RoleArgument {
    /// May only read.
    Viewer,
    /// May invite and approve hosts, and apply desired documents.
    Operator,
    /// May create and revoke operators.
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
            let credentials = std::env::var_os("CREDENTIALS_DIRECTORY").map(PathBuf::from);
            serve::run(crate::settings::Given { dir, config, listen, public_url, credentials }).await
        }
        Command::Operator { dir, config, command } => {
            step_down::to_owner_of(&dir)?;
            operator::run(dir, config, command).await
        }
        Command::Ca { dir, config, command: CaCommand::Rotate { step } } => {
            step_down::to_owner_of(&dir)?;
            ca::run(dir, config, step).await
        }
        Command::Db { dir, config, command } => {
            step_down::to_owner_of(&dir)?;
            db::run(dir, config, command).await
        }
    }
}
