//! Contract tests of the alert engine.
#![forbid(unsafe_code)]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, in its helpers too"
)]

mod configuration;
mod contract;
mod customers;
mod endings;
mod explain;
mod fleet;
mod kit;
mod lifecycle;
mod outbox;
mod quiet;
mod random;
