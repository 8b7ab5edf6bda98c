//! The command line of `hubd`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};
use holdfast_protocol::id::OperatorName;
use holdfast_protocol::operator::Role;

use crate::settings::PublicUrl;

mod db;
mod hidden_prompt;
mod operator;
mod serve;
mod sign_in;
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
    /// Set the password of an operator: typed without being shown, or one line of standard input. Their sessions end.
    Password {
        /// The name.
        name: OperatorName,
    },
    /// Print a link by which an operator signs in once, within 15 minutes, to set a password and an authenticator.
    SignInLink {
        /// The name.
        name: OperatorName,
        /// The link opens a whole session, without password and authenticator.
        #[arg(long)]
        full: bool,
        /// How the hub is reached [default: as the settings say, which a flag of `hubd serve` does not change].
        #[arg(long)]
        public_url: Option<PublicUrl>,
    },
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
        Command::Db { dir, config, command } => {
            step_down::to_owner_of(&dir)?;
            db::run(dir, config, command).await
        }
    }
}
