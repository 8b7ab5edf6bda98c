//! The hub under measurement, as a process of its own.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use hubd::api::OperatorCallLimits;
use hubd::artifacts::ArtifactLimits;
use hubd::clock::SystemClock;
use hubd::run::{self, Start};
use hubd::settings::AlertSettings;
use hubd::task::escrow_notice::NoticeSettings;
use hubd::task::state_snapshots::{SnapshotSchedule, SnapshotSettings};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

/// Some free port of this machine.
pub const ANY_PORT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

pub struct Server {
    pub address: SocketAddr,
    child: Child,
}

impl Server {
    /// Starts this program again in another role; it says on its first line where it listens, and ends with its input.
    pub async fn start(role: &str, folder: &Path) -> anyhow::Result<Self> {
        Self::start_at(role, folder, ANY_PORT).await
    }

    /// The same at a given address.
    pub async fn start_at(role: &str, folder: &Path, address: SocketAddr) -> anyhow::Result<Self> {
        #[expect(
            clippy::disallowed_methods,
            reason = "the benchmark's own program, to read its CPU by itself"
        )]
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(role).arg(folder).arg(address.to_string());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn()?;
        let out = child.stdout.take().context("the child's output")?;
        let mut line = String::new();
        BufReader::new(out).read_line(&mut line).await?;
        let address = line.trim().parse().with_context(|| format!("the {role} did not start"))?;
        Ok(Self { address, child })
    }

    /// A program of others that serves there.
    pub const fn of(address: SocketAddr, child: Child) -> Self {
        Self { address, child }
    }

    /// Ends it without a chance to say anything, as a crash does.
    pub async fn kill(mut self) -> anyhow::Result<()> {
        Ok(self.child.kill().await?)
    }

    /// Its own memory and its share of what it has in common with others.
    pub fn pss_kib(&self) -> anyhow::Result<f64> {
        let Some(pid) = self.child.id() else { bail!("the server ended") };
        let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
        let line =
            text.lines().find_map(|line| line.strip_prefix("Pss:")).context("smaps_rollup has no Pss")?;
        Ok(line.trim().trim_end_matches(" kB").parse()?)
    }

    /// CPU seconds so far, of all its threads.
    pub fn cpu_s(&self) -> anyhow::Result<f64> {
        let Some(pid) = self.child.id() else { bail!("the server ended") };
        // Nanoseconds on a CPU, per thread; `stat` counts in hundredths of a second alone.
        let mut total_ns = 0_u64;
        for task in std::fs::read_dir(format!("/proc/{pid}/task"))? {
            let text = std::fs::read_to_string(task?.path().join("schedstat"))?;
            let ns = text.split_whitespace().next().context("schedstat")?;
            total_ns += ns.parse::<u64>()?;
        }
        Ok(total_ns as f64 / 1e9)
    }
}

/// Operators are not what is measured.
pub const UNRATED: OperatorCallLimits = OperatorCallLimits {
    calls_per_token: u32::MAX,
    calls_per_address: u32::MAX,
    attempts_per_address: u32::MAX,
};

/// The hub's role: until the input ends.
pub async fn serve_hub(
    folder: &Path,
    listen: SocketAddr,
    operator_calls: OperatorCallLimits,
) -> anyhow::Result<()> {
    let opened = run::open(folder, AlertSettings::default().rules, &SystemClock).await?;
    let start = Start {
        listen,
        public_url: None,
        webhook: None,
        escrow_notice: NoticeSettings::default(),
        alerts: AlertSettings::default(),
        // As a hub is set up.
        connections_max: 12_000,
        usage_bytes_max: u64::MAX,
        artifacts: ArtifactLimits { bytes_max: u64::MAX, disk_reserve_bytes: 0 },
        snapshots: SnapshotSettings { schedule: SnapshotSchedule::Daily, bytes_max: u64::MAX },
        operator_calls,
        certificates: hubd::settings::CertificateSettings::default(),
        reload: None,
        provider: None,
        sign_in: hubd::domain::sign_in::SignInRules::default(),
        clock: Arc::new(SystemClock),
    };
    let running = run::start(opened, start).await?;
    println!("{}", running.address);
    running.until(input_ends()).await?;
    Ok(())
}

pub async fn input_ends() {
    // An error is an end, too.
    let read = || drop(std::io::read_to_string(std::io::stdin()));
    drop(tokio::task::spawn_blocking(read).await);
}
