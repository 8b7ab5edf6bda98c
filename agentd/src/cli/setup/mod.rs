//! `agentd setup`: makes in Proxmox, and on the box, what the agent needs and nothing more.
//!
//! ```text
//! arguments ─▶ choices ─▶ wanted ─┐
//!                                 ├─▶ settle ─▶ steps ─▶ show ─▶ ask ─▶ carry out ─▶ look again
//! Proxmox ─▶ seen ────────────────┘
//! ```
//! One table (`privilege`) says which operation needs which privilege where; `doctor` reads the same. Deliberately
//! absent: guests, storages, networks: all of these must be there already.

mod args;
mod helper;
mod local;
pub mod plan;
pub mod privilege;
mod script;
mod seen;
pub mod settle;
mod show;
mod trust;
mod way;
pub mod write;

use std::io::{BufRead, Read as _, Write as _};
use std::path::Path;

use holdfast_protocol::secret::Secret;
use holdfast_tls::Trust;
use zeroize::Zeroizing;

use super::Output;
use crate::port::pve::read::Version;
use args::ChoiceError;
pub use args::SetupArguments;
pub(crate) use args::file_sha256;
use local::{LocalError, LocalStep};
use plan::{Choices, Wanted};
use seen::{Read, Seen, SeenError};
use settle::{Standing, Step, settle, unsettle};
use show::Shown;
use way::{Api, Way, WayError};
use write::Write;

/// Why the box is not set up.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The choices.
    #[error(transparent)]
    Choice(#[from] ChoiceError),
    /// The credential cannot be read.
    #[error("the credential cannot be read from {from}")]
    Credential {
        /// Where it should have come from.
        from: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// Proxmox.
    #[error(transparent)]
    Way(#[from] WayError),
    /// An answer of Proxmox.
    #[error(transparent)]
    Seen(#[from] SeenError),
    /// A Proxmox that cannot hand a guest its claim.
    #[error("Proxmox VE {found} is too old: {}.{} or newer is needed", Version::OLDEST.0, Version::OLDEST.1)]
    TooOld {
        /// What it says it is.
        found: String,
    },
    /// The box.
    #[error(transparent)]
    Local(#[from] LocalError),
    /// Nobody said yes.
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
    /// The runtime.
    #[error("the program cannot start its runtime")]
    Runtime(#[source] std::io::Error),
}

impl SetupError {
    /// The exit code, by sysexits.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Choice(_) => 64,
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
/// Says what is missing or who refused. What was done before stays and is found done by the next run.
pub fn run(arguments: &SetupArguments) -> Result<(), SetupError> {
    let choices = arguments.choices()?;
    if !arguments.remove && !arguments.print {
        // Before Proxmox is even asked.
        trust::steps(&choices)?;
    }
    if arguments.print {
        let text = if arguments.remove { script::removal_script(&choices) } else { script::script(&choices) };
        print!("{text}");
        return Ok(());
    }
    let way = way(arguments, &choices)?;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(SetupError::Runtime)?;
    runtime.block_on(set_up(arguments, &choices, &way))
}

fn way(arguments: &SetupArguments, choices: &Choices) -> Result<Way, SetupError> {
    let (Some(url), Some(file)) = (&arguments.api, &arguments.credential) else { return Ok(Way::Commands) };
    let credential = read_credential(file)?;
    Ok(Way::Api(Api::new(url, &Trust::Pins(choices.pins.clone()), &credential)?))
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

/// What is to be done, before, in and after Proxmox.
struct Todo {
    before: Vec<LocalStep>,
    steps: Vec<Step>,
    after: Vec<LocalStep>,
    left: Vec<String>,
}

impl Todo {
    async fn find(arguments: &SetupArguments, choices: &Choices, way: &Way) -> Result<Self, SetupError> {
        let wanted = Wanted::of(choices);
        let seen = look(way, &choices.user).await?;
        if arguments.remove {
            let (before, after) = (helper::stopping(choices), local::unprepare(choices));
            return Ok(Self { before, steps: unsettle(&wanted, &seen), after, left: left(choices) });
        }
        let steps = settle(&wanted, &seen, &local::secrets_at_hand(choices));
        let mut after = trust::steps(choices)?;
        after.push(local::settings_step(choices));
        after.extend(helper::steps(choices)?);
        Ok(Self { before: local::prepare(choices), steps, after, left: Vec::new() })
    }

    fn shown(&self, outcome: &'static str) -> Shown {
        Shown::of(outcome, &self.before, &self.steps, &self.after).leaving(&self.left)
    }
}

/// What `--remove` does not touch, in words.
fn left(choices: &Choices) -> Vec<String> {
    let pools = std::iter::once(&choices.pool).chain(&choices.scratch_pool);
    let mut left: Vec<String> = pools
        .map(|pool| format!("every guest in the pool {pool}, and the pool as long as it has one"))
        .collect();
    left.push("every storage, archive and backup".to_owned());
    left.push(format!("{} with the agent's records and identity", choices.state_dir.display()));
    let policy = helper::file(choices);
    if policy.exists() && helper::removable(choices).is_none() {
        left.push(format!("{}, which names disks that root added", policy.display()));
    }
    left.extend(choices.system_user.iter().map(|user| format!("the Debian user {user}")));
    left
}

async fn look(way: &Way, user: &str) -> Result<Seen, SetupError> {
    let mut seen = Seen::default();
    for read in [Read::Version, Read::Pools, Read::Roles, Read::Users, Read::Acl] {
        seen.take(read, way.read(read, user).await?)?;
    }
    let version = Version::parse(&seen.version);
    if !version.is_some_and(|version| version.is_supported()) {
        return Err(SetupError::TooOld { found: seen.version });
    }
    // Asking for the tokens of nobody is an error in Proxmox.
    if seen.users.contains(user) {
        seen.take(Read::Tokens, way.read(Read::Tokens, user).await?)?;
    }
    Ok(seen)
}

async fn set_up(arguments: &SetupArguments, choices: &Choices, way: &Way) -> Result<(), SetupError> {
    let todo = Todo::find(arguments, choices, way).await?;
    let planned = todo.shown("planned");
    if arguments.output == Output::Table {
        print!("{}", planned.text());
    }
    if arguments.dry_run || planned.to_do == 0 {
        tell(arguments, &planned);
        return Ok(());
    }
    if !arguments.yes {
        ask()?;
    }
    for step in todo.before.iter().filter(|step| step.standing != Standing::Done) {
        local::carry_out(&step.act, choices).await?;
    }
    for step in &todo.steps {
        for write in &step.writes {
            carry_out(write, choices, way).await?;
        }
    }
    for step in todo.after.iter().filter(|step| step.standing != Standing::Done) {
        local::carry_out(&step.act, choices).await?;
    }
    // Proxmox saying yes is no evidence: look again.
    let again = Todo::find(arguments, choices, way).await?;
    let open = again.steps.iter().find(|step| step.standing != Standing::Done && !may_stay(step));
    if let Some(step) = open {
        return Err(SetupError::NotSettled(step.what.clone()));
    }
    if arguments.output == Output::Table {
        println!("done");
    }
    tell(arguments, &todo.shown("done"));
    Ok(())
}

fn tell(arguments: &SetupArguments, shown: &Shown) {
    if arguments.output == Output::Json {
        super::print_json(shown);
    }
}

/// A pool with guests in it stays when everything else is removed.
fn may_stay(step: &Step) -> bool {
    step.writes.iter().all(|write| matches!(write, Write::DeletePool(_)))
}

async fn carry_out(write: &Write, choices: &Choices, way: &Way) -> Result<(), SetupError> {
    match (write, way.write(write).await) {
        (Write::AddToken { role, .. }, Ok(Some(secret))) => Ok(local::keep_secret(choices, *role, &secret)?),
        (Write::DeletePool(pool), Err(error)) => {
            eprintln!("agentd: the pool {pool} stays: {}", holdfast_protocol::strict::chain(&error));
            Ok(())
        }
        (_, Ok(_)) => Ok(()),
        (_, Err(error)) => Err(error.into()),
    }
}

fn ask() -> Result<(), SetupError> {
    print!("Do this? [y/N] ");
    std::io::stdout().flush().map_err(SetupError::Ask)?;
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).map_err(SetupError::Ask)?;
    if matches!(line.trim(), "y" | "Y" | "yes") { Ok(()) } else { Err(SetupError::NotConfirmed) }
}
