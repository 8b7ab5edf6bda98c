//! Facts of the node, its storages and our permissions, read when due.
//!
//! In: Proxmox's list of resources at each observation. Out: the node's facts and those of storages as that list has
//! them. The version and the proof of our permissions are read by the hour, or when something gives a reason. Which
//! storages can be used costs Proxmox 68 ms: its list keeps showing one that went away, so that is asked every two
//! minutes, and sooner while one cannot be used. Deliberately absent: guests.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use holdfast_protocol::id::{NodeName, PoolName, StorageName};
use holdfast_protocol::json::chain;

use super::schedule::Rounds;
use crate::model::limits;
use crate::model::observed::{NodeFacts, Sight, StorageFact};
use crate::port::pve::read::StorageStatus;
use crate::port::pve::resources::{NodeFigures, Resources, StorageFigures};
use crate::port::pve::visibility::{self, NeededPrivilege};
use crate::port::pve::{AclPath, Pve, Role, prove_sight};

/// What changes only with an update of Proxmox or by root's hand.
const HOURLY: Duration = Duration::from_secs(limits::VERSION_S as u64);

/// Which storages can be used.
const STORAGES_EVERY: Duration = Duration::from_secs(limits::STORAGE_S as u64);

/// The same while one of ours cannot.
const STORAGES_AWAY_EVERY: Duration = Duration::from_secs(30);

/// More than three of Proxmox's rounds without news: its figures stand still.
const STALLED: Duration = Duration::from_secs(35);

/// Something that was read, and when.
struct Read<T> {
    at: Duration,
    value: T,
}

impl<T> Read<T> {
    fn is_older(&self, limit: Duration, now: Duration) -> bool {
        now.saturating_sub(self.at) >= limit
    }
}

/// Reasons to read permissions anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Listed {
    /// Every guest of our records is listed.
    All,
    /// One is not: whether it is hidden or gone matters now.
    SomeMissing,
}

/// What is remembered of the host.
pub(super) struct HostMemory {
    pve: Arc<dyn Pve>,
    node: NodeName,
    pool: PoolName,
    settings: BTreeSet<StorageName>,
    version: Option<Read<String>>,
    sight: Option<Read<Sight>>,
    storages: Option<Read<BTreeMap<StorageName, StorageStatus>>>,
    /// The node's uptime as last listed, and when it was first listed so.
    uptime: Option<Read<u64>>,
}

impl HostMemory {
    pub(super) fn new(
        pve: Arc<dyn Pve>,
        (node, pool): (NodeName, PoolName),
        settings: BTreeSet<StorageName>,
    ) -> Self {
        Self { pve, node, pool, settings, version: None, sight: None, storages: None, uptime: None }
    }

    pub(super) const fn node_name(&self) -> &NodeName {
        &self.node
    }

    /// Proxmox was away, or the node was started anew: all of it is read again.
    pub(super) fn forget(&mut self) {
        (self.version, self.sight, self.storages) = (None, None, None);
    }

    /// Notes the node's uptime; it grows with each of Proxmox's rounds.
    pub(super) fn note_round(&mut self, figures: Option<NodeFigures>, now: Duration) -> Rounds {
        let Some(uptime_s) = figures.map(|figures| figures.uptime_s) else { return Rounds::Going };
        match &self.uptime {
            Some(before) if before.value == uptime_s => {
                return if before.is_older(STALLED, now) { Rounds::Stalled } else { Rounds::Going };
            }
            Some(before) if before.value > uptime_s => self.forget(),
            Some(_) | None => {}
        }
        self.uptime = Some(Read { at: now, value: uptime_s });
        Rounds::Going
    }

    /// When the last of Proxmox's rounds was noticed.
    pub(super) fn round_at(&self) -> Option<Duration> {
        self.uptime.as_ref().map(|read| read.at)
    }

    pub(super) fn version_at(&self) -> Option<Duration> {
        self.version.as_ref().map(|read| read.at)
    }

    pub(super) fn storages_at(&self) -> Option<Duration> {
        self.storages.as_ref().map(|read| read.at)
    }

    /// When our permissions were last proved.
    pub(super) fn proved_at(&self) -> Option<Duration> {
        self.sight.as_ref().filter(|read| read.value == Sight::Proved).map(|read| read.at)
    }

    /// Whether absence from the list means anything. Proved anew whenever something is absent.
    pub(super) async fn sight(&mut self, listed: Listed, now: Duration) -> Sight {
        match &self.sight {
            Some(read)
                if listed == Listed::All && read.value == Sight::Proved && !read.is_older(HOURLY, now) =>
            {
                read.value.clone()
            }
            Some(_) | None => {
                let value = self.prove().await;
                self.sight = Some(Read { at: now, value: value.clone() });
                value
            }
        }
    }

    async fn prove(&self) -> Sight {
        let wanted = [NeededPrivilege { path: AclPath::pool(&self.pool), sight: visibility::Sight::Guest }];
        match prove_sight(self.pve.as_ref(), Role::Observe, &wanted).await {
            Ok(Ok(_)) => Sight::Proved,
            Ok(Err(blind)) => Sight::Unproved(blind.to_string()),
            Err(error) => Sight::Unproved(chain(&error)),
        }
    }

    /// The node, when it answered.
    pub(super) async fn node(&mut self, figures: Option<NodeFigures>, now: Duration) -> Option<NodeFacts> {
        let version = match &self.version {
            Some(read) if !read.is_older(HOURLY, now) => read.value.clone(),
            Some(_) | None => {
                let text = self.pve.version().await.ok()?.text;
                self.version = Some(Read { at: now, value: text.clone() });
                text
            }
        };
        let (cpus, memory_bytes, memory_used_bytes) = match figures {
            Some(figures) => (figures.cpus, figures.memory_total, figures.memory_used),
            // Proxmox's status daemon is silent.
            None => {
                let status = self.pve.node_status().await.ok()?;
                (status.cpus, status.memory_total, status.memory_used)
            }
        };
        let cpus = u32::try_from(cpus).unwrap_or(u32::MAX);
        Some(NodeFacts { version, cpus, memory_bytes, memory_used_bytes })
    }

    /// The storages of the settings and these targets.
    pub(super) async fn storages(
        &mut self,
        targets: &BTreeSet<StorageName>,
        resources: &Resources,
        now: Duration,
    ) -> BTreeMap<StorageName, StorageFact> {
        let wanted: BTreeSet<StorageName> = self.settings.iter().chain(targets).cloned().collect();
        let figures: BTreeMap<&StorageName, StorageFigures> = resources
            .storages
            .iter()
            .filter(|row| row.node == self.node.as_str())
            .filter_map(|row| Some((&row.storage, row.figures?)))
            .collect();
        if self.asks_storages(&wanted, &figures, now) {
            // A list that did not come leaves every storage unknown.
            let by_name = |status: StorageStatus| (status.storage.clone(), status);
            let answer = self.pve.storages().await.ok();
            self.storages = answer.map(|all| Read { at: now, value: all.into_iter().map(by_name).collect() });
        }
        let asked = self.storages.as_ref().map(|read| &read.value);
        let fact = |name: &StorageName| {
            asked
                .and_then(|all| all.get(name))
                .map_or(StorageFact::Unknown, |status| storage_fact(status, figures.get(name).copied()))
        };
        wanted.iter().map(|name| (name.clone(), fact(name))).collect()
    }

    fn asks_storages(
        &self,
        wanted: &BTreeSet<StorageName>,
        figures: &BTreeMap<&StorageName, StorageFigures>,
        now: Duration,
    ) -> bool {
        let Some(read) = &self.storages else { return true };
        let is_away = |name: &StorageName| {
            let is_active = read.value.get(name).is_some_and(|status| status.active);
            !is_active || !figures.contains_key(name)
        };
        read.is_older(STORAGES_EVERY, now)
            || (read.is_older(STORAGES_AWAY_EVERY, now) && wanted.iter().any(is_away))
    }
}

/// What was asked, with the figures of the last round. What is kept back from the free room stays kept back.
fn storage_fact(status: &StorageStatus, figures: Option<StorageFigures>) -> StorageFact {
    if !status.active {
        return StorageFact::Inactive;
    }
    let StorageFigures { total, used } =
        figures.unwrap_or(StorageFigures { total: status.total, used: status.used });
    let kept_back = status.total.saturating_sub(status.used).saturating_sub(status.available);
    StorageFact::Active { total, used, available: total.saturating_sub(used).saturating_sub(kept_back) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_room_follows_the_figures_of_the_last_round() {
        let status = StorageStatus {
            storage: "fast".parse().unwrap(),
            kind: "dir".to_owned(),
            content: vec!["rootdir".to_owned()],
            active: true,
            enabled: true,
            available: 85,
            total: 100,
            used: 10,
        };
        let fact = |figures| storage_fact(&status, figures);
        assert_eq!(fact(None), StorageFact::Active { total: 100, used: 10, available: 85 });
        let fuller = Some(StorageFigures { total: 100, used: 40 });
        assert_eq!(fact(fuller), StorageFact::Active { total: 100, used: 40, available: 55 });
        let full = Some(StorageFigures { total: 100, used: 99 });
        assert_eq!(fact(full), StorageFact::Active { total: 100, used: 99, available: 0 });
        let away = StorageStatus { active: false, ..status };
        assert_eq!(storage_fact(&away, fuller), StorageFact::Inactive, "the list still has its figures");
    }
}
