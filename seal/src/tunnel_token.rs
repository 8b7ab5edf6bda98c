//! Token of a tunnel, sealed for its host.
//!
//! It names its tunnel, since nothing outside is bound to it.

use holdfast_protocol::id::TunnelName;
use holdfast_protocol::json;
use holdfast_protocol::secret::Secret;
use holdfast_protocol::storage::sealed::COPIES_MAX;
use holdfast_protocol::storage::{HostRecipient, Sealed, SealedCopies};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::file::{OpenError, PLAIN_BYTES_MAX, SealError, unwrap, wrap};
use crate::key::HostKey;

/// The longest token; one of cloudflared has some 200.
pub const TOKEN_CHARS_MAX: usize = 2_000;

/// The version of the content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum TunnelTokenSchema {
    /// The only one so far.
    #[default]
    #[serde(rename = "holdfast.tunnel-token/v1")]
    V1,
}

/// A token with its tunnel.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TunnelToken {
    schema: TunnelTokenSchema,
    tunnel: TunnelName,
    token: Secret,
}

impl TunnelToken {
    /// Puts it together.
    ///
    /// # Errors
    /// [`OpenError::Value`], by the same rule as on opening.
    pub fn new(tunnel: TunnelName, token: Secret) -> Result<Self, OpenError> {
        let token = Self { schema: TunnelTokenSchema::V1, tunnel, token };
        token.check()?;
        Ok(token)
    }

    #[must_use]
    pub const fn token(&self) -> &Secret {
        &self.token
    }

    /// Seals it for a host.
    ///
    /// # Errors
    /// [`SealError`].
    pub fn seal(&self, to: &HostRecipient) -> Result<Sealed, SealError> {
        let mut plain = Zeroizing::new(Vec::with_capacity(PLAIN_BYTES_MAX));
        serde_json::to_writer(&mut *plain, self).map_err(|error| SealError::Library(Box::new(error)))?;
        wrap(&plain, to)
    }

    /// Opens the token of a tunnel.
    ///
    /// # Errors
    /// [`OpenError`], at the first reason.
    pub fn open(sealed: &Sealed, key: &HostKey, tunnel: &TunnelName) -> Result<Self, OpenError> {
        let plain = unwrap(sealed, key)?;
        let token: Self =
            json::parse("the sealed token", &plain, PLAIN_BYTES_MAX).map_err(OpenError::Form)?;
        if token.tunnel != *tunnel {
            let (inside, wanted) = (token.tunnel.to_string(), tunnel.to_string());
            return Err(OpenError::OtherTunnel { inside, wanted });
        }
        token.check()?;
        Ok(token)
    }

    /// Seals it again, for each of these readers by itself.
    ///
    /// # Errors
    /// [`SealError`]; more readers than there may be are one, too.
    pub fn copies(&self, readers: &[HostRecipient]) -> Result<SealedCopies, SealError> {
        let copies: Result<Vec<Sealed>, SealError> =
            readers.iter().take(COPIES_MAX + 1).map(|reader| self.seal(reader)).collect();
        SealedCopies::try_from(copies?).map_err(SealError::Readers)
    }

    /// Opens the one of the copies that is sealed for this key.
    ///
    /// # Errors
    /// [`OpenError`]; [`OpenError::OtherKey`] where none is.
    pub fn open_copy(copies: &SealedCopies, key: &HostKey, tunnel: &TunnelName) -> Result<Self, OpenError> {
        for copy in copies.iter() {
            match Self::open(copy, key, tunnel) {
                Err(OpenError::OtherKey) => {}
                opened => return opened,
            }
        }
        Err(OpenError::OtherKey)
    }

    /// One word: nothing that could end a line of a file or an argument.
    fn check(&self) -> Result<(), OpenError> {
        let token = self.token.expose();
        let possible =
            (1..=TOKEN_CHARS_MAX).contains(&token.len()) && token.bytes().all(|b| b.is_ascii_graphic());
        if possible {
            Ok(())
        } else {
            Err(OpenError::Value("a token is 1 to 2000 ASCII characters without spaces"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(text: &str) -> Result<TunnelToken, OpenError> {
        TunnelToken::new("cf".parse().unwrap(), Secret::new(text.to_owned()))
    }

    #[test]
    fn a_token_opens_for_its_host_and_tunnel_only() {
        let (key, other) = (HostKey::generate(), HostKey::generate());
        let sealed = token("eyJhIjoiNWFiNGU5Z").unwrap().seal(&key.recipient().unwrap()).unwrap();
        let (cf, wg) = ("cf".parse().unwrap(), "wg".parse().unwrap());
        assert_eq!(TunnelToken::open(&sealed, &key, &cf).unwrap().token().expose(), "eyJhIjoiNWFiNGU5Z");
        assert!(matches!(TunnelToken::open(&sealed, &other, &cf), Err(OpenError::OtherKey)));
        assert!(matches!(TunnelToken::open(&sealed, &key, &wg), Err(OpenError::OtherTunnel { .. })));
    }

    #[test]
    fn a_copy_opens_for_each_of_its_readers() {
        let (ada, bob, stranger) = (HostKey::generate(), HostKey::generate(), HostKey::generate());
        let readers = [ada.recipient().unwrap(), bob.recipient().unwrap()];
        let copies = token("eyJhIjoiNWFiNGU5Z").unwrap().copies(&readers).unwrap();
        let (cf, wg) = ("cf".parse().unwrap(), "wg".parse().unwrap());
        for key in [&ada, &bob] {
            let opened = TunnelToken::open_copy(&copies, key, &cf).unwrap();
            assert_eq!(opened.token().expose(), "eyJhIjoiNWFiNGU5Z");
            assert!(matches!(TunnelToken::open_copy(&copies, key, &wg), Err(OpenError::OtherTunnel { .. })));
        }
        assert!(matches!(TunnelToken::open_copy(&copies, &stranger, &cf), Err(OpenError::OtherKey)));
        let five = vec![ada.recipient().unwrap(); COPIES_MAX + 1];
        assert!(matches!(token("eyJ").unwrap().copies(&five), Err(SealError::Readers(_))));
    }

    #[test]
    fn a_token_is_one_word_that_fits_when_sealed() {
        let key = HostKey::generate();
        for bad in ["", "a b", "a\nb", "\u{e4}", &"a".repeat(TOKEN_CHARS_MAX + 1)] {
            assert!(token(bad).is_err(), "{bad:?}");
        }
        let longest = token(&"a".repeat(TOKEN_CHARS_MAX)).unwrap();
        longest.seal(&key.recipient().unwrap()).unwrap();
    }
}
