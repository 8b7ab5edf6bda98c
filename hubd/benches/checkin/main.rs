//! Benchmark of check-ins against a bare echo server.
//!
//! Two servers run, each in its own process so that its CPU can be measured: the hub, and a bare axum + rustls + serde
//! echo server (parse the report, write it back). Each receives a changed report of 4 KiB and an unchanged one. The
//! four cases are measured alternately; the result is the median of the rounds' ratios.
//!
//! `cargo bench -p hubd --bench checkin -- [--rounds N] [--seconds N] [--connections N]` prints
//! lines `BENCH {json}`, which `cargo bench-all` collects. `-- fleet` measures a hub under ten thousand hosts at rest
//! instead ([`steady`]), `-- flapping` what becomes of their alerts ([`flapping`]), `-- peers` the hub against etcd
//! ([`peers`]), `-- scrape` a page of the hub's metrics ([`scrape`]), `-- customers` check-ins during a customer's
//! calls ([`customers`]), `-- postgres` check-ins on PostgreSQL against a bare
//! upsert ([`upserts`]), `-- move` a filled hub on its way to the other engine and back ([`moved_hub`]).

mod customers;
mod echo;
mod etcd;
mod figures;
#[expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "as tests do")]
#[path = "../../../tests/support/filled_hub.rs"]
mod filled_hub;
mod flapping;
mod fleet;
mod handshakes;
mod hosts;
mod load;
mod moved_hub;
mod peers;
#[expect(
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "as tests do, which use all of it"
)]
#[path = "../../../tests/support/postgres.rs"]
mod postgres_server;
mod scrape;
mod server;
mod steady;
mod upserts;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Parser, Subcommand};

use figures::{Figures, Pair, Round};
use fleet::Fleet;
use handshakes::Tickets;
use hubd::api::OperatorCallLimits;
use load::Kind;
use server::Server;

/// Check-ins per second and CPU per check-in.
#[derive(Debug, Parser)]
struct Arguments {
    /// How many times each is measured.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// How long each time.
    #[arg(long, default_value_t = 2)]
    seconds: u64,
    /// Connections, each of a host of its own, each with one request under way.
    #[arg(long, default_value_t = 64)]
    connections: usize,
    /// Given by `cargo bench`, after the name of what is measured too; means nothing.
    #[arg(long, hide = true, global = true)]
    bench: bool,
    #[command(subcommand)]
    role: Option<Role>,
}

#[derive(Debug, Subcommand)]
enum Role {
    /// The bare echo; run by the benchmark itself.
    #[command(hide = true)]
    Echo { folder: PathBuf, listen: SocketAddr },
    /// The hub; run by the benchmark itself.
    #[command(hide = true)]
    Hub { folder: PathBuf, listen: SocketAddr },
    /// The hub with the usual limits on operators; run by the benchmark itself.
    #[command(hide = true)]
    RatedHub { folder: PathBuf, listen: SocketAddr },
    /// Bare handshakes without tickets; run by the benchmark itself.
    #[command(hide = true)]
    Handshakes { folder: PathBuf, listen: SocketAddr },
    /// Bare handshakes with tickets; run by the benchmark itself.
    #[command(hide = true)]
    Tickets { folder: PathBuf, listen: SocketAddr },
    /// Ten thousand hosts that hold their check-ins.
    Fleet(steady::Arguments),
    /// Ten thousand hosts that fall silent and come back at once.
    Flapping(flapping::Arguments),
    /// The hub against etcd.
    Peers,
    /// One scrape of the hub's metrics.
    Scrape(scrape::Arguments),
    /// Check-ins during the calls of one customer.
    Customers(customers::Arguments),
    /// Check-ins on PostgreSQL against a bare upsert.
    Postgres(upserts::Arguments),
    /// A filled hub from one engine to the other and back.
    Move(moved_hub::Arguments),
}

/// Before each round, a part of its time is run without being measured.
const WARM: u32 = 10;

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        match arguments.role {
            Some(Role::Echo { folder, listen }) => echo::serve(&folder, listen).await,
            Some(Role::Hub { folder, listen }) => server::serve_hub(&folder, listen, server::UNRATED).await,
            Some(Role::RatedHub { folder, listen }) => {
                server::serve_hub(&folder, listen, OperatorCallLimits::USUAL).await
            }
            Some(Role::Handshakes { folder, listen }) => {
                handshakes::serve(&folder, listen, Tickets::No).await
            }
            Some(Role::Tickets { folder, listen }) => handshakes::serve(&folder, listen, Tickets::Yes).await,
            Some(Role::Fleet(arguments)) => steady::measure(&arguments).await,
            Some(Role::Flapping(arguments)) => flapping::measure(&arguments).await,
            Some(Role::Scrape(arguments)) => scrape::measure(&arguments).await,
            Some(Role::Customers(arguments)) => customers::measure(&arguments).await,
            Some(Role::Postgres(arguments)) => upserts::measure(&arguments).await,
            Some(Role::Move(arguments)) => moved_hub::measure(arguments).await,
            Some(Role::Peers) => peers::measure(&arguments).await,
            None => measure(&arguments).await,
        }
    })
}

async fn measure(arguments: &Arguments) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let fleet = Fleet::enrol(folder.path(), arguments.connections * arguments.rounds * 2).await?;
    let echo = Server::start("echo", folder.path()).await?;
    let hub = Server::start("hub", folder.path()).await?;
    let time = Duration::from_secs(arguments.seconds);
    let (mut figures, mut fleets) = (Figures::default(), fleet.split(arguments.connections));
    while let (Some(changing), Some(resting)) = (fleets.pop(), fleets.pop()) {
        let changed = measure_kind(Kind::Changed, changing, &echo, &hub, time).await?;
        let unchanged = measure_kind(Kind::Unchanged, resting, &echo, &hub, time).await?;
        figures.add(Round { changed, unchanged });
    }
    figures.print(arguments.connections)
}

async fn measure_kind(
    kind: Kind,
    fleet: Fleet,
    echo: &Server,
    hub: &Server,
    time: Duration,
) -> anyhow::Result<Pair> {
    let mut load = load::Load::new(fleet);
    // Full reports first: changes need something to be laid over. And everybody is warm then.
    load.run(echo, Kind::Changed, time / WARM).await?;
    load.run(hub, Kind::Full, time / WARM).await?;
    Ok(Pair {
        echo: load.run(echo, kind, time).await.with_context(|| format!("{kind:?} reports, echoed"))?,
        hub: load.run(hub, kind, time).await.with_context(|| format!("{kind:?} reports"))?,
    })
}
