//! Record of the last claim attempt and its proof.
//!
//! A claim serves once, and a second redeemer freezes both. So before a claim is sent, a random proof is written down and
//! sent along: if the answer is lost, or this program is killed before it stored it, the same claim is sent with the same
//! proof, by which the agent knows its own guest again. A claim that was refused or spent is never sent twice.

use std::path::PathBuf;

use holdfast_protocol::bootstrap::BootstrapToken;
use holdfast_protocol::json::{self, JsonError};
use holdfast_protocol::secret::Secret;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::file::{self, Eyes, FileError};
use crate::paths::Paths;

const BYTES_MAX: usize = 4 * 1024;

/// The version of the record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Schema {
    #[default]
    #[serde(rename = "holdfast.guestd-claim/v1")]
    V1,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attempt {
    schema: Schema,
    /// Which claim, by its SHA-256.
    claim_sha256: String,
    /// What makes a repeat known as one.
    redeemer: Secret,
    /// The result of the claim.
    pub outcome: Outcome,
}

/// The result of a claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It may have been sent; the answer is not known.
    Open,
    /// The token was stored.
    Redeemed,
    /// The agent refused it, with this message.
    Refused(String),
}

/// Why the record cannot be kept.
#[derive(Debug, thiserror::Error)]
pub enum AttemptError {
    /// The file itself.
    #[error(transparent)]
    File(#[from] FileError),
    #[error("{} is malformed: remove it, then have the agent issue a new bootstrap token", path.display())]
    Malformed {
        path: PathBuf,
        /// Where and why.
        #[source]
        source: JsonError,
    },
    /// The kernel gives no random numbers.
    #[error("the kernel returned no random numbers")]
    Random(#[source] getrandom::Error),
    /// Cannot happen for a record of plain text.
    #[error("the record cannot be written as JSON")]
    Unwritable(#[source] serde_json::Error),
}

fn path(paths: &Paths) -> PathBuf {
    paths.state_dir().join("claim.json")
}

impl Attempt {
    /// A new one for this bootstrap token.
    pub fn begin(bootstrap_token: &BootstrapToken) -> Result<Self, AttemptError> {
        let mut proof = Zeroizing::new([0; 32]);
        getrandom::fill(proof.as_mut_slice()).map_err(AttemptError::Random)?;
        Ok(Self {
            schema: Schema::V1,
            claim_sha256: name(bootstrap_token),
            redeemer: Secret::new(hex::encode(proof)),
            outcome: Outcome::Open,
        })
    }

    /// Whether it is about this bootstrap token.
    pub fn is_of(&self, bootstrap_token: &BootstrapToken) -> bool {
        self.claim_sha256 == name(bootstrap_token)
    }

    /// What makes a repeat known as one.
    pub const fn redeemer(&self) -> &Secret {
        &self.redeemer
    }

    /// Reads it; none when there is none.
    pub fn load(paths: &Paths) -> Result<Option<Self>, AttemptError> {
        let path = path(paths);
        let Some(bytes) = file::read(&path, BYTES_MAX, Eyes::Owner)? else { return Ok(None) };
        json::parse("the record", &bytes, BYTES_MAX)
            .map(Some)
            .map_err(|source| AttemptError::Malformed { path, source })
    }

    /// Writes it, durably.
    pub fn store(&self, paths: &Paths) -> Result<(), AttemptError> {
        let bytes = Zeroizing::new(serde_json::to_vec(self).map_err(AttemptError::Unwritable)?);
        Ok(file::replace(&path(paths), &bytes, Eyes::Owner)?)
    }
}

fn name(bootstrap_token: &BootstrapToken) -> String {
    hex::encode(bootstrap_token.claim.hash().as_bytes())
}
