//! Looking at the host: few calls, everything turned into [`Observed`].
//!
//! In: Proxmox's answers. Out: one snapshot, in which everything without an answer is unknown, with the age of what was
//! found. Each observation reads one cheap list of everything and one of running tasks; what else is read follows from
//! what changed in them, from our own operations, and from age ([`schedule`], [`host`]). The checks of guests that are
//! no longer seen are in [`loss`]. Deliberately absent: conclusions, and any memory over a restart.

mod facts;
mod host;
mod loss;
mod numbers;
mod schedule;
mod usage;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use holdfast_protocol::desired::FirewallFlag;
use holdfast_protocol::id::{NodeName, PoolName, StorageName, Vmid};
use holdfast_protocol::json::chain;
use holdfast_protocol::report::Running;
use jiff::{SignedDuration, Timestamp};
use tokio::sync::watch;

use self::host::{HostMemory, Listed};
pub use self::loss::Gone;
use self::numbers::Numbers;
use self::schedule::{AskedPower, Line, PowerMemory, Rotation, RoundsSeen};
use crate::model::filter::FilterSeen;
use crate::model::mark;
use crate::model::observed::{Detail, FactTimes, GuestFacts, Observed, ObservedGuest};
use crate::model::usage::UsageReading;
use crate::plan::Questions;
use crate::port::clock::Clock;
use crate::port::pve::read::Power;
use crate::port::pve::resources::{GuestKind, GuestResource, Resources};
use crate::port::pve::{Digest, Pve, PveError, Upid};

pub struct Observer {
    pve: Arc<dyn Pve>,
    clock: Arc<dyn Clock>,
    host: HostMemory,
    known: BTreeMap<Vmid, KnownGuest>,
    numbers: Numbers,
    rotation: Rotation,
    /// Tasks that ran when last observed.
    running: BTreeSet<Upid>,
    /// When the host was last observed.
    observed_at: Option<Duration>,
    /// Where readings of use go, if they are wanted.
    usage: Option<watch::Sender<UsageReading>>,
}

/// What is remembered of a guest.
#[derive(Default)]
struct KnownGuest {
    line: Option<Line>,
    uptime_s: u64,
    power: PowerMemory,
    config: Option<ReadConfig>,
    /// Its lock, and when that was first seen.
    lock: Option<(String, Timestamp)>,
}

impl KnownGuest {
    /// Takes in the lock that Proxmox lists. Another kind is another lock.
    fn note_lock(&mut self, kind: Option<&String>, at: Timestamp) {
        if self.lock.as_ref().map(|(known, _)| known) != kind {
            self.lock = kind.map(|kind| (kind.clone(), at));
        }
    }
}

/// A configuration as it was last read.
struct ReadConfig {
    at: Duration,
    digest: Option<Digest>,
    /// When the firewall's settings were read that it shows.
    filter_at: Duration,
    detail: Detail,
}

impl Observer {
    /// Observes this pool on this node, and these storages.
    #[must_use]
    pub fn new(
        pve: Arc<dyn Pve>,
        clock: Arc<dyn Clock>,
        (node, pool): (NodeName, PoolName),
        storages: BTreeSet<StorageName>,
    ) -> Self {
        let host = HostMemory::new(Arc::clone(&pve), (node, pool), storages);
        Self {
            pve,
            clock,
            host,
            known: BTreeMap::new(),
            numbers: Numbers::default(),
            rotation: Rotation::default(),
            running: BTreeSet::new(),
            observed_at: None,
            usage: None,
        }
    }

    /// Publishes what each observation says of the use of the host.
    #[must_use]
    pub fn publishing_use(self, to: watch::Sender<UsageReading>) -> Self {
        Self { usage: Some(to), ..self }
    }

    /// An operation or a task touched this guest: what was read of it is worth nothing.
    pub fn touch(&mut self, vmid: Vmid) {
        let known = self.known.entry(vmid).or_default();
        (known.config, known.power.touched) = (None, Some(self.clock.monotonic()));
    }

    /// Everything is read anew by the next observation.
    pub fn touch_all(&mut self) {
        let now = self.clock.monotonic();
        for known in self.known.values_mut() {
            (known.config, known.power.touched) = (None, Some(now));
        }
        self.host.forget();
    }

    /// One observation, with the answers to the plan's questions about numbers.
    ///
    /// # Errors
    /// When the list of resources cannot be read: then there is no observation at all.
    pub async fn look(&mut self, ask: &Questions) -> Result<Observed, PveError> {
        let resources = match self.pve.resources().await {
            Ok(resources) => resources,
            Err(error) => {
                self.host.forget();
                return Err(error);
            }
        };
        let now = self.clock.monotonic();
        let figures = resources.node(self.host.node_name().as_str());
        let rounds = self.host.note_round(figures, now);
        self.note_ended_tasks().await;
        let rows: BTreeMap<Vmid, &GuestResource> = self.own(&resources);
        let touched = self.known.iter().filter(|(_, known)| known.power.touched.is_some());
        let expected: BTreeSet<Vmid> = touched.map(|(vmid, _)| *vmid).chain(ask.expected.clone()).collect();
        let listed = if expected.iter().all(|vmid| rows.contains_key(vmid)) {
            Listed::All
        } else {
            Listed::SomeMissing
        };
        let sight = self.host.sight(listed, now).await;
        self.known.retain(|vmid, _| rows.contains_key(vmid));
        for row in rows.values() {
            self.known.entry(row.vmid).or_default().note_lock(row.lock.as_ref(), self.clock.now());
        }
        let rounds = (rounds, figures.map(|figures| figures.uptime_s));
        self.ask_power(&rows, rounds, now).await;
        self.read_configurations(&rows, now).await;
        let guests = rows.values().map(|row| (row.vmid, self.guest(row, rounds, now))).collect();
        if let Some(usage) = &self.usage {
            let node = resources.node_use(self.host.node_name().as_str());
            usage.send_replace(usage::reading(now, (node, figures), &rows, &guests));
        }
        let vmids = self.numbers.ask(self.pve.as_ref(), ask, &resources, now).await;
        let storages = self.host.storages(&ask.storages, &resources, now).await;
        let node = self.host.node(figures, now).await;
        self.observed_at = Some(now);
        let at = self.clock.now();
        let (lost, orphaned) = (BTreeMap::new(), BTreeMap::new());
        let (goldens, listings, controllers) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Ok(Observed {
            at,
            times: self.times(at),
            guests,
            vmids,
            storages,
            sight,
            node,
            lost,
            orphaned,
            goldens,
            golden_roots: BTreeMap::new(),
            listings,
            controllers,
            missing_controllers: BTreeMap::new(),
            bridge_mtu: None,
            bridge_net: crate::model::addresses::BridgeNet::default(),
        })
    }

    /// The containers of this node.
    fn own<'a>(&self, resources: &'a Resources) -> BTreeMap<Vmid, &'a GuestResource> {
        let here =
            |row: &&GuestResource| row.kind == GuestKind::Lxc && row.node == self.host.node_name().as_str();
        resources.guests.iter().filter(here).map(|row| (row.vmid, row)).collect()
    }

    /// Touches the guests of tasks that ran at the last observation and do not any more. While the list does not come,
    /// the last one stays, so that no end is missed.
    async fn note_ended_tasks(&mut self) {
        let Ok(running) = self.pve.running_tasks().await else { return };
        let running: BTreeSet<Upid> = running.into_iter().collect();
        let ended: BTreeSet<Vmid> = self.running.difference(&running).filter_map(Upid::vmid).collect();
        self.running = running;
        for vmid in ended {
            self.touch(vmid);
        }
    }

    /// Asks for the power state of each guest where its row is not enough, within a bound.
    async fn ask_power(&mut self, rows: &BTreeMap<Vmid, &GuestResource>, rounds: RoundsSeen, now: Duration) {
        let mut due = Vec::new();
        for (vmid, row) in rows {
            let power = &self.known.entry(*vmid).or_default().power;
            if power.is_asked(row, rounds, now) {
                due.push((power.asked.as_ref().map(|asked| asked.at), *vmid));
            }
        }
        for vmid in schedule::first_asked(due) {
            let answer = self.pve.guest_status(vmid).await;
            if let (Ok(status), Some(known)) = (answer, self.known.get_mut(&vmid)) {
                let (power, uptime_s) = (status.power, status.uptime_s);
                known.power.asked = Some(AskedPower { power, uptime_s, at: now });
            }
        }
    }

    /// Reads the configurations that are due.
    async fn read_configurations(&mut self, rows: &BTreeMap<Vmid, &GuestResource>, now: Duration) {
        let elapsed = self.observed_at.map_or(Duration::ZERO, |before| now.saturating_sub(before));
        let read_at = self.known.iter().filter_map(|(vmid, known)| Some((*vmid, known.config.as_ref()?.at)));
        let old = self.rotation.turn(&read_at.collect(), elapsed);
        for (vmid, row) in rows {
            let Some(known) = self.known.get(vmid) else { continue };
            let line = Line::of(row);
            let same = known.line.as_ref() == Some(&line) && row.uptime_s >= known.uptime_s;
            let is_known = known.config.as_ref().is_some_and(|read| matches!(read.detail, Detail::Known(_)));
            let config = if same && is_known && !old.contains(vmid) {
                None
            } else {
                Some(self.read_configuration(*vmid, known.config.as_ref(), now).await)
            };
            if let Some(known) = self.known.get_mut(vmid) {
                (known.line, known.uptime_s) = (Some(line), row.uptime_s);
                known.config = config.or(known.config.take());
            }
        }
    }

    /// The firewall's settings are read again with a configuration that changed, and by their own age.
    async fn read_configuration(&self, vmid: Vmid, before: Option<&ReadConfig>, now: Duration) -> ReadConfig {
        let config = match self.pve.guest_config(vmid).await {
            Ok(config) => config,
            Err(error) => {
                let detail = Detail::Unknown(chain(&error));
                return ReadConfig { at: now, digest: None, filter_at: now, detail };
            }
        };
        let mut facts = facts::facts(&config);
        let same = before.filter(|before| {
            before.digest.as_ref() == Some(&config.digest)
                && now.saturating_sub(before.filter_at) < schedule::FILTER_OLD
        });
        let filter_at = match same.map(|before| (&before.detail, before.filter_at)) {
            Some((Detail::Known(before), at)) => {
                facts.filter = before.filter.clone();
                at
            }
            Some((Detail::Unknown(_), _)) | None => {
                facts.filter = self.filter(vmid, &facts).await;
                now
            }
        };
        ReadConfig { at: now, digest: Some(config.digest), filter_at, detail: Detail::Known(Box::new(facts)) }
    }

    /// Read for guests of ours whose first network has the firewall's flag: each costs two calls, or three.
    async fn filter(&self, vmid: Vmid, facts: &GuestFacts) -> FilterSeen {
        let Some(net) = facts.net.as_ref().filter(|_| matches!(facts.mark, mark::Mark::Of(_))) else {
            return FilterSeen::NotLooked;
        };
        match net.firewall() {
            FirewallFlag::Off => return FilterSeen::NotUsed,
            FirewallFlag::On => {}
        }
        match self.pve.guest_filter(vmid).await {
            Ok(seen) => FilterSeen::Read(seen),
            Err(error) => FilterSeen::Unknown(chain(&error)),
        }
    }

    fn guest(&mut self, row: &GuestResource, rounds: RoundsSeen, now: Duration) -> ObservedGuest {
        let known = self.known.entry(row.vmid).or_default();
        let (power, up_s) = known.power.conclude(row, rounds, now);
        let detail = match (&row.unreadable, &known.config) {
            (Some(odd), _) => {
                Detail::Unknown(format!("its line in the list of guests cannot be read: {odd}"))
            }
            (None, Some(read)) => read.detail.clone(),
            (None, None) => Detail::Unknown("its configuration was not read yet".to_owned()),
        };
        // Newer than the list's, which is as old as Proxmox's last round.
        let name = match &detail {
            Detail::Known(facts) => facts.name.clone(),
            Detail::Unknown(_) => None,
        };
        let run = match power {
            Power::Running => Running::Running,
            Power::Stopped => Running::Stopped,
            Power::Unknown(_) => Running::Unknown,
        };
        ObservedGuest {
            vmid: row.vmid,
            name: name.or_else(|| row.name.clone()).unwrap_or_default(),
            run,
            up_s,
            lock: row.lock.clone(),
            detail,
        }
    }

    /// When the facts were found that are shown now.
    fn times(&self, at: Timestamp) -> FactTimes {
        let now = self.clock.monotonic();
        let when = |then: Duration| {
            let age = SignedDuration::try_from(now.saturating_sub(then)).ok()?;
            at.checked_sub(age).ok()
        };
        let read = |known: &KnownGuest| {
            let read = known.config.as_ref().filter(|read| matches!(read.detail, Detail::Known(_)))?;
            when(read.at)
        };
        let asked = |known: &KnownGuest| when(known.power.asked.as_ref()?.at);
        let guests = || self.known.iter();
        let round = self.host.round_at().and_then(when);
        FactTimes {
            locks: self
                .known
                .iter()
                .filter_map(|(vmid, known)| Some((*vmid, known.lock.as_ref()?.1)))
                .collect(),
            round,
            power: guests()
                .filter_map(|(vmid, known)| Some((*vmid, asked(known)?)))
                .filter(|(_, asked)| round.is_none_or(|round| round < *asked))
                .collect(),
            configurations: guests().filter_map(|(vmid, known)| Some((*vmid, read(known)?))).collect(),
            storages: self.host.storages_at().and_then(when),
            version: self.host.version_at().and_then(when),
            permissions: self.host.proved_at().and_then(when),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_keeps_its_beginning_until_it_goes_or_becomes_another() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let (backup, disk) = ("backup".to_owned(), "disk".to_owned());
        let mut known = KnownGuest::default();
        for (second, listed, since) in [
            (1, None, None),
            (2, Some(&backup), Some(2)),
            (3, Some(&backup), Some(2)),
            (4, Some(&disk), Some(4)),
            (5, None, None),
            (6, Some(&disk), Some(6)),
        ] {
            known.note_lock(listed, at(second));
            assert_eq!(known.lock.as_ref().map(|(_, since)| *since), since.map(at), "{second}");
        }
    }
}
