//! The settings of the gate, laid down by root.
//!
//! In: a TOML file that only root can change. Out: where things are, the times of a trial, and who may sign releases.
//! Without the file everything has its default. Without release keys no release is taken: the package decides alone.

use std::path::{Path, PathBuf};

use agent_slots::health::{Rules, RulesError};
use held_files::root_text::{self, RootTextError};
use holdfast_protocol::release::VersionNumber;
use holdfast_trust::operators::{self, Operators, OperatorsError};
use holdfast_trust::release::{ReleaseKeys, ReleaseKeysError};
use serde::Deserialize;

/// Larger than any settings.
const BYTES_MAX: u64 = 16 * 1024;

/// The file as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    /// How many people must have signed a release.
    signatures: u8,
    health_window_s: u64,
    hub_wait_s: u64,
    deadline_s: u64,
    /// How often a watched agent is looked at.
    look_every_ms: u64,
    paths: Paths,
}

/// Where things are. Others than the defaults are for tests.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Paths {
    /// Root's folder with the slots and the state.
    pub slots: PathBuf,
    /// The agent's own folder: its admin socket, and what it downloaded.
    pub agent_state: PathBuf,
    pub release_keys: PathBuf,
    /// The package's agent.
    pub packaged: PathBuf,
    /// What the agent's unit starts: a link, made anew before each start.
    pub link: PathBuf,
    pub systemctl: PathBuf,
}

impl Default for Paths {
    fn default() -> Self {
        Self {
            slots: "/var/lib/holdfast-slots".into(),
            agent_state: "/var/lib/holdfast".into(),
            release_keys: "/etc/holdfast/release-keys".into(),
            packaged: "/usr/bin/agentd".into(),
            link: "/run/holdfast-agent-gate/agentd".into(),
            systemctl: "/usr/bin/systemctl".into(),
        }
    }
}

impl Default for File {
    fn default() -> Self {
        Self {
            signatures: 1,
            health_window_s: 120,
            hub_wait_s: 900,
            deadline_s: 1_800,
            look_every_ms: 2_000,
            paths: Paths::default(),
        }
    }
}

/// Everything the gate is set to.
#[derive(Clone, Debug)]
pub struct Settings {
    pub paths: Paths,
    pub rules: Rules,
    pub look_every: std::time::Duration,
    /// The version of the package, which has this program and the agent's.
    pub packaged: VersionNumber,
    signatures: u8,
}

/// Why there are no settings.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    #[error(transparent)]
    File(#[from] RootTextError),
    #[error("{} is refused", path.display())]
    Form {
        path: PathBuf,
        #[source]
        source: Box<toml::de::Error>,
    },
    #[error("the times of a trial are refused")]
    Rules(#[from] RulesError),
    #[error("this program has no version of three numbers: {0}")]
    Version(&'static str),
    #[error("a watched agent is looked at each {0} ms; 100 to 60000 are accepted")]
    LookEvery(u64),
}

/// Why no release can be judged.
#[derive(Debug, thiserror::Error)]
pub enum KeysError {
    #[error(
        "this host has no release keys ({}): its agent is updated by the package alone (`apt install holdfast-agent`)",
        .0.display()
    )]
    Absent(PathBuf),
    #[error(transparent)]
    File(#[from] RootTextError),
    #[error("the release keys are refused")]
    Operators(#[from] OperatorsError),
    #[error(transparent)]
    Rule(#[from] ReleaseKeysError),
}

impl Settings {
    /// Reads the file.
    ///
    /// # Errors
    /// [`SettingsError`].
    pub fn load(path: &Path) -> Result<Self, SettingsError> {
        let text = root_text::read(path, BYTES_MAX)?;
        let file: File = match &text {
            None => File::default(),
            Some(text) => toml::from_str(text)
                .map_err(|source| SettingsError::Form { path: path.to_owned(), source: Box::new(source) })?,
        };
        if !(100..=60_000).contains(&file.look_every_ms) {
            return Err(SettingsError::LookEvery(file.look_every_ms));
        }
        Ok(Self {
            paths: file.paths,
            rules: Rules::new(file.health_window_s, file.hub_wait_s, file.deadline_s)?,
            look_every: std::time::Duration::from_millis(file.look_every_ms),
            packaged: env!("CARGO_PKG_VERSION").parse().map_err(SettingsError::Version)?,
            signatures: file.signatures,
        })
    }

    /// The release keys of this host.
    ///
    /// # Errors
    /// [`KeysError`].
    pub fn release_keys(&self) -> Result<ReleaseKeys, KeysError> {
        let path = &self.paths.release_keys;
        let text = root_text::read(path, operators::BYTES_MAX as u64)?;
        let text = text.ok_or_else(|| KeysError::Absent(path.clone()))?;
        Ok(ReleaseKeys::new(Operators::parse(&text)?, self.signatures)?)
    }
}
