//! The stage: simulator, hub, agent and operator, step by step.
//!
//! In: an empty folder, a golden archive, how guests run. Out: a simulator, a hub and an agent that run until the stage
//! is dropped. Nothing here waits longer than it must. The stage does not decide whether the outcome is right: the
//! caller does.

mod agent;
mod boxes;
mod golden;
mod guest_program;
mod hub;
mod operator;
mod secrets;
mod signer;
mod simulator;
mod turn;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use anyhow::{Context, Result};

pub use agent::Failpoint;
pub use golden::{Golden, ImageChange};
pub use guest_program::Orders;
pub use secrets::Secrets;
pub use signer::make_key;
pub use simulator::Runtime;

use crate::child::Running;
use crate::document::Ground;
use crate::place::{Place, User};
use crate::programs::Programs;

/// How long a program may take until it serves. A debug build on a busy machine needs a few seconds.
const READY: Duration = Duration::from_secs(60);

/// The host's name in the story.
pub const HOST: &str = "box1";

/// What a stage is made from.
#[derive(Clone, Debug)]
pub struct Options {
    /// The built programs.
    pub programs: Programs,
    /// An empty folder that every user may enter.
    pub folder: PathBuf,
    /// How guests run.
    pub runtime: Runtime,
    /// What guests are made from.
    pub golden: Golden,
    /// Users, storages and bridge of the simulated Proxmox.
    pub seed: PathBuf,
    /// As whom the agent runs.
    pub agent_user: User,
}

/// A running Holdfast.
#[derive(Debug)]
pub struct Stage {
    options: Options,
    home: Place,
    place: Place,
    // Dropped in this order: the agent says farewell to a hub that still listens.
    agent: Option<Running>,
    hub: Option<Running>,
    simulator: Option<Running>,
    proxmox: Option<simulator::Proxmox>,
    hub_url: String,
    secrets: Mutex<Secrets>,
    /// Variables for the agent's daemon.
    for_agent: Vec<(&'static str, OsString)>,
    _turn: turn::Turn,
}

impl Stage {
    /// An empty stage. Waits while another stage exists on this machine.
    ///
    /// # Errors
    /// When the folder cannot be prepared.
    pub fn new(options: Options) -> Result<Self> {
        let turn = turn::Turn::take(options.runtime)?;
        for name in ["sim", "hub", "agent", "operator", "log"] {
            let folder = options.folder.join(name);
            std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        }
        Ok(Self {
            options,
            home: Place::default(),
            place: Place::default(),
            agent: None,
            hub: None,
            simulator: None,
            proxmox: None,
            hub_url: String::new(),
            secrets: Mutex::default(),
            for_agent: Vec::new(),
            _turn: turn,
        })
    }

    /// Puts the host, with its simulator, into a network namespace that the caller made. Called before anything is
    /// started.
    pub fn stand_in(&mut self, namespace: PathBuf) {
        self.home.namespace = Some(namespace);
    }

    /// Where guests live in this stage.
    #[must_use]
    pub fn ground(&self) -> Ground {
        self.options.runtime.ground(&self.options.golden.version)
    }

    /// What guests are made from, unless a document names another image.
    #[must_use]
    pub const fn golden(&self) -> &Golden {
        &self.options.golden
    }

    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.options.folder
    }

    /// The folder of one part.
    fn part(&self, name: &str) -> PathBuf {
        self.options.folder.join(name)
    }

    fn log(&self, name: &str) -> PathBuf {
        self.part("log").join(format!("{name}.log"))
    }

    /// A command line as a person would type it: without this stage's paths, and without what put the program into its
    /// place.
    fn typed(&self, command: &std::process::Command) -> String {
        let folder = self.options.programs.folder();
        let all = std::iter::once(command.get_program()).chain(command.get_args());
        let words = all.skip_while(|word| !Path::new(word).starts_with(folder));
        let line = words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ");
        let inside =
            |line: String, folder: &Path, short: &str| line.replace(&format!("{}/", folder.display()), short);
        inside(inside(line, folder, ""), self.folder(), "…/")
    }
}
