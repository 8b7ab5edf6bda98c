//! Keys for sessions, sign-in links, recovery codes and authenticators.
//!
//! All are derived from the seed of the hub's folder, so the database alone is nothing to sign in with. Hubs that share a
//! database share the seed.

use holdfast_protocol::id::OperatorName;
use holdfast_protocol::secret::{Secret, TokenHash};
use holdfast_protocol::sign_in::LINK_TOKEN_PREFIX;
use ring::{aead, hmac};
use subtle::ConstantTimeEq as _;
use uuid::Uuid;
use zeroize::Zeroizing;

use super::Authority;
use crate::domain::sign_in::totp::{SECRET_BYTES, TotpSecret};

/// Bytes of a nonce, which is at the front of what is sealed.
pub const NONCE_BYTES: usize = aead::NONCE_LEN;

/// A secret that could not be sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the secret of an authenticator could not be sealed")]
pub struct SealError;

impl Authority {
    pub(super) fn derived(&self, purpose: &str, of: &[u8]) -> Zeroizing<[u8; 32]> {
        let tag = hmac::sign(&self.seed, &[purpose.as_bytes(), &[0], of].concat());
        let mut key = Zeroizing::new([0; 32]);
        key.iter_mut().zip(tag.as_ref()).for_each(|(to, from)| *to = *from);
        key
    }

    /// What a change by a session must carry.
    #[must_use]
    pub fn csrf(&self, session: TokenHash) -> Secret {
        Secret::new(hex::encode(self.derived("csrf of a session", session.as_bytes()).as_slice()))
    }

    /// Compares in constant time.
    #[must_use]
    pub fn is_csrf(&self, session: TokenHash, given: &[u8]) -> bool {
        self.csrf(session).expose().as_bytes().ct_eq(given).into()
    }

    /// A link's token by its number, so that a repeated request is answered with the same link.
    #[must_use]
    pub fn sign_in_link_token(&self, number: Uuid) -> Secret {
        let tag = self.derived("sign-in link", number.as_bytes());
        Secret::new(format!("{LINK_TOKEN_PREFIX}{}", hex::encode(tag.as_slice())))
    }

    /// What is stored of a recovery code in its one spelling.
    #[must_use]
    pub fn recovery_code(&self, name: &OperatorName, code: &str) -> TokenHash {
        let of = Zeroizing::new([name.as_str().as_bytes(), &[0], code.as_bytes()].concat());
        TokenHash::from_bytes(*self.derived("recovery code", &of))
    }

    /// Seals the secret of an operator's authenticator.
    ///
    /// # Errors
    /// [`SealError`].
    pub fn seal_totp(
        &self,
        name: &OperatorName,
        secret: &TotpSecret,
        nonce: [u8; NONCE_BYTES],
    ) -> Result<Vec<u8>, SealError> {
        let mut bytes = Zeroizing::new(secret.expose().to_vec());
        let (nonce_at, whose) = (aead::Nonce::assume_unique_for_key(nonce), aead::Aad::from(name.as_str()));
        let tag = self.sealing_key()?.seal_in_place_separate_tag(nonce_at, whose, &mut bytes);
        let tag = tag.map_err(|_| SealError)?;
        Ok([&nonce[..], &bytes, tag.as_ref()].concat())
    }

    /// Opens it again; none where it was damaged, or is another operator's.
    #[must_use]
    pub fn open_totp(&self, name: &OperatorName, sealed: &[u8]) -> Option<TotpSecret> {
        let (nonce, sealed) = sealed.split_first_chunk::<NONCE_BYTES>()?;
        let mut bytes = Zeroizing::new(sealed.to_vec());
        let (nonce, whose) = (aead::Nonce::assume_unique_for_key(*nonce), aead::Aad::from(name.as_str()));
        let opened = self.sealing_key().ok()?.open_in_place(nonce, whose, &mut bytes).ok()?;
        Some(TotpSecret::new(<[u8; SECRET_BYTES]>::try_from(&*opened).ok()?))
    }

    fn sealing_key(&self) -> Result<aead::LessSafeKey, SealError> {
        let key = self.derived("seal of authenticators", &[]);
        let key = aead::UnboundKey::new(&aead::CHACHA20_POLY1305, key.as_slice()).map_err(|_| SealError)?;
        Ok(aead::LessSafeKey::new(key))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Fresh;
    use super::*;
    use jiff::Timestamp;

    fn authority() -> (Authority, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let now = Timestamp::from_second(1_700_000_000).unwrap();
        (Authority::open_or_make(folder.path(), Fresh::Yes, now).unwrap(), folder)
    }

    #[test]
    fn a_sealed_secret_opens_for_its_operator_at_its_hub_alone() {
        let ((authority, _one), (other, _two)) = (authority(), authority());
        let (ada, bob) = ("ada".parse().unwrap(), "bob".parse().unwrap());
        let secret = TotpSecret::new([7; SECRET_BYTES]);
        let sealed = authority.seal_totp(&ada, &secret, [1; NONCE_BYTES]).unwrap();
        assert!(!sealed.windows(SECRET_BYTES).any(|window| window == secret.expose()));
        assert_eq!(authority.open_totp(&ada, &sealed).unwrap().expose(), secret.expose());
        assert!(authority.open_totp(&bob, &sealed).is_none() && other.open_totp(&ada, &sealed).is_none());
        for place in [0, NONCE_BYTES, sealed.len() - 1] {
            let mut damaged = sealed.clone();
            damaged[place] ^= 1;
            assert!(authority.open_totp(&ada, &damaged).is_none(), "{place}");
        }
        assert!(authority.open_totp(&ada, &sealed[..5]).is_none());
    }

    #[test]
    fn what_is_derived_for_one_thing_is_for_no_other() {
        let (authority, _folder) = authority();
        let (one, two) = (TokenHash::of(b"one"), TokenHash::of(b"two"));
        let csrf = authority.csrf(one);
        assert!(authority.is_csrf(one, csrf.expose().as_bytes()));
        assert!(!authority.is_csrf(two, csrf.expose().as_bytes()) && !authority.is_csrf(one, b""));
        let (ada, bob) = ("ada".parse().unwrap(), "bob".parse().unwrap());
        assert_ne!(authority.recovery_code(&ada, "X"), authority.recovery_code(&bob, "X"));
        assert_ne!(authority.recovery_code(&ada, "X"), authority.recovery_code(&ada, "Y"));
    }
}
