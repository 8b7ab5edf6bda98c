//! The hub against etcd, each with 4 KiB made durable.
//!
//! Both get the same report over as many kept TLS connections, in turn. The hub parses it, compares it and lays it over
//! the former one; etcd keeps it as the value of a key. Both answer once it is on disk.

use std::time::Duration;

use anyhow::Context as _;

use crate::etcd::Etcd;
use crate::figures::{self, Figure, Sample};
use crate::fleet::Fleet;
use crate::load::{Kind, Load};
use crate::server::Server;
use crate::{Arguments, WARM};

pub async fn measure(arguments: &Arguments) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    // Before the hosts are enrolled: a machine may lack it.
    let etcd = Etcd::start(folder.path()).await?;
    let fleet = Fleet::enrol(folder.path(), arguments.connections * arguments.rounds).await?;
    let hub = Server::start("hub", folder.path()).await?;
    let time = Duration::from_secs(arguments.seconds);
    let mut pairs = Vec::new();
    for fleet in fleet.split(arguments.connections) {
        let mut load = Load::new(fleet);
        // Full reports first: changes need something to be laid over. And both are warm then.
        load.run(&hub, Kind::Full, time / WARM).await?;
        etcd.run(arguments.connections, time / WARM).await?;
        pairs.push((
            load.run(&hub, Kind::Changed, time).await.context("changed reports")?,
            etcd.run(arguments.connections, time).await.context("puts")?,
        ));
    }
    print(&pairs, arguments.connections)
}

fn print(pairs: &[(Sample, Sample)], connections: usize) -> anyhow::Result<()> {
    let of = |what: fn(&Sample) -> f64| -> Vec<(f64, f64)> {
        pairs.iter().map(|(hub, etcd)| (what(hub), what(etcd))).collect()
    };
    figures::print(&[
        Figure::of_pairs(
            "CPU of 4 KiB made durable, a changed report at the hub, a put at etcd".to_owned(),
            "µs",
            &of(Sample::cpu_us),
            format!(
                "the server process's CPU by schedstat, {connections} TLS connections with one request each; baseline: \
                 etcd of Debian, one member, `POST /v3/kv/put` of the same report in base64; this JSON gateway costs \
                 etcd a call of its own gRPC over TLS for each put, so a client of gRPC, its native protocol, would \
                 cost it less"
            ),
        ),
        Figure::of_pairs(
            "4 KiB made durable, changed reports at the hub, puts at etcd".to_owned(),
            "per s",
            &of(Sample::rate),
            "load and server share the machine; both answer once it is on disk".to_owned(),
        ),
    ])
}
