//! Integration tests: contracts of the channels, and deliveries to real servers.
#![forbid(unsafe_code)]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, in its helpers too"
)]
#![cfg(feature = "all")]

mod contracts;
mod fixtures;
mod http_delivery;
mod http_refusals;
mod http_server;
mod limits;
mod mail;
#[path = "../../../../tests/support/mail_server.rs"]
mod mail_server;
mod mail_strangers;
mod redaction;
mod signature;
mod verdicts;
