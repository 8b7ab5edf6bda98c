//! `agentd renew-tokens`: new tokens for Proxmox, without a gap.
//!
//! Root's timer runs it, since no token can change, list or make tokens of its own user. For each token that is old
//! enough it makes another next to it, with the same entries of the access list, and has the running agent use that one;
//! then the lasting one is made anew in the same way ([`step`] has the states). Input: the settings, and Proxmox as root.
//! Output: a line for each token. Deliberately absent: rights that the agent lacks; `setup` grants those.

mod credential;
mod perform;
pub mod step;
mod write;

use std::collections::BTreeMap;
use std::path::PathBuf;

use holdfast_protocol::json::chain;
use serde::Serialize;

use super::Output;
use crate::model::token_age::TokenAge;
use crate::port::admin_socket::{self, StatusError};
use crate::port::pve::{Role, SetUpError};
use crate::settings::{ConfigPath, Settings, SettingsError};
use crate::setup::access::Way;
use crate::setup::{SetupError, way_by_api};
use credential::{Credential, CredentialError};
use perform::{Outcome, Renewal};
use step::Turn;

/// The arguments.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
The package's holdfast-proxmox-tokens.timer runs this as root. A token is made anew after `token_renewal.proxmox_days` \
of the settings (30). The running agent tries each new token before it uses it, and the one of before is removed only \
then. A run that is cut off is taken up by the next one. Exit code 75: no agent runs, and nothing was changed.")]
pub struct RenewTokensArguments {
    #[command(flatten)]
    config: ConfigPath,
    /// Renew all tokens now, whatever their age.
    #[arg(long)]
    now: bool,
    /// Use the API at this address instead of `pveum` and `pvesh`.
    #[arg(long, value_name = "URL", requires = "credential")]
    api: Option<String>,
    /// The credential of a user who may change access control, as for `agentd setup`.
    #[arg(long, value_name = "FILE", requires = "api")]
    credential: Option<PathBuf>,
    /// Table for people, or JSON for programs.
    #[arg(long, value_enum, default_value_t = Output::Table)]
    output: Output,
}

/// Why tokens were not renewed.
#[derive(Debug, thiserror::Error)]
pub enum RenewTokensError {
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error(transparent)]
    Credential(#[from] CredentialError),
    #[error(transparent)]
    Client(#[from] SetUpError),
    /// The credential for the API, or the runtime.
    #[error(transparent)]
    Way(#[from] SetupError),
    /// No proof, no renewal.
    #[error("no token was touched: only the running agent can say that it uses a new one")]
    Agent(#[source] StatusError),
    /// By hand and by the timer at once.
    #[error("another run renews tokens just now, or the settings cannot be opened; nothing was changed")]
    Busy(#[source] std::io::Error),
    #[error("the program cannot start its runtime")]
    Runtime(#[source] std::io::Error),
    /// They were printed.
    #[error("{0} of the tokens above were not renewed; those in use still work")]
    Failed(usize),
}

impl RenewTokensError {
    /// The exit code, by sysexits.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Settings(_) | Self::Credential(_) | Self::Client(_) => 78,
            Self::Way(error) => error.exit_code(),
            Self::Agent(StatusError::NotRunning { .. }) | Self::Busy(_) => 75,
            Self::Agent(error) => error.exit_code(),
            Self::Runtime(_) => 71,
            Self::Failed(_) => 1,
        }
    }
}

#[derive(Serialize)]
struct Report {
    schema: &'static str,
    failed: usize,
    tokens: Vec<Line>,
}

/// One token.
#[derive(Serialize)]
struct Line {
    role: Role,
    #[serde(skip_serializing_if = "Option::is_none")]
    days_old: Option<i64>,
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
}

/// The user of Proxmox that has the tokens.
fn user_of(settings: &Settings) -> &str {
    write::parts(&settings.proxmox.tokens.observe.id).0
}

/// Runs the command.
///
/// # Errors
/// [`RenewTokensError`]; whatever it is, the tokens in use still work.
pub fn run(arguments: &RenewTokensArguments) -> Result<(), RenewTokensError> {
    let settings = Settings::load(&arguments.config)?;
    // Two runs would remove each other's tokens. The settings are root's, so no one else holds this lock for ever.
    let only_one = std::fs::File::open(&arguments.config.config).map_err(RenewTokensError::Busy)?;
    only_one.try_lock().map_err(|error| RenewTokensError::Busy(error.into()))?;
    let way = match (&arguments.api, &arguments.credential) {
        (Some(url), Some(file)) => way_by_api(url, file, settings.proxmox.pins.clone())?,
        _ => Way::Commands,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(RenewTokensError::Runtime)?;
    let tokens = runtime.block_on(renew(arguments, &settings, &way))?;
    let failed = tokens.iter().filter(|line| line.outcome == FAILED).count();
    match arguments.output {
        Output::Json => super::print_json(&Report { schema: "holdfast.token-renewal/v1", failed, tokens }),
        Output::Table => tokens.iter().for_each(|line| println!("{}", text(line))),
    }
    if failed == 0 { Ok(()) } else { Err(RenewTokensError::Failed(failed)) }
}

const FAILED: &str = "failed";

async fn renew(
    arguments: &RenewTokensArguments,
    settings: &Settings,
    way: &Way,
) -> Result<Vec<Line>, RenewTokensError> {
    let state = &settings.state.dir;
    // First of all: it also takes up what an earlier run wrote and could not say.
    admin_socket::take_tokens(state).map_err(RenewTokensError::Agent)?;
    let (now, ages) = (super::now(), settings.token_ages());
    let mut lines = Vec::new();
    for credential in Credential::all(settings)? {
        let age = ages.iter().find(|age| age.role == credential.role.text());
        let is_due = arguments.now || age.is_some_and(|age| age.is_due(now));
        let turn = if is_due { Turn::Due } else { Turn::NotYet };
        let client = perform::client(settings, in_use(settings)?)?;
        let ended = Renewal { way, client: &client, state }.run(&credential, turn).await;
        lines.push(match ended {
            Ok(ended) => line(&credential, age.map(|age| age.days(now)), &ended, age),
            Err(error) => {
                let (days_old, detail) = (age.map(|age| age.days(now)), Some(chain(&error).to_string()));
                Line { role: credential.role, days_old, outcome: FAILED, detail }
            }
        });
    }
    Ok(lines)
}

/// The plain tokens of now, which change with each renewal.
fn in_use(settings: &Settings) -> Result<BTreeMap<Role, crate::port::pve::ApiToken>, CredentialError> {
    let plain = Credential::all(settings)?.into_iter().filter(Credential::is_held_by_the_agent);
    plain.map(|credential| Ok((credential.role, credential.read()?.1))).collect()
}

fn line(credential: &Credential, days_old: Option<i64>, ended: &Outcome, age: Option<&TokenAge>) -> Line {
    let (outcome, detail) = match ended {
        Outcome::NotDue => {
            ("not_due", age.map(|age| format!("it is renewed every {} days", age.renewed_after_days)))
        }
        Outcome::Renewed => ("renewed", None),
        Outcome::TidiedUp => ("tidied_up", Some("what an earlier run left over is gone".to_owned())),
        Outcome::WaitsForTask { upid } => {
            ("waits", Some(format!("the task {upid} runs with it; the next run goes on")))
        }
    };
    let days_old = if *ended == Outcome::Renewed { Some(0) } else { days_old };
    Line { role: credential.role, days_old, outcome, detail }
}

fn text(line: &Line) -> String {
    let age = line.days_old.map_or_else(|| "of unknown age".to_owned(), |days| format!("{days} days old"));
    let detail = line.detail.as_ref().map(|detail| format!(": {detail}")).unwrap_or_default();
    format!("{:<9} {:<10} {age}{detail}", line.role.text(), line.outcome.replace('_', " "))
}
