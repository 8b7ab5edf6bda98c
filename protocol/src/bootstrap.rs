//! The bootstrap token, by which a guest finds its agent.
//!
//! The agent sets the container's `env` to [`VARIABLE`]`=<bootstrap token>`; PID 1 hands it on; `guestd` reads it, pins
//! the leaf, trades the claim for its token and keeps [`Bootstrap`] in a file of its own. Anyone who may audit the
//! guest can read the bootstrap token, and it travels with backups. So it is worth nothing once it is used or ten
//! minutes old.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::{CustomerId, GuestUid};
use crate::json::{self, JsonError};
use crate::pin::Pin;
use crate::secret::Secret;

/// The variable in the container's environment.
pub const VARIABLE: &str = "HOLDFAST_BOOTSTRAP";

/// A bootstrap token is at most 4 KiB before encoding.
pub const BOOTSTRAP_TOKEN_BYTES_MAX: usize = 4 * 1024;

/// `bootstrap.json` is at most 16 KiB.
pub const BOOTSTRAP_BYTES_MAX: usize = 16 * 1024;

/// How long a claim lives, in seconds.
pub const CLAIM_SECONDS: u32 = 600;

/// The version of a bootstrap token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum BootstrapTokenSchema {
    /// The only one so far.
    #[default]
    #[serde(rename = "holdfast.claim/v1")]
    V1,
}

/// Why a guest was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// To serve its customer.
    Serve,
    /// To prove that a backup can be restored; it has no way out.
    RestoreTest,
}

/// What the environment carries.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BootstrapToken {
    /// The version of the bootstrap token.
    pub schema: BootstrapTokenSchema,
    /// The agent's local API, `https://address:8443`.
    pub endpoint: String,
    /// The pin of its certificate.
    pub pin: Pin,
    /// Traded once for the token.
    pub claim: Secret,
    /// Why the guest was started.
    pub mode: Mode,
}

/// Why the environment's value is not a bootstrap token.
#[derive(Debug, thiserror::Error)]
pub enum BootstrapTokenError {
    /// Not base64url.
    #[error("{VARIABLE} is not base64url: the agent that made this guest must set it anew")]
    Encoding(#[source] base64::DecodeError),
    /// Not a bootstrap token.
    #[error(
        "{VARIABLE} does not hold a bootstrap token of this version: agent and controller must be of one release line"
    )]
    Content(#[source] JsonError),
}

impl BootstrapToken {
    /// The value of the variable.
    ///
    /// # Errors
    /// Only when the parts cannot be written as JSON.
    pub fn seal(&self) -> Result<Secret, serde_json::Error> {
        let json = zeroize::Zeroizing::new(serde_json::to_vec(self)?);
        Ok(Secret::new(URL_SAFE_NO_PAD.encode(json.as_slice())))
    }

    /// Reads the value of the variable.
    ///
    /// # Errors
    /// [`BootstrapTokenError`].
    pub fn open(value: &Secret) -> Result<Self, BootstrapTokenError> {
        let bytes = URL_SAFE_NO_PAD.decode(value.expose().trim()).map_err(BootstrapTokenError::Encoding)?;
        let bytes = zeroize::Zeroizing::new(bytes);
        json::parse("the bootstrap token", &bytes, BOOTSTRAP_TOKEN_BYTES_MAX)
            .map_err(BootstrapTokenError::Content)
    }
}

/// The version of `bootstrap.json`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum BootstrapSchema {
    /// The only one so far.
    #[default]
    #[serde(rename = "holdfast.bootstrap/v1")]
    V1,
}

/// What a controller keeps, in a file of mode 0600, written once.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Bootstrap {
    /// The version of the file.
    pub schema: BootstrapSchema,
    /// Who the guest belongs to.
    pub customer: CustomerId,
    /// Who the guest is.
    pub guest: GuestUid,
    /// The hub of its agent; only shown.
    pub hub: String,
    /// The agent's local API.
    pub endpoint: String,
    /// The pin of its certificate.
    pub pin: Pin,
    /// The guest's own token.
    pub token: Secret,
    /// Counts this guest's tokens.
    pub token_generation: u32,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pin::PinKind;

    #[test]
    fn a_bootstrap_token_reads_back_and_fits_an_environment() {
        let token = BootstrapToken {
            schema: BootstrapTokenSchema::V1,
            endpoint: "https://10.66.0.1:8443".to_owned(),
            pin: Pin::of(PinKind::Leaf, b"leaf"),
            claim: Secret::new("c".repeat(43)),
            mode: Mode::Serve,
        };
        let value = token.seal().unwrap();
        assert!(value.expose().chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_'));
        assert_eq!(BootstrapToken::open(&value).unwrap().claim.expose(), token.claim.expose());
        assert!(BootstrapToken::open(&Secret::new("{{claim}}".to_owned())).is_err());
    }
}
