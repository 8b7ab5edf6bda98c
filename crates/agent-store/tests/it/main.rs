//! Integration tests of the store: signed jobs as they arrive.
#![forbid(unsafe_code)]

mod intake;
#[expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]
#[path = "../../../../tests/support/rows.rs"]
mod rows;
