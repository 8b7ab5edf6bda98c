//! Integration tests of recovery codes, escrow files and the printed sheet.

#[expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, in its helpers too"
)]
mod drill;
mod escrow;
#[expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, in its helpers too"
)]
mod fixtures;
mod sheet;
#[expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]
#[path = "../../../tests/support/terminal.rs"]
mod terminal;
mod typing;
