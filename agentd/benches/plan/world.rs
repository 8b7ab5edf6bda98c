//! A host on which every guest is as desired.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use agentd::model::clock_trust::{Steady, TrustedTime};
use agentd::model::mark::Mark;
use agentd::model::net::{NetLine, NetPlace, ResolverText};
use agentd::model::observed::{
    BackupFlag, BackupListing, Detail, FactTimes, GuestFacts, MountFacts, Observed, ObservedGuest,
    Protection, Sight, StorageFact, Template,
};
use agentd::model::policy::{BrakeRule, Policy, VmidRange};
use agentd::model::records::{
    Access, BackupRecord, BackupWhy, GuestRecord, Place, Records, TierRecord, VolumeId,
};
use agentd::plan::Inputs;
use anyhow::{Result, anyhow};
use holdfast_protocol::desired::{DesiredGuest, OvercommitLevels, UseLevels};
use holdfast_protocol::generation::{ContentHash, Generation};
use holdfast_protocol::id::{GuestUid, OperationId, Vmid};
use holdfast_protocol::protection::{BackupPolicy, Protection as Promise, Tier};
use holdfast_protocol::report::Running;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use uuid::Uuid;

const FIRST_VMID: u32 = 1_000;

pub struct World {
    pub desired: Vec<DesiredGuest>,
    pub observed: Observed,
    pub records: Records,
    policies: Vec<BackupPolicy>,
    policy: Policy,
    now: Timestamp,
}

/// A day on which all is well.
fn noon() -> Result<Timestamp> {
    Ok("2026-11-22T12:00:00Z".parse()?)
}

fn backup_of(guest: GuestUid, vmid: Vmid, nights_ago: i64) -> Result<BackupRecord> {
    let point = "2026-11-22T02:30:00Z"
        .parse::<Timestamp>()?
        .checked_sub(SignedDuration::from_hours(24 * nights_ago))?;
    Ok(BackupRecord {
        archive: VolumeId::new(format!("backups:backup/vzdump-lxc-{vmid}-{nights_ago}.tar.zst")),
        guest,
        vmid,
        storage: "backups".parse()?,
        bytes: 1 << 30,
        taken_at: point.checked_add(SignedDuration::from_mins(5))?,
        taken_by: OperationId::new(Uuid::from_u128(
            u128::from(vmid.number()) << 8 | nights_ago.unsigned_abs() as u128,
        )),
        why: BackupWhy::Schedule,
        tier: Some(Tier::Local),
        point: Some(point),
        sealed: None,
        missing_since: None,
        took: None,
        label: None,
        mounts: None,
        hardware: None,
        disks: None,
    })
}

/// The order of the guests' uids.
#[derive(Clone, Copy, Debug)]
pub enum Order {
    /// As they were made, as uids of version 7 do.
    Made,
    /// In no order at all: every guest is somewhere else in memory than the one before it.
    None,
}

impl World {
    pub fn settled(count: u32, order: Order) -> Result<Self> {
        let mut desired = Vec::new();
        let mut seen = BTreeMap::new();
        let mut records = Records::default();
        for n in 0..count {
            let guest = goal(n, order)?;
            let vmid = vmid(FIRST_VMID + n)?;
            records.guests.push(GuestRecord {
                uid: guest.uid,
                name: guest.name.clone(),
                customer: guest.customer.clone(),
                golden: guest.golden.clone(),
                place: Place::Made { vmid, volumes: volumes(vmid), by: OperationId::new(Uuid::from_u128(1)) },
                access: Access::Open,
                token_generation: 1,
                hello: None,
            });
            seen.insert(vmid, sight(&guest, vmid));
            desired.push(guest);
        }
        // Records are kept in the order of uids; a document lists its guests as its author likes.
        records.guests.sort_unstable_by_key(|record| record.uid);
        let observed = Observed {
            at: Timestamp::UNIX_EPOCH,
            guests: seen,
            times: FactTimes::default(),
            vmids: BTreeMap::new(),
            storages: BTreeMap::new(),
            sight: Sight::Proved,
            node: None,
            lost: BTreeMap::new(),
            orphaned: BTreeMap::new(),
            goldens: BTreeMap::new(),
            golden_roots: BTreeMap::new(),
            listings: BTreeMap::new(),
            controllers: BTreeMap::new(),
            missing_controllers: BTreeMap::new(),
            bridge_mtu: None,
            bridge_net: agentd::model::addresses::BridgeNet::default(),
        };
        let (policies, policy) = (Vec::new(), policy()?);
        Ok(Self { desired, observed, records, policies, policy, now: Timestamp::UNIX_EPOCH })
    }

    /// The same with a promise for each guest that is kept to the day: seven nights, the last of them today.
    pub fn promised(mut self) -> Result<Self> {
        let backup = json!({
            "target": "backups", "consistency": "crash", "retention": { "keep": { "last": 7 } },
            "schedule": { "at": ["02:30"], "zone": "UTC", "jitter_min": 30, "window_min": 180 }
        });
        let nightly = json!({ "name": "nightly", "tiers": { "local": backup } });
        self.policies = vec![serde_json::from_value(nightly)?];
        for guest in &mut self.desired {
            guest.policy = Some("nightly".parse()?);
        }
        // All guests are made alike, so each has the same promise.
        let promise = self.desired.first().and_then(|guest| Promise::of_document(guest, &self.policies));
        let promise = Arc::new(promise.ok_or_else(|| anyhow!("nobody asks for a backup"))?);
        let mut backups = Vec::new();
        for record in &self.records.guests {
            let Place::Made { vmid, .. } = record.place else { continue };
            for night in (0..7).rev() {
                backups.push(backup_of(record.uid, vmid, night)?);
            }
            self.records.protections.insert(record.uid, Arc::clone(&promise));
            self.records.tiers.push(TierRecord::new(
                record.uid,
                Tier::Local,
                noon()?.checked_sub(SignedDuration::from_hours(24 * 30))?,
            ));
        }
        self.records.backups = Arc::new(backups);
        // Their storage was approved, answers, and has room.
        self.policy.backup_storage = Some("backups".parse()?);
        let room = StorageFact::Active { total: 1 << 50, used: 1 << 49, available: 1 << 49 };
        self.observed.storages.insert("backups".parse()?, room);
        let listed =
            BackupListing::Listed { protected: BTreeSet::new(), verified: BTreeMap::new(), pruned_by: None };
        self.observed.listings.insert("backups".parse()?, listed);
        self.now = noon()?;
        Ok(self)
    }

    /// The same records, with a list of backups that was read anew and in which one is another.
    pub fn with_another_backup(&self) -> Records {
        let mut backups = self.records.backups.to_vec();
        let middle = backups.len() / 2;
        if let Some(backup) = backups.get_mut(middle) {
            backup.bytes += 1;
        }
        Records { backups: Arc::new(backups), ..self.records.clone() }
    }

    /// At one of many looks at the host, some seconds apart, by these records.
    pub fn inputs<'a>(&'a self, turn: u32, records: &'a Records) -> Result<Inputs<'a>> {
        let now = self.now.checked_add(SignedDuration::from_secs(5 * i64::from(turn)))?;
        Ok(Inputs {
            generation: Generation::new(1),
            content: Some(ContentHash::of(b"document")),
            desired: &self.desired,
            policies: &self.policies,
            manifest: &[],
            levels: UseLevels::default(),
            overcommit: OvercommitLevels::default(),
            observed: &self.observed,
            records,
            policy: &self.policy,
            release: None,
            now,
            time: TrustedTime { at: now, since: Timestamp::UNIX_EPOCH, steady: Steady::Yes },
        })
    }
}

fn vmid(number: u32) -> Result<Vmid> {
    Vmid::try_from(number).map_err(|error| anyhow!("{number} is no VMID: {error}"))
}

fn uid(n: u32, order: Order) -> GuestUid {
    let number = u128::from(n);
    GuestUid::new(Uuid::from_u128(match order {
        Order::Made => number << 64,
        Order::None => number.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835),
    }))
}

fn goal(n: u32, order: Order) -> Result<DesiredGuest> {
    let (high, middle, low) = (n / 62_500, n / 250 % 250, n % 250 + 1);
    Ok(serde_json::from_value(json!({
        "uid": uid(n, order), "name": format!("guest-{n}"), "customer": "acme", "run": "running", "golden": "2026.11.1",
        "size": { "cores": 2, "memory_mib": 512, "swap_mib": 0, "rootfs_gib": 8 },
        "network": { "bridge": "vmbr0", "address": format!("10.{high}.{middle}.{low}/8") },
        "volumes": [
            { "name": "db", "mount": "/srv/db", "size_gib": 4, "kind": "hot" },
            { "name": "media", "mount": "/srv/media", "size_gib": 20, "kind": "hot" }
        ]
    }))?)
}

fn volumes(vmid: Vmid) -> BTreeSet<VolumeId> {
    (0..3).map(|disk| VolumeId::new(format!("fast:{vmid}/vm-{vmid}-disk-{disk}.raw"))).collect()
}

fn sight(guest: &DesiredGuest, vmid: Vmid) -> ObservedGuest {
    let gib = |size: u32| u64::from(size) << 30;
    let volumes = volumes(vmid);
    let (bridge, address) = (&guest.network.bridge, guest.network.address);
    let mounts = guest.volumes.iter().zip(volumes.iter().skip(1)).zip(0..);
    let facts = GuestFacts {
        mark: Mark::Of(guest.uid),
        cores: Some(u64::from(guest.size.cores.get())),
        memory_mib: u64::from(guest.size.memory_mib.get()),
        swap_mib: u64::from(guest.size.swap_mib.get()),
        cpu: agentd::model::cpu::CpuFacts::default(),
        rootfs_bytes: Some(gib(guest.size.rootfs_gib.get())),
        rootfs_storage: None,
        mounts: mounts
            .map(|((goal, volume), slot)| {
                let mount = MountFacts {
                    volume: Some(volume.clone()),
                    path: goal.mount.as_str().to_owned(),
                    bytes: Some(gib(goal.size_gib.get())),
                    backup: BackupFlag::On,
                };
                (slot, mount)
            })
            .collect(),
        volumes,
        detached: BTreeSet::new(),
        protection: Protection::On,
        name: Some(guest.name.to_string()),
        net: format!("name=eth0,bridge={bridge},hwaddr=BC:24:11:00:00:01,ip={address},type=veth")
            .parse::<NetLine>()
            .ok()
            .map(|line| line.at(&NetPlace::of(&guest.network))),
        resolver: ResolverText::default(),
        more_nets: BTreeSet::new(),
        template: Template::No,
        address: Some(guest.network.address),
        hardware: BTreeSet::new(),
        bridges: BTreeSet::new(),
        filter: agentd::model::filter::FilterSeen::default(),
        alien: None,
    };
    ObservedGuest {
        vmid,
        name: guest.name.to_string(),
        run: Running::Running,
        up_s: 60,
        lock: None,
        detail: Detail::Known(Box::new(facts)),
    }
}

fn policy() -> Result<Policy> {
    let range = VmidRange::try_from([vmid(FIRST_VMID)?, vmid(999_999)?]).map_err(|error| anyhow!(error))?;
    Ok(Policy {
        range,
        pool: "holdfast".parse()?,
        storage: "fast".parse()?,
        bulk_storage: None,
        guest_storages: BTreeSet::new(),
        backup_storage: None,
        bridge: "vmbr0".parse()?,
        kept: agentd::model::addresses::ReservedAddresses::default(),
        goldens: BTreeMap::new(),
        golden_dump: None,
        scratch: None,
        brake: BrakeRule::usual(),
    })
}
