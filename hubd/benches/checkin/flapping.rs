//! Ten thousand hosts that fall silent and return at once.
//!
//! In: the hub's store with its engine, the rules without settings, and one receiver that takes a notice a second. The
//! clock is the benchmark's. Out: how many notices wait at most, the memory, and that each alert that fires was sent.

use std::collections::BTreeSet;
use std::time::Instant;

use alerts::Rules;
use alerts::incident::{IncidentId, Scope};
use anyhow::{Context as _, ensure};
use holdfast_protocol::condition::{ConditionCode, ReportedCondition, Subject};
use holdfast_protocol::id::{CorrelationId, HostId};
use hubd::domain::alerting::AlertContext;
use hubd::sqlite::Sqlite;
use hubd::store::{DeliveryEnd, Duty, HolderId, IncidentFilter, LEASE, Lease, SharedStore, Term, duty};
use jiff::Timestamp;
use uuid::Uuid;

use crate::figures::{self, Figure};

#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Hosts.
    #[arg(long, default_value_t = 10_000)]
    hosts: u32,
    /// How often they fall silent. After the last time they stay so.
    #[arg(long, default_value_t = 4)]
    times: u32,
}

/// Between two looks of the hub at its hosts.
const TICK_S: u32 = 10;

/// Of silence, and then of the hosts being back.
const HALF_S: u32 = 1_200;

/// Scopes of one transaction, as the hub has it.
const SCOPES_MAX: u32 = 500;

const CORRELATION: CorrelationId = CorrelationId::new(Uuid::nil());

struct Play {
    store: SharedStore,
    alerts: Term<duty::Alerts>,
    deliveries: Term<duty::Deliveries>,
    scopes: Vec<Scope>,
    sent: BTreeSet<IncidentId>,
    notices: u64,
    waiting_max: u64,
}

pub async fn measure(arguments: &Arguments) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let rules =
        Rules::default().resolve(&["ops".parse()?]).map_err(|errors| anyhow::anyhow!("{errors:?}"))?;
    let (store, _writer) = Sqlite::open(&folder.path().join("hub.db"), AlertContext::new(rules, at(0)?))?;
    let scopes = (1..=arguments.hosts).map(|number| Scope::Host(HostId::new(Uuid::from_u128(number.into()))));
    // The only hub has its terms for good.
    let asked_at = tokio::time::Instant::now();
    let grants = store.hold_leases(HolderId::new(Uuid::nil()), &Duty::ALL, LEASE).await?;
    let mut play = Play {
        store,
        alerts: Lease::granted(&grants, asked_at).term().context("the lease of alerts")?,
        deliveries: Lease::granted(&grants, asked_at).term().context("the lease of deliveries")?,
        scopes: scopes.collect(),
        sent: BTreeSet::new(),
        notices: 0,
        waiting_max: 0,
    };
    let (before, began) = (memory_mib("VmRSS:")?, Instant::now());
    let end = (2 * arguments.times - 1) * HALF_S;
    for second in (0..end).step_by(TICK_S as usize) {
        if second % HALF_S == 0 {
            play.all((second / HALF_S).is_multiple_of(2), second).await?;
        }
        play.tick(second).await?;
    }
    let (peak, took) = (memory_mib("VmHWM:")?, began.elapsed());
    let mut second = end;
    while play.waiting().await? > 0 {
        play.tick(second).await?;
        second += TICK_S;
    }
    let firing = play.store.incidents(IncidentFilter::Firing.into(), None, arguments.hosts).await?;
    ensure!(firing.len() == play.scopes.len(), "{} alerts fire", firing.len());
    let lost = firing.iter().filter(|one| !play.sent.contains(&one.incident.id)).count();
    ensure!(lost == 0, "{lost} alerts fire of which no notice was sent");
    let how = format!(
        "{} hosts silent and back {} times, {} minutes each; one receiver that takes a notice a second: {} notices, \
         each alert that fires is in one; {:.1} s of wall time; rules without settings, no connections",
        arguments.hosts,
        arguments.times,
        HALF_S / 60,
        play.notices,
        took.as_secs_f64()
    );
    figures::print(&[
        figure("notices that wait while ten thousand hosts flap", play.waiting_max as f64, "rows", &how),
        figure("memory of the hub's store while ten thousand hosts flap", peak - before, "MiB", &how),
    ])
}

impl Play {
    /// All hosts are silent from now on, or back.
    async fn all(&self, silent: bool, second: u32) -> anyhow::Result<()> {
        let since = at(second)?;
        for some in self.scopes.chunks(SCOPES_MAX as usize) {
            let offline =
                || ReportedCondition::new(ConditionCode::HostOffline, Subject::Host {}, since, "no check-in");
            let found = some.iter().map(|scope| (*scope, if silent { vec![offline()] } else { Vec::new() }));
            self.store.observe(&self.alerts, found.collect(), since, CORRELATION).await?;
        }
        Ok(())
    }

    /// What is due is decided, and the receiver takes as many notices as the tick has seconds.
    async fn tick(&mut self, second: u32) -> anyhow::Result<()> {
        let now = at(second)?;
        while self.store.advance_alerts(&self.alerts, now, CORRELATION, SCOPES_MAX).await? > 0 {}
        self.waiting_max = self.waiting_max.max(self.waiting().await?);
        for _ in 0..TICK_S {
            for outgoing in self.store.take_outgoing(&self.deliveries, now).await? {
                self.notices += 1;
                self.sent.extend(outgoing.notice.incidents.iter().map(|one| one.id));
                let end = DeliveryEnd::Delivered { remark: None };
                self.store.delivery_ended(&self.deliveries, outgoing, end, now).await?;
            }
        }
        Ok(())
    }

    async fn waiting(&self) -> anyhow::Result<u64> {
        Ok(self.store.queues().await?.iter().map(|queue| u64::from(queue.waiting)).sum())
    }
}

fn figure(name: &str, ours: f64, unit: &'static str, note: &str) -> Figure {
    Figure { name: name.to_owned(), ours, baseline: None, ratio: None, unit, pairs: 1, note: note.to_owned() }
}

fn at(second: u32) -> anyhow::Result<Timestamp> {
    Ok(Timestamp::from_second(1_700_000_000 + i64::from(second))?)
}

/// Of this process.
pub fn memory_mib(label: &str) -> anyhow::Result<f64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line =
        status.lines().find_map(|line| line.strip_prefix(label)).context("the kernel does not say it")?;
    let kib: f64 = line.split_whitespace().next().context("the line is empty")?.parse()?;
    Ok(kib / 1024.0)
}
