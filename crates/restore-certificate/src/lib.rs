//! Restore certificates: made, countersigned and verified.
//!
//! | who | what | module |
//! | --- | --- | --- |
//! | host | signs its document | [`issue`] |
//! | hub | checks that the key is the host's, and countersigns | [`countersign`] |
//! | anyone, offline | verifies both signatures | [`verify`] |
//!
//! All keys are ECDSA on P-256, the kind that host and hub have for TLS. Operators' signatures are made by other kinds
//! of keys and in another namespace, so none of these is ever taken for an order
//! ([docs/adr/0093](../../../docs/adr/0093-restore-certificates-signed-by-host-and-hub.md)). Deliberately absent:
//! files, clocks, and what a restore test shows.
#![forbid(unsafe_code)]

pub mod countersign;
pub mod issue;
pub mod key;
mod signature;
pub mod verify;

pub use key::{KeyError, PublicKey, SigningKey};
pub use signature::{Namespace, SignatureError};
