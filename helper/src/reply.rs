//! Reply: one JSON object with a stable code, and the exit status.
//!
//! Exit status: 0 done, 2 refused with nothing changed, 1 the kernel would not (the sentence says what is left).

use std::fmt;
use std::io::Write;
use std::process::ExitCode;

use serde::Serialize;

use crate::names::{FsUuid, TargetName};

/// How a request ends.
pub type Outcome = Result<Reply, Refusal>;

/// What was done or seen. A target is mounted by us: `how` is `mounted` now, or `already`. The status has every target of
/// the policy, and the mounts beneath `/mnt/holdfast` that the helper did not make. The builder itself reports what it built.
#[derive(Debug, Serialize)]
#[serde(tag = "verb", rename_all = "kebab-case")]
pub enum Reply {
    Mount { target: TargetName, uuid: FsUuid, device: String, at: String, how: &'static str },
    Unmount { target: TargetName, at: String },
    Status { targets: Vec<HelperTargetStatus>, foreign: Vec<String> },
    GoldenBuild,
}

#[derive(Debug, Serialize)]
pub struct HelperTargetStatus {
    pub target: TargetName,
    pub mounted: bool,
    /// The device that matches the policy, when there is exactly one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// Why no device would be mounted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refusal: Option<Refusal>,
}

/// Why nothing was done: a code, and one sentence with who must do what.
#[derive(Debug, Serialize)]
pub struct Refusal {
    pub code: Code,
    pub message: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// `refusal!(Path, "{at} is not empty")`.
macro_rules! refusal {
    ($code:ident, $($message:tt)+) => {
        $crate::reply::Refusal { code: $crate::reply::Code::$code, message: format!($($message)+) }
    };
}
pub(crate) use refusal;

macro_rules! codes {
    ($($name:ident $text:literal)*) => {
        /// The closed set of codes. They are for programs and never change their meaning.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
        pub enum Code {
            $(#[serde(rename = $text)] $name,)*
        }

        impl Code {
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }
        }
    };
}

codes! {
    Argv "E_ARGV" Authz "E_AUTHZ" Busy "E_BUSY" Caps "E_CAPS" Depth "E_DEPTH" DeviceAbsent "E_DEVICE_ABSENT"
    DeviceAmbiguous "E_DEVICE_AMBIGUOUS" DeviceClass "E_DEVICE_CLASS" DupKey "E_DUP_KEY" Encoding "E_ENCODING"
    Env "E_ENV" Failed "E_FAILED" Missing "E_MISSING" MountOpt "E_MOUNT_OPT" NotMounted "E_NOT_MOUNTED"
    Path "E_PATH" Peer "E_PEER" Range "E_RANGE" Size "E_SIZE" Syntax "E_SYNTAX" Timeout "E_TIMEOUT"
    UnknownField "E_UNKNOWN_FIELD"
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
        Ok(reply) => (serde_json::to_string(&Wire { ok: true, body: reply }), 0),
        Err(refusal) => {
            let status = if refusal.code == Code::Failed { 1 } else { 2 };
            (serde_json::to_string(&Wire { ok: false, body: refusal }), status)
        }
    };
    // The caller may be gone; the journal has the line, and the caller can run `status`.
    let sent = text.map_err(std::io::Error::from).and_then(|text| writeln!(std::io::stdout(), "{text}"));
    sent.map_or(ExitCode::FAILURE, |()| ExitCode::from(status))
}
