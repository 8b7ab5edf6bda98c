//! The helper on a host of its own: real disks, real mounts, the real program, in namespaces that each test makes and
//! that end with it. As root everything runs; an ordinary user sees only what needs no root.
#![forbid(unsafe_code)]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, in its helpers too"
)]

mod booted;
mod callers;
mod devices;
mod disks;
mod doors;
mod golden;
mod mounts;
mod places;
mod stage;
