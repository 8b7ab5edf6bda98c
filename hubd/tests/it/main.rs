//! The hub over real TLS, in a folder of its own, with a clock that the test sets.
#![forbid(unsafe_code)]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, in its helpers too"
)]

mod certificates;
mod checkin;
mod crowd;
mod csr;
mod deadman;
mod desired;
mod enrolment;
mod envelope;
mod escrow;
mod idempotency;
mod jobs;
mod knocks;
mod layers;
mod operators;
mod process;
mod readmission;
mod restart;
mod restore;
mod root_links;
#[path = "../../../tests/support/rows.rs"]
mod rows;
mod sessions;
mod store_story;
mod tls;
mod webhook;
mod world;
