//! Tests of the gate as a program.
//!
//! Keys and signatures are those of `ssh-keygen`; systemd is a script that notes what it is asked. Only root has a gate:
//! as another user there is nothing to test.
#![forbid(unsafe_code)]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, in its helpers too"
)]

mod crashes;
mod host;
mod refusals;
mod starts;
mod watch;

/// Whether these tests can run.
fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
