//! A benchmark of calls of the helper, by socket and by sudo.
//!
//! In: nothing; needs root, sudo and systemd-nspawn, and fails without them. Out: lines `BENCH {json}` for
//! `cargo bench-all`. A Debian made of this machine's own files boots with the shipped units and sudoers file in a
//! container, and this program calls the helper there. Nothing of the machine is changed.
#![forbid(unsafe_code)]

mod calls;
mod container;

use std::error::Error;
use std::ffi::OsStr;
use std::process::{Command, Stdio};

/// Why there are no figures.
type Failure = Box<dyn Error>;

const IN_NAMESPACE: &str = "in-namespace";
const IN_CONTAINER: &str = "in-container";

/// Far more than it takes.
const SECONDS_MAX: &str = "300";

fn main() -> Result<(), Failure> {
    match std::env::args().nth(1).as_deref() {
        Some(IN_CONTAINER) => calls::measure(),
        Some(IN_NAMESPACE) => container::boot(),
        _ => in_namespace(),
    }
}

/// Runs this program again where its mounts are seen by it alone.
fn in_namespace() -> Result<(), Failure> {
    if !rustix::process::geteuid().is_root() {
        return Err("calls of the helper are measured by root alone: run this as root".into());
    }
    for needed in ["/usr/bin/sudo", "/usr/bin/systemd-nspawn"] {
        if !std::path::Path::new(needed).is_file() {
            return Err(format!("{needed} is missing: install sudo and systemd-container").into());
        }
    }
    let mut again = command("timeout");
    again.args(["--kill-after=5", SECONDS_MAX, "unshare", "--mount", "--pid", "--fork", "--kill-child"]);
    again.args(["--mount-proc", "--propagation", "private"]).arg(std::env::current_exe()?).arg(IN_NAMESPACE);
    let status = again.stdin(Stdio::null()).status()?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("the container's benchmark ended with {status}").into())
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the programs that are measured, and the tools that make their host"
)]
fn command(program: impl AsRef<OsStr>) -> Command {
    Command::new(program)
}
