//! `pve-sim serve`.
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use pve_sim::Sim;
use pve_sim::node::Figures;

/// How often the status daemon of a genuine node makes a round.
const STATUS_ROUND_S: i64 = 10;

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
    /// Refuse, loudly, what our own agent must never send (`force`, `purge`, …), and keep a list of it.
    #[arg(long)]
    guard: bool,
}

/// How guests run.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum RuntimeKind {
    /// They are only reported as running.
    Inert,
    /// Each is its own `guestd` as a child process on a loopback address.
    Process,
    /// Each is booted by `systemd-nspawn` on a private bridge in a network namespace; needs root.
    Nspawn,
}

/// Serves until it gets the signal to end.
pub fn run(arguments: Arguments) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("no runtime")?;
    runtime.block_on(async move {
        // Guests are started from folders of their own, where a relative path would mean another place.
        let state = std::path::absolute(&arguments.state).context("the state folder has no absolute path")?;
        let mut builder = Sim::builder().state_dir(&state).listen(arguments.listen).pace(Duration::from_millis(arguments.pace_ms))
            .figures(Figures::Every(STATUS_ROUND_S));
        if arguments.guard {
            builder = builder.guard();
        }
        let folder = state.join("run");
        std::fs::create_dir_all(&folder).with_context(|| format!("{} cannot be made", folder.display()))?;
        let mut namespace = None;
        builder = match arguments.runtime {
            RuntimeKind::Inert => builder,
            RuntimeKind::Process => builder.runtime(Box::new(pve_sim::runtime::Process::new(&folder))),
            RuntimeKind::Nspawn => {
                let (runtime, found) = nspawn(&folder, arguments.seed.as_deref())?;
                namespace = Some(found);
                builder.runtime(Box::new(runtime))
            }
        };
        if let Some(seed) = &arguments.seed {
            builder = builder.seed(seed);
        }
        let mut terminated = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()).context("no signal handler")?;
        let mut handle = builder.start().await?;
        let mut inner_url = None;
        if let Some(namespace) = &namespace {
            // Guests and the agent live in the namespace, so the API is served there too: on the bridge's own address, and
            // under the very URL that holds outside.
            let inner = SocketAddr::new(namespace.bridge, handle.address.port());
            for address in [inner, handle.address] {
                let listener = pve_sim::runtime::listen_in_namespace(&namespace.path, address)?;
                listener.set_nonblocking(true).context("no listener in the namespace")?;
                handle.also(tokio::net::TcpListener::from_std(listener).context("no listener in the namespace")?);
            }
            inner_url = Some(format!("https://{inner}"));
        }
        let line = serde_json::json!({
            "netns": namespace.as_ref().map(|found| found.path.display().to_string()), "netns_url": inner_url,
            "bridge": namespace.as_ref().map(|found| found.bridge.to_string()),
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

/// Where guests live.
struct Namespace {
    path: PathBuf,
    bridge: std::net::IpAddr,
}

fn nspawn(
    folder: &std::path::Path,
    seed: Option<&std::path::Path>,
) -> anyhow::Result<(pve_sim::runtime::Nspawn, Namespace)> {
    pve_sim::runtime::Nspawn::is_possible()
        .map_err(|why| anyhow::anyhow!("--runtime nspawn is not possible: {why}"))?;
    let seeded = folder.with_file_name("etc").join("interfaces");
    let text = [Some(seeded), seed.map(|seed| seed.join("interfaces"))]
        .into_iter()
        .flatten()
        .find_map(|path| std::fs::read_to_string(path).ok());
    let text = text.unwrap_or_else(|| include_str!("../../lab/interfaces").to_owned());
    let bridges = pve_sim::runtime::bridges_of_interfaces(&text)?;
    let bridge = bridges
        .first()
        .and_then(|bridge| bridge.addresses.first())
        .map(|cidr| cidr.address)
        .context("the seed's interfaces name no bridge with an address")?;
    let settings = pve_sim::runtime::NspawnSettings { directory: folder.to_owned(), bridges };
    let runtime = pve_sim::runtime::Nspawn::open(&settings)?;
    let path = runtime.namespace_path();
    Ok((runtime, Namespace { path, bridge: bridge.into() }))
}
