//! The hub of a stage: an empty folder, one command.

use std::net::TcpListener;
use std::process::ExitStatus;
use std::time::Duration;

use anyhow::{Context, Result};

use super::{READY, Stage};
use crate::child::Running;
use crate::place::User;
use crate::wait;

impl Stage {
    /// Starts the hub and gives its URL.
    ///
    /// # Errors
    /// When it does not come up.
    pub fn start_hub(&mut self) -> Result<String> {
        let url = format!("https://127.0.0.1:{}", free_port()?);
        self.hub_listens(&url, &url)
    }

    /// Starts the hub behind something else that has this URL, and gives the address where it listens itself.
    ///
    /// # Errors
    /// When it does not come up.
    pub fn start_hub_behind(&mut self, url: &str) -> Result<String> {
        let own = format!("https://127.0.0.1:{}", free_port()?);
        self.hub_listens(&own, url)?;
        Ok(own.trim_start_matches("https://").to_owned())
    }

    fn hub_listens(&mut self, own: &str, url: &str) -> Result<String> {
        let mut command = self.place.command(self.options.programs.path("hubd"), User::Same);
        command.arg("serve").arg("--dir").arg(self.part("hub"));
        command.args(["--listen", own.trim_start_matches("https://"), "--public-url", url]);
        let mut hub = Running::start("hubd", command, &self.log("hubd"))?;
        let token = self.part("hub").join("admin-token");
        wait::until("the hub's admin token", READY, || {
            if hub.ended()?.is_some() {
                anyhow::bail!("hubd ended:\n{}", hub.log()?);
            }
            Ok(token.is_file().then_some(()))
        })?;
        self.hub = Some(hub);
        url.clone_into(&mut self.hub_url);
        Ok(url.to_owned())
    }

    /// Starts the hub once more, where it was reached before.
    ///
    /// # Errors
    /// When it does not come up.
    pub fn start_hub_again(&mut self) -> Result<String> {
        let url = self.hub_url.clone();
        self.hub_listens(&url, &url)
    }

    /// `kill -9`.
    ///
    /// # Errors
    /// When no hub runs.
    pub fn kill_hub(&mut self) -> Result<ExitStatus> {
        self.hub.take().context("no hub runs")?.kill()
    }

    /// Writes the hub's settings, which it reads at its next start.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn write_hub_settings(&self, text: &str) -> Result<()> {
        std::fs::write(self.part("hub").join("hub.toml"), text).context("cannot write the hub's settings")
    }

    /// The hub's process.
    #[must_use]
    pub fn hub_pid(&self) -> Option<u32> {
        self.hub.as_ref().map(Running::pid)
    }

    /// Where the hub is reached, `address:port`; empty before it was started.
    #[must_use]
    pub fn hub_address(&self) -> &str {
        self.hub_url.trim_start_matches("https://")
    }

    /// Stops the hub, as for maintenance.
    ///
    /// # Errors
    /// When it does not end by itself.
    pub fn stop_hub(&mut self) -> Result<()> {
        if let Some(mut hub) = self.hub.take() {
            hub.stop()?;
        }
        Ok(())
    }
}

/// A port on which no process listens. Another process could take it before the hub does; then the hub reports that and
/// ends.
fn free_port() -> Result<u16> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).context("cannot bind a loopback port")?;
    Ok(listener.local_addr().context("a bound port has a number")?.port())
}

/// How long a report may take to reach the hub.
pub(super) const REPORTED: Duration = Duration::from_secs(120);
