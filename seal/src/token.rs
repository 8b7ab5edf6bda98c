//! Proxmox token, sealed on the disk of its host.

use holdfast_protocol::json;
use holdfast_protocol::secret::Secret;
use holdfast_protocol::storage::{HostRecipient, Sealed};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::file::{OpenError, PLAIN_BYTES_MAX, SealError, unwrap, wrap};
use crate::key::HostKey;

/// The version of the content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum TokenSchema {
    /// The only one so far.
    #[default]
    #[serde(rename = "holdfast.proxmox-token/v1")]
    V1,
}

/// A token with its secret.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Token {
    schema: TokenSchema,
    id: String,
    secret: Secret,
}

impl Token {
    /// Puts it together.
    ///
    /// # Errors
    /// [`OpenError::Value`] when it is of no form that Proxmox gives.
    pub fn new(id: String, secret: Secret) -> Result<Self, OpenError> {
        let token = Self { schema: TokenSchema::V1, id, secret };
        token.check()?;
        Ok(token)
    }

    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    #[must_use]
    pub const fn secret(&self) -> &Secret {
        &self.secret
    }

    /// Seals it for a host.
    pub fn seal(&self, to: &HostRecipient) -> Result<Sealed, SealError> {
        let mut plain = Zeroizing::new(Vec::with_capacity(PLAIN_BYTES_MAX));
        serde_json::to_writer(&mut *plain, self).map_err(|error| SealError::Library(Box::new(error)))?;
        wrap(&plain, to)
    }

    pub fn open(sealed: &Sealed, key: &HostKey) -> Result<Self, OpenError> {
        let plain = unwrap(sealed, key)?;
        let token: Self =
            json::parse("the sealed token", &plain, PLAIN_BYTES_MAX).map_err(OpenError::Form)?;
        token.check()?;
        Ok(token)
    }

    fn check(&self) -> Result<(), OpenError> {
        let plain = |text: &str, max: usize, more: &str| {
            (1..=max).contains(&text.len())
                && text.chars().all(|c| c.is_ascii_alphanumeric() || more.contains(c))
        };
        let parts = self.id.split_once('!').and_then(|(user, name)| Some((user.split_once('@')?, name)));
        match parts {
            Some(((user, realm), name))
                if [user, realm, name].iter().all(|part| plain(part, 64, "._-"))
                    && plain(self.secret.expose(), 128, "-") =>
            {
                Ok(())
            }
            _ => Err(OpenError::Value("a token is user@realm!name with the secret that Proxmox gave")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_opens_for_its_host_only() {
        let (key, other) = (HostKey::generate(), HostKey::generate());
        let secret = Secret::new("11111111-2222-3333-4444-555555555555".to_owned());
        let token = Token::new("holdfast@pve!storage".to_owned(), secret).unwrap();
        let sealed = token.seal(&key.recipient().unwrap()).unwrap();
        let opened = Token::open(&sealed, &key).unwrap();
        assert_eq!((opened.id(), opened.secret().expose()), (token.id(), token.secret().expose()));
        assert!(matches!(Token::open(&sealed, &other), Err(OpenError::OtherKey)));
        for id in ["storage", "a@b", "a!b", "a b@pve!c", "@pve!c"] {
            assert!(Token::new(id.to_owned(), Secret::new("s".to_owned())).is_err(), "{id}");
        }
    }
}
