//! Tunnels of the host: settings, readings, judgement.
//!
//! In: what root named, what systemd says of a service, what its metrics and a probe through it answered. Out: how each
//! tunnel is, since when, and whether a restart is asked for. Deliberately absent: sockets, files and programs.
//!
//! | module | what |
//! | --- | --- |
//! | [`cloudflared`] | ready connections in the answers of cloudflared |
//! | [`history`] | the state over several readings |
//! | [`judgement`] | the state by one reading |
//! | [`restarts`] | when a restart is asked for, and what became of it |
//! | [`settings`] | what root's settings say of a tunnel |
//! | [`systemd`] | services in the output of `systemctl show` |

pub mod cloudflared;
pub mod history;
pub mod judgement;
pub mod restarts;
pub mod settings;
pub mod systemd;

#[cfg(test)]
mod tests;

use holdfast_protocol::id::TunnelName;
use holdfast_protocol::report::TunnelReport;

pub use self::history::TunnelHistory;
pub use self::judgement::{Proof, TunnelReading};
pub use self::settings::{ProbeTarget, RestartRule, TokenSupply, Tunnel};
pub use self::systemd::ServiceState;

/// What the agent knows of its tunnels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TunnelsView {
    /// All of them, in the order of the settings; none before the first reading.
    pub reports: Option<Vec<TunnelReport>>,
}

impl TunnelsView {
    /// One of them.
    #[must_use]
    pub fn report(&self, name: &TunnelName) -> Option<&TunnelReport> {
        self.reports.iter().flatten().find(|report| report.name == *name)
    }
}
