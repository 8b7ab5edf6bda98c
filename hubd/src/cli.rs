//! The command line of `hubd`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};
use holdfast_protocol::id::{HostName, OperatorName};
use holdfast_protocol::operator::Role;

use crate::settings::PublicUrl;

mod backup;
mod ca;
mod db;
mod hidden_prompt;
mod opened_store;
mod operator;
mod serve;
mod sign_in;
mod step_down;
mod transfer;

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
    /// The database of the hub: the file in its folder, or the one that the settings name.
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
    /// Write all rows and the folder with its keys into one file, also while the hub serves.
    Backup {
        /// The folder of the hub.
        #[arg(long, env = "HOLDFAST_HUB_DIR")]
        dir: PathBuf,
        /// The settings file of the hub [default: hub.toml in the folder, if it exists].
        #[arg(long, env = "HOLDFAST_HUB_CONFIG")]
        config: Option<PathBuf>,
        /// The file to write, which must not exist; or a folder, for a file named by the time.
        #[arg(long)]
        to: PathBuf,
        /// In a folder: remove all but this many of the newest backups afterwards.
        #[arg(long, value_parser = clap::value_parser!(u32).range(1..=10_000))]
        keep: Option<u32>,
        /// The form of the output.
        #[arg(long, value_enum, default_value_t)]
        output: OutputForm,
    },
    /// Make a hub from a backup, in a folder without one.
    Restore {
        /// The folder of the hub to be. It may hold a `hub.toml`, which is kept.
        #[arg(long, env = "HOLDFAST_HUB_DIR")]
        dir: PathBuf,
        /// The settings file, which says where the rows go [default: hub.toml in the folder, else the one in the backup].
        #[arg(long, env = "HOLDFAST_HUB_CONFIG")]
        config: Option<PathBuf>,
        /// The backup.
        #[arg(long)]
        from: PathBuf,
        /// The form of the output.
        #[arg(long, value_enum, default_value_t)]
        output: OutputForm,
    },
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum OutputForm {
    /// For a person.
    #[default]
    Text,
    /// One JSON object.
    Json,
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
    /// Write all rows into one file, also while the hub serves.
    Export {
        /// The file to write, which must not exist.
        #[arg(long)]
        to: PathBuf,
        /// The form of the output.
        #[arg(long, value_enum, default_value_t)]
        output: OutputForm,
    },
    /// Read all rows from an export or a backup into an empty database. The hub must be stopped.
    Import {
        /// The file that `hubd db export` or `hubd backup` wrote.
        #[arg(long)]
        from: PathBuf,
        /// The form of the output.
        #[arg(long, value_enum, default_value_t)]
        output: OutputForm,
    },
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
    /// Let an operator sign in by the provider in [oidc] of hub.toml. It replaces a link before.
    LinkOidc {
        /// The name.
        name: OperatorName,
        #[command(flatten)]
        person: PersonArgument,
    },
    /// Revoke an operator: all their tokens become invalid at once.
    Revoke {
        /// The name.
        name: OperatorName,
    },
}

/// Who the operator is at the provider.
#[derive(Clone, Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct PersonArgument {
    /// The claim `sub` that the provider gives them, as a refused sign-in shows it.
    #[arg(long)]
    subject: Option<String>,
    /// The claim that oidc.person_claim names, such as an e-mail address: it counts for the first sign-in, whose subject is kept.
    #[arg(long)]
    person: Option<String>,
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
        Command::Backup { dir, config, to, keep, output } => {
            step_down::to_owner_of(&dir)?;
            let request = backup::BackupRequest { dir, config, to, keep, output };
            transfer::blocking(move || backup::back_up(&request)).await
        }
        Command::Restore { dir, config, from, output } => {
            step_down::to_owner_of(&dir)?;
            transfer::blocking(move || backup::restore(&dir, config, &from, output)).await
        }
    }
}
