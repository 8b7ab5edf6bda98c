//! A network namespace for the demo with guests that are folders.
//!
//! In: a machine that may have its own SSH server, and no bridge for restore tests. Out: this same program again, in a
//! network where only the demo listens and with such a bridge. Root needs only a network namespace. Every other user
//! needs a user namespace around it, in which capabilities are dropped before the program begins.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use e2e::programs::Programs;
use e2e::stage::Golden;

use super::Options;
use crate::packages::is_root;
use crate::workspace::program;

/// Loopback, the bridge of restore tests, and a view of the kernel's networks that is this namespace's own.
const PREPARE: &str = "mount -t sysfs none /sys && ip link set lo up && ip link add hftest0 type bridge \
                       && ip link set hftest0 up && exec \"$@\"";

/// A command that enters a namespace, prepares it, and then runs the command after it.
fn entering() -> Command {
    let mut command = program("unshare");
    command.args(["--net", "--mount"]);
    if !is_root() {
        command.args(["--user", "--map-current-user", "--keep-caps"]);
    }
    command.args(["--", "sh", "-c", PREPARE, "sh"]);
    if !is_root() {
        command.args(["setpriv", "--inh-caps=-all", "--ambient-caps=-all"]);
    }
    command
}

/// Whether this machine lets us have one; otherwise why not.
pub fn permitted() -> Result<(), String> {
    let output = entering().arg("true").stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("unshare cannot be run: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
    }
}

/// Continues in its own network. Does not return when that works.
pub fn go_on(options: &Options, programs: &Programs, golden: &Golden) -> Result<()> {
    let mut command = entering();
    command.arg(std::env::current_exe().context("which program am I?")?);
    command.args(["demo", "--plain", "--in-own-network", "--programs"]).arg(programs.folder());
    command.arg("--golden").arg(&golden.manifest);
    for (chosen, flag) in [(options.once, "--once"), (options.keep, "--keep")] {
        if chosen {
            command.arg(flag);
        }
    }
    if let Some(seed) = &options.seed {
        command.arg("--seed").arg(seed);
    }
    Err(command.exec()).context("cannot go on in a network of its own")
}

/// What a person's shell puts before a command to reach this network.
pub fn enter() -> Vec<String> {
    let own = format!("--target={}", std::process::id());
    let mut words = vec!["nsenter".to_owned(), own, "--net".to_owned()];
    if !is_root() {
        words.extend(["--user", "--preserve-credentials"].map(str::to_owned));
    }
    words
}
