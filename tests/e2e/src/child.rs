//! One supervised process.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::wait;

/// How long a program may take to end after the request to end.
const GOODBYE: Duration = Duration::from_secs(20);

/// A running program.
#[derive(Debug)]
pub struct Running {
    name: String,
    child: Child,
    log: PathBuf,
}

impl Running {
    /// Starts `command`; standard output and error go to `log`.
    ///
    /// # Errors
    /// When the log cannot be made or the program not be started.
    pub fn start(name: &str, mut command: Command, log: &Path) -> Result<Self> {
        let out = File::options().create(true).append(true).open(log);
        let out = out.with_context(|| format!("cannot write {}", log.display()))?;
        let err = out.try_clone().context("cannot share the log")?;
        // A process group of its own: Ctrl-C on the terminal reaches only the stage, which then ends its parts in
        // order.
        command.stdin(Stdio::null()).stdout(out).stderr(err).process_group(0);
        let child = command.spawn().with_context(|| format!("cannot start {name}"))?;
        Ok(Self { name: name.to_owned(), child, log: log.to_owned() })
    }

    /// Its log so far.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn log(&self) -> Result<String> {
        std::fs::read_to_string(&self.log).with_context(|| format!("cannot read {}", self.log.display()))
    }

    /// Waits until a line of its log fits, and gives that line.
    ///
    /// # Errors
    /// When the program ends before, or the line does not come within `bound`.
    pub fn line(&mut self, what: &str, bound: Duration, fits: impl Fn(&str) -> bool) -> Result<String> {
        wait::until(&format!("{}: {what}", self.name), bound, || {
            let ended = self.ended()?;
            let log = self.log()?;
            // A line counts once its end is there; a half-written one is read again later.
            let whole = log.rsplit_once('\n').map_or("", |(whole, _)| whole);
            match (whole.lines().find(|line| fits(line)), ended) {
                (Some(line), _) => Ok(Some(line.to_owned())),
                (None, Some(status)) => bail!("{} ended with {status}:\n{}", self.name, tail(&log)),
                (None, None) => Ok(None),
            }
        })
    }

    /// How it ended, if it did.
    ///
    /// # Errors
    /// When the kernel does not report it.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        self.child.try_wait().with_context(|| format!("cannot ask after {}", self.name))
    }

    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// `kill -9`, and waits for the end.
    ///
    /// # Errors
    /// When it cannot be killed or waited for.
    pub fn kill(&mut self) -> Result<ExitStatus> {
        self.child.kill().with_context(|| format!("cannot kill {}", self.name))?;
        self.child.wait().with_context(|| format!("cannot wait for {}", self.name))
    }

    /// Waits for an end that comes by itself.
    ///
    /// # Errors
    /// When it does not come within `bound`.
    pub fn wait(&mut self, bound: Duration) -> Result<ExitStatus> {
        let name = self.name.clone();
        wait::until(&format!("the end of {name}"), bound, || self.ended())
    }

    /// Requests an orderly end and waits; kills the process when it does not end.
    ///
    /// # Errors
    /// When it had to be killed, or could not be.
    pub fn stop(&mut self) -> Result<ExitStatus> {
        if let Some(status) = self.ended()? {
            return Ok(status);
        }
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).context("cannot signal")?;
        match self.wait(GOODBYE) {
            Ok(status) => Ok(status),
            Err(_) => {
                self.kill()?;
                bail!("{} did not end when asked to and was killed", self.name)
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Err(error) = self.stop() {
            eprintln!("{error:#}");
        }
    }
}

/// The end of a log, for an error.
fn tail(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    let from = lines.len().saturating_sub(15);
    lines.get(from..).unwrap_or_default().join("\n")
}
