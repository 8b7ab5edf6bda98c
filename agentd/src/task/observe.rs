//! Looking at the host: few calls, everything turned into [`Observed`].
//!
//! In: Proxmox's answers. Out: one snapshot, in which everything without an answer is unknown. A guest's configuration
//! is read again when its line in the list changed or when an operation of ours touched it. It is also read from time
//! to time, a few in each observation. The checks of guests that are no longer seen are in [`loss`]. Deliberately
//! absent: conclusions, and any memory over a restart.

mod loss;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use holdfast_protocol::desired::FirewallFlag;
use holdfast_protocol::id::{PoolName, StorageName, Vmid};
use holdfast_protocol::json::chain;
use holdfast_protocol::net::Ipv4Cidr;
use holdfast_protocol::report::Running;
use jiff::{SignedDuration, Timestamp};

pub use self::loss::Gone;
use crate::gate::adoption;
use crate::model::filter::FilterSeen;
use crate::model::hardware::HardwareAddress;
use crate::model::mark;
use crate::model::observed::{
    Detail, GuestFacts, MountFacts, NodeFacts, Observed, ObservedGuest, Protection, Sight, StorageFact,
    Template, VmidFact,
};
use crate::model::records::VolumeId;
use crate::plan::Questions;
use crate::port::clock::Clock;
use crate::port::pve::config::Switch;
use crate::port::pve::read::{LxcStatus, Power};
use crate::port::pve::visibility::{self, NeededPrivilege};
use crate::port::pve::{AclPath, GuestConfig, Pve, PveError, Role, VmidUse, prove_sight};

/// A configuration that nothing points at is read again after this time: the list does not show every change.
const STALE: Duration = Duration::from_secs(300);

/// At most this many in one observation, the longest unread first: with a hundred guests, each in a quarter of an hour.
const STALE_READ_EACH: usize = 4;

pub struct Observer {
    pve: Arc<dyn Pve>,
    clock: Arc<dyn Clock>,
    pool: PoolName,
    storages: BTreeSet<StorageName>,
    known: BTreeMap<Vmid, KnownGuests>,
}

/// A configuration as it was last read, and the line of the list at that time.
struct KnownGuests {
    line: Line,
    at: Duration,
    detail: Detail,
}

/// What of a guest's line would not change by itself.
#[derive(PartialEq)]
struct Line {
    name: Option<String>,
    power: Power,
    lock: Option<String>,
    tags: Vec<String>,
    memory_max: u64,
    swap_max: u64,
    cpus: Option<f64>,
    disk_max: u64,
}

impl Line {
    fn of(status: &LxcStatus) -> Self {
        Self {
            name: status.name.clone(),
            power: status.power.clone(),
            lock: status.lock.clone(),
            tags: status.tags.clone(),
            memory_max: status.memory_max,
            swap_max: status.swap_max,
            cpus: status.cpus,
            disk_max: status.disk_max,
        }
    }
}

impl Observer {
    /// Observes this pool and these storages.
    #[must_use]
    pub fn new(
        pve: Arc<dyn Pve>,
        clock: Arc<dyn Clock>,
        pool: PoolName,
        storages: BTreeSet<StorageName>,
    ) -> Self {
        Self { pve, clock, pool, storages, known: BTreeMap::new() }
    }

    /// An operation touched this guest: what was read of it is worth nothing.
    pub fn forget(&mut self, vmid: Vmid) {
        self.known.remove(&vmid);
    }

    /// One observation, with the answers to the plan's questions about numbers.
    ///
    /// # Errors
    /// When the list of guests cannot be read: then there is no observation at all.
    pub async fn look(&mut self, ask: &Questions) -> Result<Observed, PveError> {
        let rows = self.pve.guests().await?;
        let sight = self.sight().await;
        self.forget_the_stale();
        let mut guests = BTreeMap::new();
        for row in rows {
            guests.insert(row.vmid, self.guest(row).await);
        }
        self.known.retain(|vmid, _| guests.contains_key(vmid));
        let vmids = self.numbers(ask, &guests).await;
        let (storages, node) = (self.storages(&ask.storages).await, self.node().await);
        let (at, lost, orphaned) = (self.clock.now(), BTreeMap::new(), BTreeMap::new());
        let (goldens, listings, controllers) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Ok(Observed {
            at,
            read_at: self.read_at(at),
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
            bridge_mtu: None,
            bridge_net: crate::model::addresses::BridgeNet::default(),
        })
    }

    /// When the configurations were read that are shown now.
    fn read_at(&self, at: Timestamp) -> BTreeMap<Vmid, Timestamp> {
        let now = self.clock.monotonic();
        let read = |known: &KnownGuests| {
            let age = SignedDuration::try_from(now.saturating_sub(known.at)).ok()?;
            at.checked_sub(age).ok().filter(|_| matches!(known.detail, Detail::Known(_)))
        };
        self.known.iter().filter_map(|(vmid, known)| Some((*vmid, read(known)?))).collect()
    }

    async fn numbers(
        &self,
        ask: &Questions,
        guests: &BTreeMap<Vmid, ObservedGuest>,
    ) -> BTreeMap<Vmid, VmidFact> {
        let mut facts = BTreeMap::new();
        for vmid in &ask.named {
            facts.insert(*vmid, self.number(*vmid).await);
        }
        let mut missing = ask.enough;
        for vmid in ask.candidates.iter().filter(|vmid| !guests.contains_key(vmid)) {
            if missing == 0 {
                break;
            }
            let fact = self.number(*vmid).await;
            missing -= usize::from(fact == VmidFact::Free);
            facts.insert(*vmid, fact);
        }
        facts
    }

    /// A call without an answer proves nothing.
    async fn number(&self, vmid: Vmid) -> VmidFact {
        match self.pve.vmid_use(vmid).await {
            Ok(VmidUse::Free) => VmidFact::Free,
            Ok(VmidUse::Taken) => VmidFact::Taken,
            Err(_) => VmidFact::Unknown,
        }
    }

    fn forget_the_stale(&mut self) {
        let now = self.clock.monotonic();
        let stale = self.known.iter().filter(|(_, known)| now.saturating_sub(known.at) >= STALE);
        let mut stale: Vec<(Duration, Vmid)> = stale.map(|(vmid, known)| (known.at, *vmid)).collect();
        stale.sort_unstable();
        for (_, vmid) in stale.into_iter().take(STALE_READ_EACH) {
            self.known.remove(&vmid);
        }
    }

    async fn sight(&self) -> Sight {
        let wanted = [NeededPrivilege { path: AclPath::pool(&self.pool), sight: visibility::Sight::Guest }];
        match prove_sight(self.pve.as_ref(), Role::Observe, &wanted).await {
            Ok(Ok(_)) => Sight::Proved,
            Ok(Err(blind)) => Sight::Unproved(blind.to_string()),
            Err(error) => Sight::Unproved(chain(&error)),
        }
    }

    async fn guest(&mut self, row: LxcStatus) -> ObservedGuest {
        let (line, now) = (Line::of(&row), self.clock.monotonic());
        let fresh = self
            .known
            .get(&row.vmid)
            .filter(|known| known.line == line && matches!(known.detail, Detail::Known(_)));
        let detail = match (&row.unreadable, fresh) {
            (Some(odd), _) => {
                Detail::Unknown(format!("its line in the list of guests cannot be read: {odd}"))
            }
            (None, Some(known)) => known.detail.clone(),
            (None, None) => {
                let detail = match self.pve.guest_config(row.vmid).await {
                    Ok(config) => {
                        let mut facts = facts(&config);
                        facts.filter = self.filter(row.vmid, &facts).await;
                        Detail::Known(Box::new(facts))
                    }
                    Err(error) => Detail::Unknown(chain(&error)),
                };
                self.known.insert(row.vmid, KnownGuests { line, at: now, detail: detail.clone() });
                detail
            }
        };
        ObservedGuest {
            vmid: row.vmid,
            name: row.name.unwrap_or_default(),
            run: match row.power {
                Power::Running => Running::Running,
                Power::Stopped => Running::Stopped,
                Power::Unknown(_) => Running::Unknown,
            },
            up_s: row.uptime_s,
            lock: row.lock,
            detail,
        }
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

    async fn storages(&self, targets: &BTreeSet<StorageName>) -> BTreeMap<StorageName, StorageFact> {
        let all = self.storages.iter().chain(targets);
        let mut facts: BTreeMap<StorageName, StorageFact> =
            all.map(|name| (name.clone(), StorageFact::Unknown)).collect();
        // A list that did not come leaves every storage unknown.
        for status in self.pve.storages().await.unwrap_or_default() {
            if let Some(fact) = facts.get_mut(&status.storage) {
                *fact = if status.active {
                    StorageFact::Active {
                        total: status.total,
                        used: status.used,
                        available: status.available,
                    }
                } else {
                    StorageFact::Inactive
                };
            }
        }
        facts
    }

    async fn node(&self) -> Option<NodeFacts> {
        let (version, status) = (self.pve.version().await.ok()?, self.pve.node_status().await.ok()?);
        Some(NodeFacts {
            version: version.text,
            cpus: u32::try_from(status.cpus).unwrap_or(u32::MAX),
            memory_bytes: status.memory_total,
            memory_used_bytes: status.memory_used,
        })
    }
}

fn facts(config: &GuestConfig) -> GuestFacts {
    let mounts = config.mounts.iter().map(|(slot, disk)| {
        let volume = disk.volume().map(|id| VolumeId::new(id.as_str()));
        let backup = disk.in_backup.flag();
        let path = disk.mount.clone().unwrap_or_default();
        (*slot, MountFacts { volume, path, bytes: disk.size, backup })
    });
    GuestFacts {
        mark: mark::read(&config.tags, &config.description),
        cores: config.cores,
        memory_mib: config.memory_mib,
        swap_mib: config.swap_mib,
        rootfs_bytes: config.rootfs.as_ref().and_then(|disk| disk.size),
        rootfs_storage: config
            .rootfs
            .as_ref()
            .and_then(|disk| VolumeId::new(disk.volume()?.as_str()).storage().map(str::to_owned)),
        mounts: mounts.collect(),
        volumes: config.volumes().iter().map(|id| VolumeId::new(id.as_str())).collect(),
        detached: config.unused.iter().map(|id| VolumeId::new(id.as_str())).collect(),
        protection: match config.protection {
            Switch::On => Protection::On,
            Switch::Off => Protection::Off,
        },
        name: config.hostname.clone(),
        net: config.nets.get(&0).and_then(|line| line.parse().ok()),
        resolver: config.resolver(),
        more_nets: config.nets.keys().copied().filter(|number| *number != 0).collect(),
        template: match config.template {
            Switch::On => Template::Yes,
            Switch::Off => Template::No,
        },
        address: config.nets.get(&0).and_then(|net| address(net)),
        hardware: config.nets.values().filter_map(|net| HardwareAddress::of(net)).collect(),
        bridges: config.bridges(),
        filter: FilterSeen::default(),
        alien: adoption::judge(&config.lines(), &config.raw_lxc).err().map(|why| why.to_string()),
    }
}

/// The fixed address in `name=eth0,bridge=vmbr0,ip=10.66.0.91/24`.
fn address(net: &str) -> Option<Ipv4Cidr> {
    net.split(',').find_map(|part| part.strip_prefix("ip="))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_where_it_is_fixed() {
        let fixed = address("name=eth0,bridge=vmbr0,hwaddr=BC:24:11:00:00:01,ip=10.66.0.91/24,type=veth");
        assert_eq!(fixed.unwrap().to_string(), "10.66.0.91/24");
        assert_eq!(address("name=eth0,bridge=vmbr0,ip=dhcp"), None);
        assert_eq!(address("name=eth0,bridge=vmbr0"), None);
    }
}
