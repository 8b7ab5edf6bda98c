//! Operators' signatures, checked on the host.
//!
//! What comes in: the operators file (`allowed_signers` of OpenSSH) and the policy, both laid down by root on the host;
//! a signed job; the time. What goes out: an [`Accepted`] job, which only [`Roster::accept`] and [`Roster::accept_here`] make, or the
//! reason why it is refused. Signatures are those of `ssh-keygen -Y sign`. They are checked over the exact bytes before
//! these are parsed, and the checked bytes are the parsed ones. Deliberately absent: files, clocks, databases; the
//! ledger knows whether a nonce was used before.
//!
//! | module | what |
//! | --- | --- |
//! | [`key`] | the kinds of keys that may sign |
//! | [`consent`] | customers' consents to a job |
//! | [`signature`] | one signature over exact bytes |
//! | [`operators`] | who holds which key, and since when |
//! | [`limits`] | what documents may request of backups without a signature |
//! | [`policy`] | how many of them each verb needs, its delay, its daily cap |
//! | [`release`] | a release, signed by those who may sign releases |
//! | [`restore_rule`] | when an unused order to restore a host ends |
//! | [`roster`] | both together: is this job ordered by who may order it |
//! | [`scope`] | is it for this host, in this life of its state, now |
#![forbid(unsafe_code)]

mod armour;
pub mod consent;
pub mod growth;
pub mod key;
pub mod limits;
pub mod operators;
pub mod policy;
pub mod release;
pub mod restore_rule;
pub mod roster;
pub mod scope;
pub mod signature;

pub use key::OperatorKey;
pub use operators::Operators;
pub use policy::Policy;
pub use release::{AcceptedRelease, ReleaseKeys, ReleaseRefused};
pub use restore_rule::RestoreRule;
pub use roster::{Accepted, Reach, Refused, Roster};

#[cfg(test)]
mod tests;
