//! Signed jobs: the one-shot acts that no hub can order by itself.
//!
//! What comes in: bytes whose signature was checked over exactly these bytes (by the crate `holdfast-trust`). What goes
//! out: a [`Payload`], or the first mistake with its place. A payload names a target and an act, never a procedure;
//! each act has its own closed arguments and its own kind of target. Deliberately absent: the signature, the clock, and
//! whether this host should do it.
//!
//! | module | contents |
//! | --- | --- |
//! | [`act`] | what may be ordered, with its arguments |
//! | [`all_hosts`] | the approval of an image for all hosts: the one text that names no host |
//! | [`draft`] | the part of a payload that is the agent's to say |
//! | [`envelope`] | a payload and its signatures on their way |
//! | [`host`] | which host, as the signer knows it |
//! | [`report`] | what became of a job |
//! | [`target`] | upon what, and by what it is recognised |
//! | [`way`] | ways into a host: name, time and key |
//! | [`stamp`] | times, nonce and reason, in one spelling each |

pub mod act;
pub mod all_hosts;
pub mod draft;
pub mod envelope;
pub mod host;
pub mod report;
pub mod stamp;
pub mod target;
pub mod way;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::code::ErrorCode;
use crate::id::{HostId, JobId};
use crate::json::{self, JsonError};

pub use act::{Act, Verb};
pub use all_hosts::{ImageApproval, Ordered};
pub use draft::{Draft, Order};
pub use envelope::SignedJob;
pub use host::{HostFingerprint, SeenHost};
pub use report::{JobReport, JobState, QueuedJob};
pub use stamp::{HostEpoch, Nonce, Reason, UtcSecond};
pub use target::{Fingerprint, SeenCopy, SeenGuest, Target, TargetKind};

/// Longer than any payload that names one target.
pub const BYTES_MAX: usize = 64 * 1024;

/// From `not_before` to `expires_at`, at most: a forgotten job does not stay valid for ever.
pub const LIFE_MAX_S: i64 = 24 * 3_600;

/// The schema this module speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum JobSchema {
    /// The first.
    #[serde(rename = "holdfast.job/v1")]
    V1,
}

/// One act, for one target, on one host, once, within its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payload {
    /// Its name. It is consumed together with the nonce.
    pub job_id: JobId,
    /// The host that shall do it.
    pub host_id: HostId,
    /// Which life of that host's state: a state restored from an old copy has another one.
    pub host_epoch: HostEpoch,
    /// The host as the signer knows it: the host compares it with itself. A job of an older `holdfast` does not contain
    /// it.
    pub host: Option<SeenHost>,
    /// Upon what.
    pub target: Target,
    /// What.
    pub act: Act,
    /// Not earlier.
    pub not_before: UtcSecond,
    /// Not at or after this.
    pub expires_at: UtcSecond,
    /// Never the same twice.
    pub nonce: Nonce,
    /// Why, for the audit and for people.
    pub reason: Reason,
}

/// The payload as written on the wire.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    schema: JobSchema,
    job_id: JobId,
    host_id: HostId,
    host_epoch: HostEpoch,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    host: Option<SeenHost>,
    target: Target,
    verb: Verb,
    // Read again by the verb's own form, from the same bytes, so that a key twice is seen there as well.
    args: Box<RawValue>,
    not_before: UtcSecond,
    expires_at: UtcSecond,
    nonce: Nonce,
    reason: Reason,
}

/// Why bytes are not a payload.
#[derive(Debug, thiserror::Error)]
pub enum PayloadError {
    /// Not the document it should be.
    #[error(transparent)]
    Form(#[from] JsonError),
    /// The act cannot be done to this kind of thing.
    #[error("{verb} is done to a {wanted}, and the target is a {found}: make the job anew", verb = .verb.as_str(), wanted = .wanted.as_str(), found = .found.as_str())]
    Target {
        /// What was ordered.
        verb: Verb,
        /// What it is done to.
        wanted: TargetKind,
        /// What was named.
        found: TargetKind,
    },
    /// Lists for objects, nulls for absent values: readable, but not the one accepted form.
    #[error("the job is not written in its one form: make it with `holdfast sign`")]
    Spelling,
    /// It ends before it begins, or is valid for too long.
    #[error("the job is valid for {seconds} s; it must be 1 to {LIFE_MAX_S}: make it anew with a nearer end")]
    Life {
        /// From its begin to its end.
        seconds: i64,
    },
    /// The same of an approval for all hosts.
    #[error(
        "the approval is valid for {seconds} s; it must be 1 to {}: make it anew with a nearer end",
        all_hosts::APPROVAL_LIFE_MAX_S
    )]
    ApprovalLife {
        /// From its begin to its end.
        seconds: i64,
    },
}

impl PayloadError {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Form(error) => error.code(),
            Self::Target { .. } => ErrorCode::TargetKind,
            Self::Spelling => ErrorCode::Range,
            Self::Life { .. } | Self::ApprovalLife { .. } => ErrorCode::JobLife,
        }
    }
}

impl Payload {
    /// Reads a payload. The signature over these bytes must have been checked before.
    ///
    /// # Errors
    /// [`PayloadError`], at the first mistake.
    pub fn parse(bytes: &[u8]) -> Result<Self, PayloadError> {
        let wire: Wire = json::parse("a job", bytes, BYTES_MAX)?;
        let act = Act::parse(wire.verb, wire.args.get())?;
        let (wanted, found) = (wire.verb.target(), wire.target.kind());
        if wanted != found {
            return Err(PayloadError::Target { verb: wire.verb, wanted, found });
        }
        let seconds = wire.expires_at.second().saturating_sub(wire.not_before.second());
        if !(1..=LIFE_MAX_S).contains(&seconds) {
            return Err(PayloadError::Life { seconds });
        }
        let payload = Self {
            job_id: wire.job_id,
            host_id: wire.host_id,
            host_epoch: wire.host_epoch,
            host: wire.host,
            target: wire.target,
            act,
            not_before: wire.not_before,
            expires_at: wire.expires_at,
            nonce: wire.nonce,
            reason: wire.reason,
        };
        if is_spelled(bytes, payload.to_json()) { Ok(payload) } else { Err(PayloadError::Spelling) }
    }

    /// The text to sign: one line of JSON. The signer signs these bytes; no program writes them anew.
    ///
    /// # Errors
    /// When the arguments cannot be written as JSON, which would be a fault of this program.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(&Wire {
            schema: JobSchema::V1,
            job_id: self.job_id,
            host_id: self.host_id,
            host_epoch: self.host_epoch,
            host: self.host.clone(),
            target: self.target.clone(),
            verb: self.act.verb(),
            args: RawValue::from_string(self.act.args()?)?,
            not_before: self.not_before,
            expires_at: self.expires_at,
            nonce: self.nonce.clone(),
            reason: self.reason.clone(),
        })
    }
}

/// Whether these bytes, but for spaces and the order of fields, are what their content is written as.
fn is_spelled(bytes: &[u8], written: Result<String, serde_json::Error>) -> bool {
    let value = |bytes: &[u8]| serde_json::from_slice::<serde_json::Value>(bytes).ok();
    let same = |text: String| text.as_bytes() == bytes || value(bytes) == value(text.as_bytes());
    written.is_ok_and(same)
}

#[cfg(test)]
mod tests;
