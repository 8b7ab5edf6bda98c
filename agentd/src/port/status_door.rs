//! The door at which a person at the box asks the running agent how it is: a socket in the state folder.
//!
//! Nothing is kept in a file, so nothing can be stale: who cannot connect knows that no agent runs, and what is read was
//! true when it was read. The document carries the time of its making and of the last look at Proxmox. The state folder
//! decides who may ask. Deliberately absent: any way to ask for something to be done.

use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use holdfast_protocol::id::HostName;
use holdfast_protocol::report::Sections;
use holdfast_protocol::strict::{self, StrictError};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tokio::net::UnixListener;

use super::hub::Contact;

/// As large as a report may be, and a little around it.
const STATUS_BYTES_MAX: usize = holdfast_protocol::report::REPORT_BYTES_MAX + 64 * 1024;

/// An agent that does not answer on its own box within this hangs.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// The version of the status document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum StatusSchema {
    /// The only one so far.
    #[default]
    #[serde(rename = "holdfast.status/v1")]
    V1,
}

/// How the agent is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentStatus {
    /// The version of the document.
    pub schema: StatusSchema,
    /// When this was told.
    pub at: Timestamp,
    /// When Proxmox was last seen whole; none when it was not since the agent started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen_at: Option<Timestamp>,
    /// What operators call this host.
    pub host_name: HostName,
    /// Its hub.
    pub hub: String,
    /// How it stands with the hub.
    pub contact: Contact,
    /// The whole report.
    pub sections: Sections,
}

/// Why there is no status.
#[derive(Debug, thiserror::Error)]
pub enum StatusError {
    /// No agent.
    #[error("no agent answers at {}: it does not run (`systemctl status agentd`), or another state folder is configured", path.display())]
    NotRunning {
        /// The socket.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// An agent that hangs, or stops just now.
    #[error("the agent at {} does not answer: look at its log (`journalctl -u agentd`)", path.display())]
    Silent {
        /// The socket.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// Another version.
    #[error(
        "the running agent is of another version than this command: restart it (`systemctl restart agentd`)"
    )]
    Form(#[source] StrictError),
}

/// Why the door cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("the status socket {} cannot be made: is the state folder's path longer than 90 characters, or another's?", path.display())]
pub struct DoorError {
    path: PathBuf,
    #[source]
    source: std::io::Error,
}

fn path_in(state: &Path) -> PathBuf {
    state.join("agent.sock")
}

/// Opens the door. Whoever calls holds the state folder's lock, so a socket that is there already is a dead agent's.
///
/// # Errors
/// [`DoorError`].
pub fn open(state: &Path) -> Result<UnixListener, DoorError> {
    let path = path_in(state);
    let failed = |source| DoorError { path: path.clone(), source };
    match std::fs::remove_file(&path) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed(error)),
    }
    let listener = UnixListener::bind(&path).map_err(failed)?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o660)).map_err(failed)?;
    Ok(listener)
}

/// Asks the running agent.
///
/// # Errors
/// [`StatusError`].
pub fn ask(state: &Path) -> Result<AgentStatus, StatusError> {
    let path = path_in(state);
    let stream = UnixStream::connect(&path)
        .map_err(|source| StatusError::NotRunning { path: path.clone(), source })?;
    let silent = |source| StatusError::Silent { path: path.clone(), source };
    stream.set_read_timeout(Some(ANSWER_MAX)).map_err(silent)?;
    let mut bytes = Vec::new();
    let max = STATUS_BYTES_MAX as u64 + 1;
    stream.take(max).read_to_end(&mut bytes).map_err(silent)?;
    strict::parse("the agent's status", &bytes, STATUS_BYTES_MAX).map_err(StatusError::Form)
}
