//! `setup`, `doctor` and the Proxmox client against the simulator: the proved sequence of calls, what must fail, and what
//! becomes of lost answers and dead workers.
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
mod sequence;
