//! Everything a call to Proxmox can end in but an answer.
//!
//! Input: status, reason phrase and `errors` (through `classify`), or a failed transport. Output: one variant by class,
//! so that callers match on what to do, and a sentence that says who must do what. Deliberately absent: retrying
//! (`retry`), and the outcome of tasks (`task`), which come with status 200.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::sync::Arc;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::Vmid;
use holdfast_protocol::pin::Pin;

use super::Role;

/// Why a transport failed. Cloneable, so that one failure can be reported to several waiters.
#[derive(Clone)]
pub struct Cause(Arc<dyn Error + Send + Sync>);

impl Cause {
    /// Wraps what a library reported.
    pub fn new(error: impl Error + Send + Sync + 'static) -> Self {
        Self(Arc::new(error))
    }
}

impl fmt::Debug for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for Cause {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}

/// Whether a request can have reached Proxmox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// There was no connection: nothing was sent.
    No,
    /// There was a connection, so the request may be carried out although no answer came.
    Perhaps,
}

/// The caller's next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryClass {
    /// Passing trouble and nothing happened: the same request may be sent again shortly.
    Again,
    /// Another task holds the guest: try again in a minute, and show which one holds it.
    Later,
    /// It may have happened: read the world before deciding, and never send a write again blindly.
    LookFirst,
    /// It will fail until an operator changes something.
    Never,
}

/// A call that did not end in an answer.
#[derive(Clone, Debug, thiserror::Error)]
pub enum PveError {
    /// No connection, or one that broke.
    #[error(
        "Proxmox did not answer {call}: check that pveproxy runs and that the configured address is right"
    )]
    Unreachable {
        call: &'static str,
        /// Whether the request can have arrived.
        sent: Sent,
        /// The error of the transport.
        #[source]
        source: Cause,
    },
    /// Our own time limit ran out.
    #[error(
        "Proxmox did not finish {call} within {limit_s} s: look at its load; what was asked may still happen"
    )]
    TimedOut { call: &'static str, limit_s: u64 },
    /// The peer shows a key that is not pinned. Nothing was sent.
    #[error(
        "the server shows a key that is not pinned ({offered}): if the node's key was changed on purpose, \
         put this pin into the settings, else somebody sits in between"
    )]
    PinMismatch {
        /// The pin that would match.
        offered: Pin,
    },
    /// The certificate was refused for another reason (signature, CA, name). Nothing was sent.
    #[error(
        "the server's certificate is refused: check the configured CA file, the name in the URL and the expiry"
    )]
    CertificateRefused {
        /// The error of the verifier.
        #[source]
        source: Cause,
    },
    /// 401. Expired, wrong and unknown tokens cannot be distinguished.
    #[error("Proxmox refuses the `{role}` token: run `agentd doctor`, then `agentd setup` to make a new one")]
    Unauthorised { role: Role },
    /// 403.
    #[error("the `{role}` token may not do this ({text}): `agentd doctor` prints the line that grants it")]
    Permission {
        role: Role,
        /// Where a privilege is missing, when Proxmox says so.
        path: Option<String>,
        /// Any one of these would do.
        privileges: Vec<String>,
        /// The reason phrase.
        text: String,
    },
    /// 400: our mistake, or a Proxmox version that means something else.
    #[error("Proxmox does not accept {call} ({}): this is a fault of agentd or an unsupported version, report it", list(.errors))]
    Parameters { call: &'static str, errors: BTreeMap<String, String> },
    /// No configuration for this VMID on the node. Without a [`SightProof`](super::visibility::SightProof) it may also
    /// be somewhere else.
    #[error("there is no guest {vmid} on this node")]
    Gone { vmid: Vmid },
    /// A `lock:` in the guest's configuration.
    #[error(
        "guest is locked ({kind}): wait until the task that holds it ends; if none runs, `pct unlock` it on the node"
    )]
    Locked {
        /// `backup`, `snapshot`, `create`, …
        kind: String,
    },
    /// A file lock that was not free in time.
    #[error("Proxmox was busy with this guest or storage for too long ({text}): try again in a minute")]
    LockTimeout {
        /// The reason phrase.
        text: String,
    },
    /// The VMID is taken.
    #[error("VMID {vmid} is taken: look whose it is, or choose another")]
    AlreadyExists { vmid: Vmid },
    /// Stop or shutdown of a stopped guest.
    #[error("guest {vmid} does not run")]
    NotRunning { vmid: Vmid },
    /// Start, or destroy, of a running guest.
    #[error("guest {vmid} runs")]
    AlreadyRunning { vmid: Vmid },
    /// `protection=1` is set.
    #[error(
        "guest {vmid} is protected: only a signed destroy or the undo of its making takes the protection off"
    )]
    Protected { vmid: Vmid },
    /// The configuration was changed since we read it.
    #[error("the guest's configuration changed since it was read: read it again and decide anew")]
    DigestChanged,
    /// A storage does not answer or is switched off.
    #[error("a storage is not available ({text}): mount or enable it on the node")]
    StorageOffline {
        /// Which, when Proxmox says so.
        storage: Option<String>,
        /// The reason phrase.
        text: String,
    },
    /// A storage that Proxmox has no entry for.
    #[error("Proxmox has no storage {storage:?}: correct the settings or add the storage")]
    StorageUnknown {
        /// Its name as we sent it.
        storage: String,
    },
    /// No node of this name.
    #[error("Proxmox has no node {node:?}: correct the settings")]
    NodeUnknown {
        /// Its name as we sent it.
        node: String,
    },
    /// A volume that does not exist.
    #[error("there is no volume {volume}: check the archive's name in the settings")]
    VolumeGone { volume: String },
    /// An archive that cannot be read: it is damaged, or the present key does not open it.
    #[error(
        "the archive cannot be read ({text}): where a key is named, see to the key of its storage's entry; else use another backup"
    )]
    ArchiveUnreadable {
        /// The reason phrase.
        text: String,
    },
    /// A task that Proxmox does not know (yet, or any more).
    #[error("Proxmox does not know this task: it is too new or too old to be listed")]
    NoSuchTask,
    /// 595 and 596, or 502 to 504 of another proxy: a proxy in between gave up.
    #[error(
        "Proxmox passed the call on and got no answer ({status} {reason}): check pvedaemon; it may still happen"
    )]
    GatewayTimeout {
        /// Which of them.
        status: u16,
        /// The reason phrase.
        reason: String,
    },
    /// pmxcfs or the API itself is still starting. Nothing happened.
    #[error("Proxmox is not ready ({reason}): check pve-cluster on the node")]
    NotReady {
        /// The reason phrase.
        reason: String,
    },
    /// 501: this Proxmox does not know the call.
    #[error("this Proxmox does not know the call ({reason}): version 9.1 or newer is needed")]
    Unsupported {
        /// The reason phrase.
        reason: String,
    },
    /// An answer that cannot be read.
    #[error("the answer to {call} cannot be read ({what}): report this with the Proxmox version")]
    Garbled {
        call: &'static str,
        /// Where and why.
        what: String,
    },
    /// An answer above the limit.
    #[error("the answer to {call} is longer than {limit} bytes and was dropped")]
    TooLarge {
        call: &'static str,
        /// The limit in bytes.
        limit: usize,
    },
    /// The settings hold no token for this role.
    #[error("there is no `{role}` token in the settings: run `agentd setup`")]
    NoToken { role: Role },
    /// Any other error.
    #[error("Proxmox refuses {call}: {status} {reason}{}", suffix(.errors))]
    Other {
        call: &'static str,
        status: u16,
        /// The reason phrase.
        reason: String,
        /// By parameter, when there are any.
        errors: BTreeMap<String, String>,
    },
}

fn list(errors: &BTreeMap<String, String>) -> String {
    let line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    errors.iter().map(|(key, text)| format!("{key}: {}", line(text))).collect::<Vec<_>>().join("; ")
}

fn suffix(errors: &BTreeMap<String, String>) -> String {
    if errors.is_empty() { String::new() } else { format!(" ({})", list(errors)) }
}

impl PveError {
    /// The stable code, for reports and refusals.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Locked { .. } | Self::LockTimeout { .. } => ErrorCode::Locked,
            Self::PinMismatch { .. } | Self::CertificateRefused { .. } => ErrorCode::PinMismatch,
            Self::Unauthorised { .. } | Self::NoToken { .. } => ErrorCode::Unauthenticated,
            Self::Permission { .. } | Self::Protected { .. } => ErrorCode::Forbidden,
            Self::Gone { .. } | Self::VolumeGone { .. } | Self::StorageUnknown { .. } => ErrorCode::NotFound,
            Self::AlreadyExists { .. } => ErrorCode::VmidForeign,
            Self::ArchiveUnreadable { .. } => ErrorCode::ArchiveUnusable,
            _ => ErrorCode::Unavailable,
        }
    }

    /// The caller's next step.
    #[must_use]
    pub fn retry_class(&self) -> RetryClass {
        match self {
            Self::Unreachable { sent: Sent::No, .. } | Self::NotReady { .. } => RetryClass::Again,
            Self::Unreachable { sent: Sent::Perhaps, .. }
            | Self::TimedOut { .. }
            | Self::GatewayTimeout { .. } => RetryClass::LookFirst,
            Self::Locked { .. } | Self::LockTimeout { .. } | Self::StorageOffline { .. } => RetryClass::Later,
            // The answer was lost, the request was not.
            Self::Garbled { .. } | Self::TooLarge { .. } => RetryClass::LookFirst,
            Self::DigestChanged
            | Self::NoSuchTask
            | Self::Gone { .. }
            | Self::AlreadyExists { .. }
            | Self::NotRunning { .. }
            | Self::AlreadyRunning { .. } => RetryClass::LookFirst,
            Self::PinMismatch { .. }
            | Self::CertificateRefused { .. }
            | Self::Unauthorised { .. }
            | Self::Permission { .. }
            | Self::Parameters { .. }
            | Self::Protected { .. }
            | Self::StorageUnknown { .. }
            | Self::NodeUnknown { .. }
            | Self::VolumeGone { .. }
            | Self::ArchiveUnreadable { .. }
            | Self::Unsupported { .. }
            | Self::NoToken { .. }
            | Self::Other { .. } => RetryClass::Never,
        }
    }

    /// Whether the requested change can happen (or have happened) despite this error.
    #[must_use]
    pub fn may_have_happened(&self) -> bool {
        matches!(
            self,
            Self::Unreachable { sent: Sent::Perhaps, .. }
                | Self::TimedOut { .. }
                | Self::GatewayTimeout { .. }
                | Self::Garbled { .. }
                | Self::TooLarge { .. }
        )
    }
}
