//! Programs run in a booted guest, from outside.
//!
//! They are run by the guest's own systemd, in the guest's own control group: whatever freezes the guest freezes them,
//! too.

use std::path::PathBuf;
use std::process::Output;

use anyhow::{Context, Result, bail};

use crate::place::{Place, User};

/// A guest that systemd-nspawn boots from a folder.
#[derive(Clone, Debug)]
pub struct BootedGuest {
    /// Its root file system.
    pub root: PathBuf,
}

impl BootedGuest {
    /// Runs a program in it; none where it does not run.
    ///
    /// # Errors
    /// When the program cannot be started.
    pub fn attempt(&self, words: &[&str]) -> Result<Option<Output>> {
        let Some(init) = self.init() else { return Ok(None) };
        let mut command = Place::default().command("nsenter", User::Same);
        command.arg(format!("--target={init}")).args(["--all", "--wd=/", "--"]);
        command.args(["systemd-run", "--quiet", "--pipe", "--wait", "--collect", "--"]).args(words);
        command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
        command.output().map(Some).with_context(|| format!("cannot run {}", words.join(" ")))
    }

    /// The same, and it must run and end well; gives what it printed.
    ///
    /// # Errors
    /// When it does not.
    pub fn run(&self, words: &[&str]) -> Result<String> {
        let output =
            self.attempt(words)?.with_context(|| format!("{}: it does not run", self.root.display()))?;
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        if !output.status.success() {
            bail!("{}: {}\n{out}{err}", words.join(" "), output.status);
        }
        Ok(out.into_owned())
    }

    /// The process that is number 1 in it: a child of the nspawn that was given its root. Each start has another; none while
    /// it is down.
    #[must_use]
    pub fn init(&self) -> Option<u32> {
        let directory = format!("--directory={}", self.root.display());
        let is_ours = |pid: &u32| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let mut words = line.split(|byte| *byte == 0);
            words.next().is_some_and(|word| word.ends_with(b"systemd-nspawn"))
                && words.any(|word| word == directory.as_bytes())
        };
        let nspawn = processes().find(is_ours)?.to_string();
        processes().find(|pid| {
            let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name));
            let last =
                |name: &str| field(name).and_then(|text| text.split_whitespace().last().map(str::to_owned));
            last("PPid:").as_deref() == Some(&nspawn) && last("NSpid:").as_deref() == Some("1")
        })
    }
}

fn processes() -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}
