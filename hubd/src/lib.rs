//! The hub: desired documents, reports, and liveness of hosts.
//!
//! In: `hubd serve --dir DIR`; agents over mutual TLS, operators over TLS with a token or a session. Out: certificates, desired
//! documents, events. It never connects to a host, holds no signing key, no recovery code and no unwrapped key.
//!
//! | layer | modules |
//! | --- | --- |
//! | 5 | [`cli`], [`run`] (composition root), [`settings`] |
//! | 4 | [`task`]: what happens by the clock |
//! | 3 | [`api`] (the HTTP API), [`serve`] (TLS and connections), [`snapshots`] (the state of hosts as documents) |
//! | 2 | [`sqlite`], [`postgres`] (the engines of the store), [`store`] (its traits and types), [`transfer`] (export, import and backup of all rows), [`artifacts`] (files of releases), [`authority`] (keys and certificates), [`clock`] |
//! | 1 | [`domain`]: pure decisions |
//! Imports go downward, and within a layer to the right. A test reads this table and holds the code to it.
#![forbid(unsafe_code)]

pub mod api;
pub mod artifacts;
pub mod authority;
pub mod cli;
pub mod clock;
pub mod domain;
pub mod postgres;
pub mod run;
pub mod serve;
pub mod settings;
pub mod snapshots;
pub mod sqlite;
pub mod store;
pub mod task;
pub mod transfer;
