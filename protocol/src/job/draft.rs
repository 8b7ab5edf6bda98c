//! Job drafts, as the agent writes them.
//!
//! The agent does not choose the rest of a payload. Host and epoch are in the report; the signer adds the id, the
//! times, the nonce and the reason.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::act::{Act, Verb};
use super::host::SeenHost;
use super::stamp::{HostEpoch, Nonce, Reason, UtcSecond};
use super::target::Target;
use super::{BYTES_MAX, Payload, PayloadError};
use crate::id::{HostId, JobId};
use crate::json;

/// The schema of a draft.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum DraftSchema {
    #[serde(rename = "holdfast.job-draft/v1")]
    V1,
}

/// An act upon a target, not ordered by anybody yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// Upon what.
    pub target: Target,
    /// What.
    pub act: Act,
}

/// What the signer adds to a draft.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// The job's name.
    pub job_id: JobId,
    /// The host that shall do it.
    pub host_id: HostId,
    /// Which life of that host's state.
    pub host_epoch: HostEpoch,
    /// The host as the signer knows it.
    pub host: Option<SeenHost>,
    /// Not earlier.
    pub not_before: UtcSecond,
    /// Not at or after this.
    pub expires_at: UtcSecond,
    /// Never the same twice.
    pub nonce: Nonce,
    /// Why.
    pub reason: Reason,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    schema: DraftSchema,
    verb: Verb,
    target: Target,
    args: Box<RawValue>,
}

impl Draft {
    /// Reads a draft.
    ///
    /// # Errors
    /// [`PayloadError`], at the first mistake.
    pub fn parse(bytes: &[u8]) -> Result<Self, PayloadError> {
        let wire: Wire = json::parse("what waits for a signature", bytes, BYTES_MAX)?;
        let act = Act::parse(wire.verb, wire.args.get())?;
        let (wanted, found) = (wire.verb.target(), wire.target.kind());
        if wanted != found {
            return Err(PayloadError::Target { verb: wire.verb, wanted, found });
        }
        Ok(Self { target: wire.target, act })
    }

    /// One line of JSON.
    ///
    /// # Errors
    /// When the arguments cannot be written as JSON, which would be a fault of this program.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(&Wire {
            schema: DraftSchema::V1,
            verb: self.act.verb(),
            target: self.target.clone(),
            args: RawValue::from_string(self.act.args()?)?,
        })
    }

    /// The whole payload.
    #[must_use]
    pub fn ordered(self, order: Order) -> Payload {
        Payload {
            job_id: order.job_id,
            host_id: order.host_id,
            host_epoch: order.host_epoch,
            host: order.host,
            target: self.target,
            act: self.act,
            not_before: order.not_before,
            expires_at: order.expires_at,
            nonce: order.nonce,
            reason: order.reason,
        }
    }
}
