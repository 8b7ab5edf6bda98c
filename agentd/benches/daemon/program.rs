//! A program that was started, and when.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

/// Between two attempts to reach it.
const LOOK: Duration = Duration::from_micros(200);

/// Far longer than any start here.
const READY_MAX: Duration = Duration::from_secs(60);

pub struct Program {
    child: Child,
    began: Instant,
}

impl Drop for Program {
    fn drop(&mut self) {
        // One that has ended is not there to be killed.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Program {
    pub fn start(command: &mut Command) -> Result<Self> {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let began = Instant::now();
        let child = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
        Ok(Self { child, began })
    }

    /// The time from the start until the first attempt that reaches it.
    pub fn ready_after(&mut self, reaches: impl Fn() -> bool) -> Result<Duration> {
        while !reaches() {
            ensure!(self.began.elapsed() < READY_MAX, "program {} was never reached", self.child.id());
            if let Some(status) = self.child.try_wait()? {
                bail!("program {} ended with {status} before it was reached", self.child.id());
            }
            std::thread::sleep(LOOK);
        }
        Ok(self.began.elapsed())
    }

    /// Kills it: an agent that is asked to end says farewell to its hub first, for some seconds where there is none.
    pub fn end(mut self) -> Result<()> {
        ensure!(self.child.try_wait()?.is_none(), "program {} ended by itself", self.child.id());
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// From now on its peak counts anew.
    pub fn forget_peak(&self) -> Result<()> {
        fs::write(format!("/proc/{}/clear_refs", self.child.id()), "5").context("cannot reset the peak")
    }

    /// A line of its `status`, in MiB.
    pub fn memory_mib(&self, label: &str) -> Result<f64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix(label));
        let kib = line.and_then(|line| line.split_whitespace().next()).context("no such line")?;
        Ok(kib.parse::<f64>()? / 1024.0)
    }
}
