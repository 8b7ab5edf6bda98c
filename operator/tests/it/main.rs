//! Integration tests: the real `holdfast` against a fake hub.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, in its helpers too"
)]

mod alerts;
mod apply;
mod approval;
mod audit;
mod certificate;
mod escrow;
mod fake_hub;
mod order;
mod read_commands;
mod release;
mod resources;
mod rollout;
mod seal;
mod sign;
mod state;
mod terminal;
mod trust;
mod tunnel_token;
