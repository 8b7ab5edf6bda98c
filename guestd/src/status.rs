//! `guestd status`: this guest, its controller and its agent.
//!
//! The controller's lock shows whether a controller runs, and its state file shows what it reports of itself. A request
//! now shows whether the agent answers.

use std::fmt::Write as _;
use std::io::{self, Write as _};

use holdfast_protocol::bootstrap::Bootstrap;
use holdfast_protocol::desired::VolumeKind;
use holdfast_protocol::json::chain;
use holdfast_protocol::local::hello::{RestartNeeded, UpgradeReport};
use holdfast_protocol::local::{ImageAge, MountState, MountView, SelfView, StorageView};
use serde::Serialize;

use crate::agent::{Agent, AgentError};
use crate::args::{
    EXIT_DONE, EXIT_FAILED, EXIT_NO_PERMISSION, EXIT_SET_UP, EXIT_UNAVAILABLE, Output, StatusArgs,
};
use crate::bootstrap_file::{self, BootstrapFileError};
use crate::commands::upgrade;
use crate::paths::Paths;
use crate::restart;
use crate::run::{self, Lock, RunError};
use crate::state::{self, State, StateError};
use crate::status_stacks::StacksView;

/// Why there is no status to show.
#[derive(Debug, thiserror::Error)]
pub enum StatusError {
    /// The files of the controller are its owner's.
    #[error("guestd's files belong to another user: run as root of the guest")]
    NotOurs(#[source] BootstrapFileError),
    /// The controller's own state file.
    #[error(transparent)]
    State(#[from] StateError),
    #[error(transparent)]
    Lock(RunError),
    /// The output cannot be written.
    #[error("the status cannot be printed")]
    Print(#[source] io::Error),
    /// Cannot happen for plain text and numbers.
    #[error("the status cannot be written as JSON")]
    Unwritable(#[source] serde_json::Error),
}

impl StatusError {
    /// For the caller of the program.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::NotOurs(_) => EXIT_NO_PERMISSION,
            Self::Lock(error) => error.exit_code(),
            Self::State(_) | Self::Print(_) | Self::Unwritable(_) => EXIT_FAILED,
        }
    }
}

/// The document for programs.
#[derive(Debug, Serialize)]
struct Status {
    schema: &'static str,
    /// Whether a controller runs now.
    controller: Controller,
    /// What it last said of itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<State>,
    /// What the agent says now.
    agent: AgentStatus,
    /// What is known of stacks.
    stacks: StacksView,
    /// How the last security upgrade went.
    #[serde(skip_serializing_if = "Option::is_none")]
    upgrade: Option<UpgradeReport>,
    /// What only a restart brings into use.
    #[serde(skip_serializing_if = "Option::is_none")]
    restart_needed: Option<RestartNeeded>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Controller {
    Running,
    Stopped,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum AgentStatus {
    /// There is no bootstrap, or none that can be used.
    NotKnown { reason: String },
    /// It did not answer, or refused.
    Silent { endpoint: String, reason: String },
    /// Who we are.
    Answered(Box<Answered>),
}

#[derive(Debug, Serialize)]
struct Answered {
    endpoint: String,
    this: SelfView,
    storage: StorageView,
}

/// Shows the status.
pub async fn status(args: &StatusArgs) -> Result<u8, StatusError> {
    let paths = Paths::new(&args.paths.root);
    let kept = match bootstrap_file::load(&paths) {
        Err(BootstrapFileError::File(error)) if error.is_permission() => {
            return Err(StatusError::NotOurs(BootstrapFileError::File(error)));
        }
        other => other,
    };
    let state = state::load(&paths)?;
    let controller = if state.is_some() { controller(&paths)? } else { Controller::Stopped };
    let agent = match kept {
        Ok(Some(bootstrap)) => ask(&bootstrap, args).await,
        Ok(None) => AgentStatus::NotKnown { reason: "no bootstrap.json yet".to_owned() },
        Err(error) => AgentStatus::NotKnown { reason: chain(&error) },
    };
    let stacks = StacksView::look(&paths);
    let status = Status {
        schema: "holdfast.guestd-status/v1",
        controller,
        state,
        agent,
        stacks,
        upgrade: upgrade::load(&paths).last,
        restart_needed: restart::needed(&paths),
    };
    let text = match args.output {
        Output::Json => serde_json::to_string_pretty(&status).map_err(StatusError::Unwritable)? + "\n",
        Output::Table => table(&status),
    };
    io::stdout().write_all(text.as_bytes()).map_err(StatusError::Print)?;
    Ok(match (&status.agent, status.controller) {
        (AgentStatus::NotKnown { .. }, _) => EXIT_SET_UP,
        (AgentStatus::Silent { .. }, _) => EXIT_UNAVAILABLE,
        (AgentStatus::Answered(_), Controller::Stopped) => EXIT_FAILED,
        (AgentStatus::Answered(_), Controller::Running) => EXIT_DONE,
    })
}

fn controller(paths: &Paths) -> Result<Controller, StatusError> {
    match run::lock(paths).map_err(StatusError::Lock)? {
        Lock::Held(_) => Ok(Controller::Stopped),
        Lock::Taken => Ok(Controller::Running),
    }
}

async fn ask(bootstrap: &Bootstrap, args: &StatusArgs) -> AgentStatus {
    let asked = async {
        let agent = Agent::new(&bootstrap.endpoint, bootstrap.pin, args.paths.source_address)?;
        let this = agent.whoami(&bootstrap.token).await?;
        let storage = agent.storage(&bootstrap.token).await?;
        Ok::<_, AgentError>((this, storage))
    };
    let endpoint = bootstrap.endpoint.clone();
    match asked.await {
        Ok((this, storage)) => AgentStatus::Answered(Box::new(Answered { endpoint, this, storage })),
        Err(error) => AgentStatus::Silent { endpoint, reason: chain(&error) },
    }
}

fn table(status: &Status) -> String {
    let mut lines: Vec<(&str, String)> = Vec::new();
    let running = match status.controller {
        Controller::Running => "running",
        Controller::Stopped => "not running: start it with `systemctl start guestd`",
    };
    lines.push(("Controller", format!("guestd {}, {running}", env!("CARGO_PKG_VERSION"))));
    if let Some(state) = &status.state {
        let mode = match state.mode {
            state::Mode::SetUp => "set-up",
            state::Mode::Claiming => "claiming",
            state::Mode::Serving => "serving",
        };
        lines.push(("Mode", format!("{mode}, since {}", state.since)));
        lines.extend(state.problem.clone().map(|problem| ("Problem", problem)));
        let hello = state.last_hello_at.map_or_else(|| "never".to_owned(), |at| at.to_string());
        lines.push(("Last hello", hello));
    }
    match &status.agent {
        AgentStatus::NotKnown { reason } => lines.push(("Agent", format!("not known: {reason}"))),
        AgentStatus::Silent { reason, .. } => lines.push(("Agent", reason.clone())),
        AgentStatus::Answered(answered) => {
            let Answered { endpoint, this, storage } = answered.as_ref();
            lines.push(("Agent", format!("{endpoint}, agentd {}", this.agent_version)));
            lines.push(("Guest", format!("{} ({})", this.name, this.uid)));
            lines.push(("Customer", this.customer.to_string()));
            lines.push(("Golden", golden(this)));
            let size = &this.size;
            lines.push((
                "Size",
                format!("{}, {} memory, {} swap", size.cores, size.memory_mib, size.swap_mib),
            ));
            lines.push(("Address", format!("{} on {}", this.network.address, this.network.bridge)));
            lines.push(("Root disk", storage.rootfs_gib.to_string()));
            lines.extend(storage.volumes.iter().map(|mount| ("Volume", volume(mount))));
        }
    }
    lines.extend(status.stacks.lines());
    lines.extend(status.upgrade.as_ref().map(|one| ("Upgrade", format!("{}: {}", one.at, one.why))));
    lines.extend(status.restart_needed.as_ref().map(|needed| ("Restart", restart::line(needed))));
    let mut text = String::new();
    for (name, value) in lines {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{name:<11} {value}");
    }
    text
}

/// The image with its age, where the agent knows it.
fn golden(this: &SelfView) -> String {
    let Some(ImageAge { built_at, days }) = this.golden_age else { return this.golden.to_string() };
    let day = if days == 1 { "day" } else { "days" };
    format!("{}, built {}, {days} {day} old", this.golden, built_at.strftime("%Y-%m-%d"))
}

fn volume(mount: &MountView) -> String {
    let kind = match &mount.kind {
        VolumeKind::Hot => "hot",
        VolumeKind::Bulk(_) => "bulk",
    };
    let state = match mount.state {
        MountState::Attached => "",
        MountState::Desired => ", NOT ATTACHED",
        MountState::Unknown => ", not yet observed by the agent",
    };
    format!("{} on {}, {}, {kind}{state}", mount.name, mount.mount, mount.size_gib)
}
