//! Integration tests: contracts of the channels.
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
mod limits;
mod signature;
mod verdicts;
