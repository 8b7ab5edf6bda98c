//! `agentd setup`: the agent's needs in Proxmox and on the host.
//!
//! ```text
//! arguments ─▶ choices ─▶ wanted ─┐
//!                                 ├─▶ settle ─▶ steps ─▶ show ─▶ ask ─▶ carry out ─▶ look again
//! Proxmox ─▶ seen ────────────────┘
//! ```
//! One table (`privilege`) says which operation needs which privilege where; `doctor` reads the same. Deliberately
//! absent: guests, storages, networks of guests: all of these must be there already.

pub(crate) mod access;
mod args;
pub(crate) mod current;
pub mod diff;
mod helper;
pub mod helper_policy;
mod local;
pub mod plan;
pub mod privilege;
mod remove;
mod restart;
mod script;
mod show;
mod signer_files;
mod test_bridge;
mod trust;
mod tunnel_settings;
pub mod tunnels;
pub mod write;

use std::io::{BufRead, Read as _, Write as _};
use std::path::Path;

use holdfast_protocol::pin::PinSet;
use holdfast_protocol::secret::Secret;
use net::tls::Trust;
use zeroize::Zeroizing;

use super::Output;
use crate::port::pve::read::Version;
use crate::settings::SettingsError;
use access::{Api, Way, WayError};
use args::ChoiceError;
pub use args::SetupArguments;
pub(crate) use args::file_sha256;
use current::{CurrentSetup, Read, SeenError};
use diff::{Step, StepState, settle};
use local::{LocalError, LocalStep};
use plan::{Choices, DesiredSetup};
use remove::Ours;
use show::PrintedStep;
use write::Write;

/// Why the host is not set up.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    #[error(transparent)]
    Choice(#[from] ChoiceError),
    /// The installed settings cannot be read, so the names of our items are not known.
    #[error("what was set up is not known: name --user and --pool")]
    Settings(#[from] SettingsError),
    /// The credential cannot be read.
    #[error("the credential cannot be read from {from}")]
    Credential {
        /// The file that it should have been read from.
        from: String,
        #[source]
        source: std::io::Error,
    },
    #[error(transparent)]
    Way(#[from] WayError),
    /// An answer of Proxmox.
    #[error(transparent)]
    Seen(#[from] SeenError),
    /// A Proxmox version that cannot pass a guest its claim.
    #[error("Proxmox VE {found} is too old: {}.{} or newer is needed", Version::OLDEST.0, Version::OLDEST.1)]
    TooOld {
        /// The version that it reports.
        found: String,
    },
    #[error(transparent)]
    Local(#[from] LocalError),
    /// The operator did not say yes.
    #[error("nothing was changed: say yes, or give --yes")]
    NotConfirmed,
    /// The answer cannot be read.
    #[error("the answer cannot be read from standard input: give --yes")]
    Ask(#[source] std::io::Error),
    /// It was all done, and still something is not as wanted.
    #[error(
        "Proxmox took every change, and still {0} is not as wanted: run `agentd setup --dry-run` and look"
    )]
    NotSettled(String),
    #[error("the program cannot start its runtime")]
    Runtime(#[source] std::io::Error),
}

impl SetupError {
    /// The exit code, by sysexits.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Choice(_) => 64,
            Self::Settings(_) => 78,
            Self::Credential { .. } | Self::NotConfirmed | Self::Ask(_) => 66,
            Self::Way(_) | Self::Seen(_) | Self::TooOld { .. } | Self::NotSettled(_) => 69,
            Self::Local(_) => 73,
            Self::Runtime(_) => 71,
        }
    }
}

/// Runs the command.
///
/// # Errors
/// Says what is missing or who refused. Finished steps stay, and the next run finds them done.
pub fn run(arguments: &SetupArguments) -> Result<(), SetupError> {
    if arguments.remove {
        let ours = Ours::of(arguments)?;
        if arguments.print {
            print!("{}", remove::script(&ours));
            return Ok(());
        }
        let way = way(arguments)?;
        return runtime()?.block_on(remove::take_away(arguments, &ours, &way));
    }
    let choices = arguments.choices()?;
    if arguments.print {
        print!("{}", script::script(&choices));
        return Ok(());
    }
    // Before Proxmox is even asked.
    trust::steps(&choices)?;
    local::prepare(&choices)?;
    local::secrets_at_hand(&choices)?;
    let way = way(arguments)?;
    runtime()?.block_on(set_up(arguments, &choices, &way))
}

fn runtime() -> Result<tokio::runtime::Runtime, SetupError> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(SetupError::Runtime)
}

fn way(arguments: &SetupArguments) -> Result<Way, SetupError> {
    let (Some(url), Some(file)) = (&arguments.api, &arguments.credential) else { return Ok(Way::Commands) };
    way_by_api(url, file, arguments.pins()?)
}

/// The API, with the credential of a file.
pub(crate) fn way_by_api(url: &str, credential: &Path, pins: PinSet) -> Result<Way, SetupError> {
    Ok(Way::Api(Api::new(url, &Trust::Pins(pins), &read_credential(credential)?)?))
}

/// A ticket is some 400 bytes.
const CREDENTIAL_MAX: u64 = 8 * 1024;

fn read_credential(file: &Path) -> Result<Secret, SetupError> {
    let failed = |source| SetupError::Credential { from: file.display().to_string(), source };
    let mut text = Zeroizing::new(String::new());
    if file == Path::new("-") {
        std::io::stdin().lock().take(CREDENTIAL_MAX).read_to_string(&mut text).map_err(failed)?;
    } else {
        let open = std::fs::File::open(file).map_err(failed)?;
        open.take(CREDENTIAL_MAX).read_to_string(&mut text).map_err(failed)?;
    }
    Ok(Secret::new(std::mem::take(&mut *text)))
}

/// The steps before, in and after Proxmox.
struct Todo {
    before: Vec<LocalStep>,
    steps: Vec<Step>,
    after: Vec<LocalStep>,
}

impl Todo {
    async fn find(choices: &Choices, way: &Way) -> Result<Self, SetupError> {
        let wanted = DesiredSetup::of(choices);
        let seen = look(way, &choices.user).await?;
        let steps = settle(&wanted, &seen, &local::secrets_at_hand(choices)?);
        let mut after = trust::steps(choices)?;
        after.push(local::settings_step(choices)?);
        after.extend(tunnels::steps(choices)?);
        after.extend(test_bridge::steps(choices)?);
        after.extend(helper::steps(choices)?);
        after.extend(restart::step(choices, &steps, &after));
        Ok(Self { before: local::prepare(choices)?, steps, after })
    }

    fn shown(&self, outcome: &'static str) -> PrintedStep {
        let local = |step: &LocalStep| show::here(&step.what, &step.status);
        let (before, after) = (self.before.iter().map(local), self.after.iter().map(local));
        PrintedStep::of(outcome, before.chain(self.steps.iter().map(show::there)).chain(after).collect())
    }
}

/// Reads the present state.
pub(crate) async fn look(way: &Way, user: &str) -> Result<CurrentSetup, SetupError> {
    let mut seen = CurrentSetup::default();
    for read in [Read::Version, Read::Pools, Read::Roles, Read::Users, Read::Acl] {
        seen.take(read, way.read(read, user).await?)?;
    }
    let version = Version::parse(&seen.version);
    if !version.is_some_and(|version| version.is_supported()) {
        return Err(SetupError::TooOld { found: seen.version });
    }
    // Proxmox answers with an error when the tokens of a user that does not exist are read.
    if seen.users.contains(user) {
        seen.take(Read::Tokens, way.read(Read::Tokens, user).await?)?;
    }
    Ok(seen)
}

async fn set_up(arguments: &SetupArguments, choices: &Choices, way: &Way) -> Result<(), SetupError> {
    let todo = Todo::find(choices, way).await?;
    if !agreed(arguments, &todo.shown("planned"))? {
        return Ok(());
    }
    for step in todo.before.iter().filter(|step| step.status != StepState::Done) {
        local::carry_out(&step.act, choices).await?;
    }
    for step in &todo.steps {
        for write in &step.writes {
            carry_out(write, choices, way).await?;
        }
    }
    for step in todo.after.iter().filter(|step| step.status != StepState::Done) {
        local::carry_out(&step.act, choices).await?;
    }
    // Proxmox's success is no proof: read the state again.
    let again = Todo::find(choices, way).await?;
    let open = again.steps.iter().find(|step| step.status != StepState::Done);
    if let Some(step) = open {
        return Err(SetupError::NotSettled(step.what.clone()));
    }
    done(arguments, &todo.shown("done"));
    Ok(())
}

/// Shows the plan. Returns whether to carry it out: there is something to do, and the operator said yes.
fn agreed(arguments: &SetupArguments, planned: &PrintedStep) -> Result<bool, SetupError> {
    if arguments.output == Output::Table {
        print!("{}", planned.text());
    }
    if arguments.dry_run || planned.to_do == 0 {
        report(arguments, planned);
        return Ok(false);
    }
    if !arguments.yes {
        ask()?;
    }
    Ok(true)
}

fn done(arguments: &SetupArguments, shown: &PrintedStep) {
    if arguments.output == Output::Table {
        println!("done");
    }
    report(arguments, shown);
}

fn report(arguments: &SetupArguments, shown: &PrintedStep) {
    if arguments.output == Output::Json {
        super::print_json(shown);
    }
}

async fn carry_out(write: &Write, choices: &Choices, way: &Way) -> Result<(), SetupError> {
    let secret = way.write(write).await?;
    if let (Write::AddToken { role, .. }, Some(secret)) = (write, secret) {
        local::keep_secret(choices, *role, &secret)?;
    }
    Ok(())
}

fn ask() -> Result<(), SetupError> {
    print!("Do this? [y/N] ");
    std::io::stdout().flush().map_err(SetupError::Ask)?;
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).map_err(SetupError::Ask)?;
    if matches!(line.trim(), "y" | "Y" | "yes") { Ok(()) } else { Err(SetupError::NotConfirmed) }
}
