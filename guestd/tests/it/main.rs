//! The real `guestd` on a directory for a guest, against an agent that is a TLS server in this process.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, in its helpers too"
)]

mod apt;
mod fake_agent;
mod fake_windows;
mod guest;
mod health;
mod killed;
mod people;
mod refusals;
mod removed;
mod restore_test;
mod stories;
mod troubled;
mod units;
mod update;
mod upgrade;
mod watchdog;
mod windows;
mod work;
mod world;
