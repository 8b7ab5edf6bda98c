//! Integration tests of the simulator: its recordings, its faults, and its programs.

mod away;
mod backup_api;
#[expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking, in its helpers too"
)]
mod client;
mod config;
mod conformance;
mod faults;
mod guard;
mod observed_rules;
mod outside;
mod survives;
