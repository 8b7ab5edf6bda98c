//! Key of a host: an `age` X25519 identity.
//!
//! It is wiped when dropped and has no `Debug` output.

use std::fmt;
use std::str::FromStr;

use age::secrecy::ExposeSecret;
use age::x25519::Identity;
use holdfast_protocol::secret::Secret;
use holdfast_protocol::storage::HostRecipient;

/// The private half.
pub struct HostKey(Identity);

/// A text that is no such key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is no age identity: one line that begins with AGE-SECRET-KEY-1")]
pub struct NoKey;

impl HostKey {
    /// Makes one, from the kernel's randomness.
    #[must_use]
    pub fn generate() -> Self {
        Self(Identity::generate())
    }

    /// Reads one back.
    pub fn parse(text: &str) -> Result<Self, NoKey> {
        Identity::from_str(text.trim()).map(Self).map_err(|_| NoKey)
    }

    /// For the file that it is kept in.
    #[must_use]
    pub fn to_text(&self) -> Secret {
        Secret::new(self.0.to_string().expose_secret().to_owned())
    }

    /// The public half, which secrets are sealed to.
    ///
    /// # Errors
    /// [`NoKey`] where the library writes it in a form that we do not know.
    pub fn recipient(&self) -> Result<HostRecipient, NoKey> {
        HostRecipient::try_from(self.0.to_public().to_string()).map_err(|_| NoKey)
    }

    pub(crate) const fn identity(&self) -> &Identity {
        &self.0
    }
}

impl fmt::Debug for HostKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HostKey(…)")
    }
}
