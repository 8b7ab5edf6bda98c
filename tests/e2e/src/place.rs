//! The network namespace and user of a program.
//!
//! As root the host is a network namespace that the simulator made: the agent must be inside, because its local API
//! listens on the host's bridge. `nsenter` is used, not `ip netns exec`, which would hide the machine's cgroups. Every
//! program gets a signal to end when the stage's process dies, for whatever reason.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::Command;

/// A user without a name: no account has this number on a fresh Debian.
pub const AGENT_UID: u32 = 64_999;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum User {
    /// As the user who started the stage.
    Same,
    /// As [`AGENT_UID`], without groups and capabilities; needs root.
    Unprivileged,
}

#[derive(Clone, Debug, Default)]
pub struct Place {
    /// The network namespace's file; none is the machine's own.
    pub namespace: Option<PathBuf>,
}

impl Place {
    /// A command that will run `program` here, as `user`.
    #[must_use]
    pub fn command(&self, program: impl AsRef<OsStr>, user: User) -> Command {
        let mut words: Vec<std::ffi::OsString> = Vec::new();
        if let Some(namespace) = &self.namespace {
            words.push("nsenter".into());
            words.push(format!("--net={}", namespace.display()).into());
        }
        // What the kernel shows of networks is that of the namespace in which it was mounted.
        if self.namespace.is_some() && user == User::Unprivileged {
            let own_sys = "mount -t sysfs none /sys && exec \"$@\"";
            words.extend(["unshare", "--mount", "sh", "-c", own_sys, "sh"].map(Into::into));
        }
        words.extend(["setpriv", "--pdeathsig=TERM"].map(Into::into));
        if user == User::Unprivileged {
            words.push(format!("--reuid={AGENT_UID}").into());
            words.push(format!("--regid={AGENT_UID}").into());
            words.extend(["--clear-groups", "--inh-caps=-all", "--bounding-set=-all"].map(Into::into));
        }
        words.push(program.as_ref().to_owned());
        let mut words = words.into_iter();
        #[expect(clippy::disallowed_methods, reason = "the stage exists to run programs")]
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words);
        command
    }
}
