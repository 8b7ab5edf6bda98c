//! The admin socket of the running agent.
//!
//! Input: one question of a closed list per connection. Output: one answer. Nothing is kept in a file, so nothing can
//! be stale: a failed connection means that no agent runs, and an answer was true when it was read. A person's answers
//! about parked work use this socket too, so that the database has one writer. The socket belongs to the agent's own
//! user; the kernel identifies the caller. Deliberately absent: any way to act on a guest.

mod escrow;
mod messages;

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::json::{self, JsonError};
use tokio::net::UnixListener;

pub use escrow::{Begun, EscrowAnswer, EscrowQuestion, EscrowStatus, TargetCode, Wrapped};
pub use messages::{
    AdminSchema, AgentStatus, Answer, FieldsView, GuestTests, ObservedTimes, QUESTION_BYTES_MAX, Question,
    Request, StatusSchema, TestLine, Waiting,
};

use super::held_folder::{HeldError, HeldFolder};
use crate::pve::Role;

/// As large as a report may be, and a little around it.
const ANSWER_BYTES_MAX: usize = holdfast_protocol::report::REPORT_BYTES_MAX + 64 * 1024;

/// An agent that does not answer on its own host within this hangs.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum StatusError {
    #[error("no agent answers at {}: it does not run (`systemctl status agentd`), or another state folder is configured", path.display())]
    NotRunning {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    /// An agent, but not for this user.
    #[error("the agent at {} answers only root and its own user: ask as one of them (`sudo`)", path.display())]
    Closed {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    /// An agent that hangs, or stops just now.
    #[error("the agent at {} does not answer: look at its log (`journalctl -u agentd`)", path.display())]
    Silent {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    /// A link or a stranger's in its place.
    #[error(transparent)]
    Held(HeldError),
    #[error(
        "the running agent is of another version than this command: restart it (`systemctl restart agentd`)"
    )]
    Form(#[source] JsonError),
    /// A question that cannot be written.
    #[error("the question cannot be written down")]
    Question(#[source] serde_json::Error),
    /// The agent's own refusal.
    #[error("the agent refuses: {0}")]
    Refused(ErrorBody),
    /// An answer to another question.
    #[error(
        "the running agent answers something else: it is of another version; restart it (`systemctl restart agentd`)"
    )]
    Other,
}

impl StatusError {
    /// The exit code, by sysexits.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::NotRunning { .. } => 69,
            Self::Closed { .. } | Self::Held(_) => 77,
            Self::Silent { .. } => 75,
            Self::Form(_) | Self::Other => 76,
            Self::Question(_) => 70,
            Self::Refused(_) => 1,
        }
    }
}

/// Why the socket cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("the status socket {} cannot be made: is the state folder's path longer than 90 characters, or another's?", path.display())]
pub struct AdminSocketError {
    path: PathBuf,
    #[source]
    source: std::io::Error,
}

fn path_in(state: &Path) -> PathBuf {
    state.join("agent.sock")
}

/// Opens the socket. The caller holds the state folder's lock, so an existing socket was left by a dead agent.
///
/// # Errors
/// [`AdminSocketError`].
pub fn open(state: &Path) -> Result<UnixListener, AdminSocketError> {
    let path = path_in(state);
    let failed = |source| AdminSocketError { path: path.clone(), source };
    match std::fs::remove_file(&path) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed(error)),
    }
    let listener = UnixListener::bind(&path).map_err(failed)?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).map_err(failed)?;
    Ok(listener)
}

/// Asks the running agent for its status.
///
/// # Errors
/// [`StatusError`].
pub fn ask(state: &Path) -> Result<AgentStatus, StatusError> {
    match put(state, Question::Status)? {
        Answer::Status(status) => Ok(*status),
        _ => Err(StatusError::Other),
    }
}

/// Has the running agent read its tokens for Proxmox anew, try those that changed, and use them. The ids in use.
///
/// # Errors
/// [`StatusError`]; a token that the agent does not take is a refusal, and it goes on with those of before.
pub fn take_tokens(state: &Path) -> Result<BTreeMap<Role, String>, StatusError> {
    match put(state, Question::TakeTokens)? {
        Answer::TokensInUse(tokens) => Ok(tokens),
        _ => Err(StatusError::Other),
    }
}

/// Puts one question about recovery codes to the running agent.
///
/// # Errors
/// [`StatusError`].
pub fn put_escrow(state: &Path, question: EscrowQuestion) -> Result<EscrowAnswer, StatusError> {
    match put(state, Question::Escrow(question))? {
        Answer::Escrow(answer) => Ok(answer),
        _ => Err(StatusError::Other),
    }
}

/// Connects to the agent's own socket. A link in the agent's folder cannot redirect root to another socket.
fn connect(path: &Path) -> Result<UnixStream, StatusError> {
    let failed = |source: std::io::Error| match source.kind() {
        std::io::ErrorKind::PermissionDenied => StatusError::Closed { path: path.to_owned(), source },
        _ => StatusError::NotRunning { path: path.to_owned(), source },
    };
    let refused = |error: HeldError| {
        if error.is_refusal() { StatusError::Held(error) } else { failed(error.into()) }
    };
    let (folder, name) = HeldFolder::parent_of(path).map_err(refused)?;
    let socket = folder.socket(name).map_err(refused)?;
    UnixStream::connect(socket.path()).map_err(failed)
}

/// Puts one question to the running agent. Its refusal is an error here.
///
/// # Errors
/// [`StatusError`].
pub fn put(state: &Path, question: Question) -> Result<Answer, StatusError> {
    let path = path_in(state);
    let request = Request { schema: AdminSchema::V1, question };
    let words = serde_json::to_vec(&request).map_err(StatusError::Question)?;
    let mut stream = connect(&path)?;
    let silent = |source| StatusError::Silent { path: path.clone(), source };
    stream.set_read_timeout(Some(ANSWER_MAX)).map_err(silent)?;
    stream.set_write_timeout(Some(ANSWER_MAX)).map_err(silent)?;
    stream.write_all(&words).map_err(silent)?;
    stream.shutdown(Shutdown::Write).map_err(silent)?;
    let mut bytes = Vec::new();
    let max = ANSWER_BYTES_MAX as u64 + 1;
    stream.take(max).read_to_end(&mut bytes).map_err(silent)?;
    if bytes.is_empty() {
        return Err(silent(std::io::ErrorKind::UnexpectedEof.into()));
    }
    match json::parse("the agent's answer", &bytes, ANSWER_BYTES_MAX).map_err(StatusError::Form)? {
        Answer::Refused(problem) => Err(StatusError::Refused(problem)),
        answer => Ok(answer),
    }
}
