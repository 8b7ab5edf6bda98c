//! A runner of network tools.

use std::process::{Command, Output, Stdio};

use crate::runtime::error::RuntimeError;

/// Runs `ip` with the given arguments and returns what it printed.
pub(super) fn ip(words: &[&str]) -> Result<Vec<u8>, RuntimeError> {
    let output = run_ip(words)?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(RuntimeError::Refused { command: format!("ip {}", words.join(" ")), message })
}

/// Runs `ip` to remove something that may be gone already.
pub(super) fn ip_if_there(words: &[&str]) -> Result<(), RuntimeError> {
    run_ip(words).map(|_either_way| ())
}

#[expect(
    clippy::disallowed_methods,
    reason = "ip makes the guests' networks; netlink by hand would be a crate more"
)]
fn run_ip(words: &[&str]) -> Result<Output, RuntimeError> {
    Command::new("ip")
        .args(words)
        .env_clear()
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .stdin(Stdio::null())
        .output()
        .map_err(|source| RuntimeError::Program { program: "ip", source })
}
