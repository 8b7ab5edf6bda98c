//! Tests of `setup`, `doctor` and the client against the simulator.
#![forbid(unsafe_code)]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, in its helpers too"
)]

mod faults;
mod lab;
mod prune;
mod renewal;
mod sequence;
