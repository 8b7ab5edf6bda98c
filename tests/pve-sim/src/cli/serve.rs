//! `pve-sim serve`.
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use pve_sim::Sim;

/// What to serve.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Address to listen on.
    #[arg(long, default_value = "127.0.0.1:8006")]
    listen: SocketAddr,
    /// Folder that keeps the state.
    #[arg(long)]
    state: PathBuf,
    /// Folder to seed a fresh state from (default: the built-in lab).
    #[arg(long)]
    seed: Option<PathBuf>,
    /// How guests run.
    #[arg(long, value_enum, default_value_t = RuntimeKind::Inert)]
    runtime: RuntimeKind,
    /// Rest of a worker between two steps, in milliseconds.
    #[arg(long, default_value_t = 150)]
    pace_ms: u64,
}

/// How guests run.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum RuntimeKind {
    /// They are said to run.
    Inert,
    /// Each is its own `guestd` as a child process on a loopback address.
    Process,
}

/// Serves until told to end.
pub fn run(arguments: Arguments) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("no runtime")?;
    runtime.block_on(async move {
        let mut builder = Sim::builder().state_dir(&arguments.state).listen(arguments.listen).pace(Duration::from_millis(arguments.pace_ms));
        let folder = arguments.state.join("run");
        std::fs::create_dir_all(&folder).with_context(|| format!("{} cannot be made", folder.display()))?;
        builder = match arguments.runtime {
            RuntimeKind::Inert => builder,
            RuntimeKind::Process => builder.runtime(Box::new(pve_sim::runtime::Process::new(&folder))),
        };
        if let Some(seed) = &arguments.seed {
            builder = builder.seed(seed);
        }
        let mut terminated = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()).context("no signal handler")?;
        let handle = builder.start().await?;
        let line = serde_json::json!({
            "url": handle.url, "node": handle.node.name, "spki_sha256": handle.spki_sha256, "leaf_sha256": handle.leaf_sha256,
            "certificate": handle.certificate_pem, "tokens": handle.tokens, "root": {"username": "root@pam", "password": handle.root_password},
        });
        println!("{line}");
        tokio::select! {
            _ = terminated.recv() => {}
            result = tokio::signal::ctrl_c() => result.context("no signal handler")?,
        }
        handle.shutdown().await;
        Ok(())
    })
}
