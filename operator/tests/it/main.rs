//! The real `holdfast` against a hub that is a TLS server in this process.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, in its helpers too"
)]

mod apply;
mod audit;
mod escrow;
mod fake_hub;
mod look;
mod seal;
mod sign;
mod terminal;
mod trust;
