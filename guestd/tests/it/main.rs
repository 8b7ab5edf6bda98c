//! Integration tests: the real `guestd` against a fake agent.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, in its helpers too"
)]

mod apt;
mod commands;
mod fake_agent;
mod fake_windows;
mod faults;
mod guest;
mod health;
mod killed;
mod missing_units;
mod power_loss;
mod refusals;
mod restore_test;
mod stories;
mod units;
mod update;
mod upgrade;
mod watchdog;
mod windows;
mod work;
mod world;
