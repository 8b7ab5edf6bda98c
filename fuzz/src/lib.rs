//! Rules that must hold for every parser and any input bytes.
//!
//! What comes in: bytes from the fuzzer. What goes out: nothing, or a panic that names the rule that did not hold. Each
//! target checks more than "it does not panic". Accepted input obeys the rules under which it is accepted. It is
//! written and read back unchanged. Input that differs from what was signed is not accepted as signed. Where a second
//! reading of the same bytes is possible, this crate does it with its own code only. Deliberately absent: files,
//! clocks, randomness, so that a finding is its bytes alone.
//!
//! | target | what must hold |
//! | --- | --- |
//! | [`answers`] | what Proxmox answers, in each spelling, and never better than it says |
//! | [`archive`] | what passes for harmless is harmless as Proxmox would read it |
//! | [`audit`] | an export that holds is a chain by a second reckoning; a changed one does not hold |
//! | [`break_glass`] | what opens a way into a host is what was signed, and one plain line |
//! | [`calendar`] | a calendar expression comes when a walk through the minutes says so |
//! | [`csr`] | a certificate's request is signed by its own key, by another verifier too |
//! | [`desired`] | an accepted document obeys every rule of the host; the rules of generations |
//! | [`enrol`] | invites, tickets and certificates' requests are read back as written |
//! | [`escrow`] | an accepted escrow file has one reader, a passphrase, and needs bounded work |
//! | [`ids`] | each id, name, pin and time has one spelling |
//! | [`intake`] | a signed job is taken exactly when a second reading of the rules says so |
//! | [`job`] | a payload is what its JSON says and nothing else |
//! | [`local`] | requests of guests |
//! | [`operator_api`] | requests of operators to the hub |
//! | [`operators`] | who holds which key |
//! | [`policy`] | no policy lets anything happen unsigned, or out of reach |
//! | [`protection`] | no request weakens a promise; no retention lets the newest backup go |
//! | [`pve`] | task names, volumes and configurations as Proxmox sends them |
//! | [`release`] | a manifest says one thing, and its bytes travel unchanged |
//! | [`report`] | check-ins; changed sections laid over the old give the new |
//! | [`signature`] | no bytes but the signer's own carry a signature |
//! | [`signed_job`] | a job's bytes travel unchanged |
//! | [`recovery_code`] | what is read as a recovery code is one, and with two swapped words it is none |
//!
//! The parsers of the agent's ports and of the hub are taken in by path: linking either program would link a database, a
//! TLS stack and a web server.
#![forbid(unsafe_code)]

pub mod answers;
pub mod archive;
pub mod audit;
pub mod break_glass;
pub mod calendar;
pub mod csr;
pub mod desired;
pub mod enrol;
pub mod escrow;
pub mod ids;
pub mod intake;
pub mod job;
pub mod local;
pub mod operator_api;
pub mod operators;
pub mod policy;
pub mod protection;
pub mod proxmox;
pub mod pve;
pub mod recovery_code;
pub mod release;
pub mod report;
pub mod round;
pub mod signature;
pub mod signed_job;
pub mod signer;

pub use agent_core::{gate, model, operation};
