//! Sign-in by a provider of identities: OpenID Connect, without I/O.
//!
//! | module | what it decides |
//! | --- | --- |
//! | [`keys`] | which public keys a provider's key set has |
//! | [`signature`] | whether a token was signed by one of them |
//! | [`claims`] | whether a token is for this sign-in, and who it names |
//! | [`metadata`] | whether a provider's discovery document is its own |
//! | [`groups`] | what the groups of a person come to |
//! | [`provider`] | the provider as the settings describe it |
//!
//! In: bytes of a provider, settings, the time. Out: who signed in, or why nobody did. Deliberately absent: the fetching of
//! those bytes (`api/sign_in/oidc`), and which operator it is (the store).

pub mod claims;
pub mod groups;
pub mod keys;
pub mod metadata;
pub mod provider;
pub mod signature;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// Base64 as in tokens and keys: for URLs, without padding. None for anything else.
fn unbase64(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}
