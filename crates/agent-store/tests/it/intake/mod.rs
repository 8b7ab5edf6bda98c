//! Tests of the intake of signed jobs.
//!
//! | module | shows |
//! | --- | --- |
//! | `hand` | an operator who signs |
//! | `listener` | a store with a guest and operators, and what must hold of each refusal |
//! | `shapes` | texts and payloads of the wrong shape |
//! | `values` | values that are out of range, or do not fit this host or time |
//! | `signatures` | invalid signatures, or too few |
//! | `loosen` | promises about backups, lowered |
//! | `all_hosts` | approvals of images that were signed once for all hosts |
//! | `once` | one job a thousand times |
//! | `changes` | cancels, delays, new operators |
//! | `brake` | what a signed release lets pass |
//! | `targets` | storage targets, approved and detached |
//! | `restore` | a new host replaces a lost one, and the lost one stops all work |
//! | `pair` | a volume moves between two guests of one customer |
//! | `swap` | a copy takes the place of its guest, and of no other |
//! | `follow` | how a job follows its operation, and what the audit says of it |
#![forbid(unsafe_code)]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, in its helpers too"
)]

mod all_hosts;
mod change_limit;
mod changes;
mod follow;
#[path = "../../../../../tests/support/ssh_signer.rs"]
mod hand;
mod loosen;
mod once;
mod pair;
mod restore;
mod shapes;
mod signatures;
mod store_fixture;
mod swap;
mod targets;
mod values;
