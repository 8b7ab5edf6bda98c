//! What goes out: one JSON object with a stable code and a sentence, and the exit status.
//!
//! Exit status: 0 done, 2 refused with nothing changed, 1 the kernel would not (the sentence says what is left).

use std::fmt;
use std::io::Write;
use std::process::ExitCode;

use serde::{Serialize, Serializer};

use crate::names::{FsUuid, TargetName};

/// How a request ends.
pub type Outcome = Result<Reply, Refusal>;

/// What was done or seen.
#[derive(Debug, Serialize)]
#[serde(tag = "verb", rename_all = "lowercase")]
pub enum Reply {
    #[serde(rename = "mount")]
    Mounted(Mounted),
    #[serde(rename = "unmount")]
    Unmounted(Unmounted),
    Status(Status),
}

/// A target is mounted, by us, now or before.
#[derive(Debug, Serialize)]
pub struct Mounted {
    pub target: TargetName,
    pub uuid: FsUuid,
    pub device: String,
    pub at: String,
    /// `mounted` now, or `already`.
    pub how: How,
}

/// Whether this call did it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum How {
    Mounted,
    Already,
}

/// A target is unmounted.
#[derive(Debug, Serialize)]
pub struct Unmounted {
    pub target: TargetName,
    pub at: String,
}

/// Every target of the policy, and what else lies beneath `/mnt/holdfast`.
#[derive(Debug, Serialize)]
pub struct Status {
    pub targets: Vec<TargetStatus>,
    /// Mount points beneath `/mnt/holdfast` that the helper did not make.
    pub foreign: Vec<String>,
}

/// One target.
#[derive(Debug, Serialize)]
pub struct TargetStatus {
    pub target: TargetName,
    pub mounted: bool,
    /// The device that wears the identity of the policy, when there is exactly one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// Why no device would be mounted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refusal: Option<Refusal>,
}

/// Why nothing was done.
#[derive(Debug, Serialize)]
pub struct Refusal {
    pub code: Code,
    /// One sentence, with who must do what.
    pub says: String,
}

impl Refusal {
    pub fn new(code: Code, says: impl Into<String>) -> Self {
        Self { code, says: says.into() }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.says)
    }
}

/// The closed set of codes. They are for programs and never change their meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    Argv,
    Authz,
    Busy,
    Caps,
    Depth,
    DeviceAbsent,
    DeviceAmbiguous,
    DeviceClass,
    DupKey,
    Encoding,
    Env,
    Failed,
    Missing,
    MountOpt,
    NotMounted,
    Path,
    Peer,
    Range,
    Size,
    Syntax,
    Timeout,
    UnknownField,
}

impl Code {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Argv => "E_ARGV",
            Self::Authz => "E_AUTHZ",
            Self::Busy => "E_BUSY",
            Self::Caps => "E_CAPS",
            Self::Depth => "E_DEPTH",
            Self::DeviceAbsent => "E_DEVICE_ABSENT",
            Self::DeviceAmbiguous => "E_DEVICE_AMBIGUOUS",
            Self::DeviceClass => "E_DEVICE_CLASS",
            Self::DupKey => "E_DUP_KEY",
            Self::Encoding => "E_ENCODING",
            Self::Env => "E_ENV",
            Self::Failed => "E_FAILED",
            Self::Missing => "E_MISSING",
            Self::MountOpt => "E_MOUNT_OPT",
            Self::NotMounted => "E_NOT_MOUNTED",
            Self::Path => "E_PATH",
            Self::Peer => "E_PEER",
            Self::Range => "E_RANGE",
            Self::Size => "E_SIZE",
            Self::Syntax => "E_SYNTAX",
            Self::Timeout => "E_TIMEOUT",
            Self::UnknownField => "E_UNKNOWN_FIELD",
        }
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// The form on the wire: `ok` first, then the reply or the refusal.
#[derive(Serialize)]
struct Wire<'a, T> {
    ok: bool,
    #[serde(flatten)]
    body: &'a T,
}

/// Writes the reply; gives the exit status.
pub fn send(outcome: &Outcome) -> ExitCode {
    let (text, status) = match outcome {
        Ok(reply) => (serde_json::to_string(&Wire { ok: true, body: reply }), ExitCode::SUCCESS),
        Err(refusal) => {
            let status = if refusal.code == Code::Failed { 1 } else { 2 };
            (serde_json::to_string(&Wire { ok: false, body: refusal }), ExitCode::from(status))
        }
    };
    let Ok(mut text) = text else { return ExitCode::FAILURE };
    text.push('\n');
    let mut out = std::io::stdout().lock();
    // Nobody may be listening any more; the journal has the line, and the caller asks `status`.
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => status,
        Err(_) => ExitCode::FAILURE,
    }
}
