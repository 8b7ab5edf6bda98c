//! Integration tests on a host of their own, in namespaces.
#![forbid(unsafe_code)]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, in its helpers too"
)]

mod access;
mod booted;
mod callers;
mod devices;
mod disks;
mod golden;
mod mountpoints;
mod mounts;
mod test_host;
