//! Tests of the plan: one small host per situation.

mod address;
mod adoption;
mod ages;
mod boundaries;
mod bulk;
mod cpu_limits;
mod detached;
mod disks;
mod due_points;
mod faults;
mod filter;
mod fixed;
mod goldens;
mod growth;
mod guest_requests;
mod incremental;
mod missing_guest;
mod network;
mod placement;
mod posture;
mod protect;
mod raised;
mod rebase;
mod restored_copy;
mod retention;
mod returned;
mod schedule;
mod side_by_side;
mod silence;
mod situations;
mod snapshots;
mod trend;
mod trial;
mod update;
mod work_orders;

use std::collections::{BTreeMap, BTreeSet};

use holdfast_protocol::desired::{DesiredGuest, OvercommitLevels, RunState, UseLevels};
use holdfast_protocol::id::OperationId;
use holdfast_protocol::report::Running;
use holdfast_protocol::size::{DiskGib, MemoryMib};
use holdfast_protocol::storage::StorageTarget;
use jiff::SignedDuration;
use serde_json::json;

use self::adoption::facts;
use super::*;
use crate::model::clock_trust::Steady;
use crate::model::mark;
use crate::model::observed::ObservedGuest;
use crate::model::observed::{
    BackupFlag, FactTimes, GuestFacts, Loss, LossProof, MountFacts, NodeFacts, Protection, Sight,
    StorageFact, Template, VmidFact,
};
use crate::model::policy::{BrakeRule, Golden, VmidRange};
use crate::model::records::{Access, CopyStage, OpenOperation, SnapshotRecord, TakenBy, VolumeId};
use crate::model::records::{Attempts, ParkedOperation};

pub(crate) use placement::remains;
use restored_copy::{copy, made};

const NOW: i64 = 1_800_000_000;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(NOW + second).unwrap()
}

pub(super) fn vmid(number: u32) -> Vmid {
    Vmid::try_from(number).unwrap()
}

pub(super) fn uid(n: u32) -> GuestUid {
    GuestUid::new(uuid::Uuid::from_u128(u128::from(n) << 96 | u128::from(n)))
}

pub(super) fn op(n: u128) -> OperationId {
    OperationId::new(uuid::Uuid::from_u128(n))
}

pub(super) fn guest(n: u32) -> DesiredGuest {
    serde_json::from_value(json!({
        "uid": uid(n), "name": format!("web-{n}"), "customer": "acme", "run": "running", "golden": "2026.11.1",
        "size": { "cores": 2, "memory_mib": 512, "swap_mib": 0, "rootfs_gib": 8 },
        "network": { "bridge": "vmbr0", "address": format!("10.66.{}.{}/16", n / 250, n % 250 + 1) },
        "volumes": [{ "name": "db", "mount": "/srv/db", "size_gib": 4, "kind": "hot" }]
    }))
    .unwrap()
}

fn volume(name: &str, kind: serde_json::Value) -> holdfast_protocol::desired::DesiredVolume {
    serde_json::from_value(
        json!({ "name": name, "mount": format!("/srv/{name}"), "size_gib": 4, "kind": kind }),
    )
    .unwrap()
}

fn policy() -> Policy {
    let golden = Golden {
        archive: VolumeId::new("local:backup/vzdump-lxc-900001-2026_11_21-05_00_00.tar.zst"),
        sha256: Some("ab".repeat(32).try_into().unwrap()),
        file: "/golden.tar.zst".into(),
        build: None,
    };
    Policy {
        range: VmidRange::try_from([vmid(300), vmid(399)]).unwrap(),
        pool: "holdfast".parse().unwrap(),
        storage: "fast".parse().unwrap(),
        bulk_storage: None,
        guest_storages: BTreeSet::new(),
        backup_storage: None,
        bridge: "vmbr0".parse().unwrap(),
        kept: crate::model::addresses::ReservedAddresses::default(),
        goldens: BTreeMap::from([("2026.11.1".parse().unwrap(), golden)]),
        golden_dump: None,
        scratch: None,
        brake: BrakeRule::usual(),
    }
}

fn volumes(number: u32) -> BTreeSet<VolumeId> {
    (0..2).map(|disk| VolumeId::new(format!("fast:{number}/vm-{number}-disk-{disk}.raw"))).collect()
}

fn snapshot(n: u32, name: &str, lives_s: i64) -> SnapshotRecord {
    SnapshotRecord {
        guest: uid(n),
        name: name.parse().unwrap(),
        vmid: vmid(299 + n),
        made_by: op(5),
        taken_by: TakenBy::Guest,
        taken_at: at(-100),
        expires_at: Some(at(lives_s)),
        point: None,
    }
}

/// A host on which guests 1 to `count` are as wanted, under the VMIDs 300 and up.
pub(super) struct World {
    pub(super) desired: Vec<DesiredGuest>,
    pub(super) policies: Vec<BackupPolicy>,
    pub(super) manifest: Vec<StorageTarget>,
    pub(super) observed: Observed,
    pub(super) records: Records,
    pub(super) policy: Policy,
}

pub(super) fn world(count: u32) -> World {
    let number = |n: u32| 299 + n;
    let seen = |n: u32| ObservedGuest {
        vmid: vmid(number(n)),
        name: format!("web-{n}"),
        run: Running::Running,
        up_s: 60,
        lock: None,
        detail: Detail::Known(Box::new(facts(n, number(n)))),
    };
    let record = |n: u32| GuestRecord {
        uid: uid(n),
        name: format!("web-{n}").parse().unwrap(),
        customer: "acme".parse().unwrap(),
        golden: "2026.11.1".parse().unwrap(),
        place: Place::Made { vmid: vmid(number(n)), volumes: volumes(number(n)), by: op(1) },
        access: Access::Open,
        token_generation: 1,
        hello: None,
    };
    let observed = Observed {
        at: at(0),
        guests: (1..=count).map(|n| (vmid(number(n)), seen(n))).collect(),
        times: FactTimes::default(),
        vmids: BTreeMap::new(),
        storages: BTreeMap::from([(
            "fast".parse().unwrap(),
            StorageFact::Active { total: 4 << 40, used: 1 << 40, available: 3 << 40 },
        )]),
        sight: Sight::Proved,
        node: Some(NodeFacts {
            version: "8.4.14".to_owned(),
            cpus: 64,
            memory_bytes: 128 << 30,
            memory_used_bytes: 16 << 30,
        }),
        lost: BTreeMap::new(),
        orphaned: BTreeMap::new(),
        goldens: BTreeMap::new(),
        golden_roots: BTreeMap::new(),
        listings: BTreeMap::new(),
        controllers: BTreeMap::new(),
        missing_controllers: BTreeMap::new(),
        bridge_mtu: None,
        bridge_net: crate::model::addresses::BridgeNet::default(),
    };
    let records = Records { guests: (1..=count).map(record).collect(), ..Records::default() };
    World {
        desired: (1..=count).map(guest).collect(),
        policies: Vec::new(),
        manifest: Vec::new(),
        observed,
        records,
        policy: policy(),
    }
}

impl World {
    pub(super) fn plan(&self) -> Plan {
        plan(&self.inputs())
    }

    pub(super) fn reports(&self) -> Vec<holdfast_protocol::report::GuestReport> {
        let inputs = self.inputs();
        report::guests(&inputs, &plan(&inputs), (&fields::all(&inputs), 10))
    }

    pub(super) fn inputs(&self) -> Inputs<'_> {
        Inputs {
            levels: UseLevels::default(),
            overcommit: OvercommitLevels::default(),
            generation: Generation::new(7),
            content: Some(ContentHash::of(b"document")),
            desired: &self.desired,
            policies: &self.policies,
            manifest: &self.manifest,
            observed: &self.observed,
            records: &self.records,
            policy: &self.policy,
            release: None,
            now: at(0),
            time: TrustedTime { at: at(0), since: at(0), steady: Steady::Yes },
        }
    }

    pub(super) fn seen(&mut self, number: u32) -> &mut ObservedGuest {
        self.observed.guests.get_mut(&vmid(number)).unwrap()
    }

    fn facts(&mut self, number: u32) -> &mut GuestFacts {
        match &mut self.seen(number).detail {
            Detail::Known(facts) => facts,
            Detail::Unknown(why) => panic!("{why}"),
        }
    }
}

/// So many starts of the first guest on its account.
fn started(times: u32, last: i64) -> Attempts {
    let message = String::new();
    Attempts { guest: uid(1), kind: OperationKind::Start, failed: times, last: at(last), message }
}

/// A situation: its name and what sets it up on a host of two settled guests.
type Situation = (&'static str, fn(&mut World));

/// Twenty guests run, and a document wants six of them to stand still and two more to be resized.
#[test]
fn a_bulk_change_is_held_and_what_is_below_goes_on() {
    let mut world = world(20);
    for place in 0..6 {
        world.desired[place].run = RunState::Stopped;
    }
    for number in [310, 311] {
        world.facts(number).memory_mib = 64;
    }
    // Neither of these is counted: a start, and protection that is put back.
    world.seen(312).run = Running::Stopped;
    world.facts(313).protection = Protection::Off;
    let plan = world.plan();
    insta::assert_snapshot!("a_bulk_change", plan.to_string());
    let document = holdfast_protocol::generation::Numbered {
        generation: Generation::new(7),
        content: ContentHash::of(b"document"),
    };
    let held = plan.braked.as_ref().unwrap();
    let changes = held.changes.iter().map(|change| (change.guest, change.operation)).collect();
    let signed = Release { document, changes };
    let released = super::plan(&Inputs { release: Some(&signed), ..world.inputs() });
    assert_eq!((released.actions.len(), released.braked), (10, None));
}

/// Records that are older than the host: what they do not know is reported and left alone.
#[test]
fn records_from_an_old_copy_are_reported() {
    let mut world = world(3);
    assert_eq!(report::unknown_marks(&world.plan()), None);
    world.records.guests.truncate(1);
    world.desired.truncate(1);
    let plan = world.plan();
    let reported = report::unknown_marks(&plan).unwrap();
    assert_eq!(reported.code, ErrorCode::ForeignGuest);
    assert!(reported.message.starts_with("guests 301, 302 carry our mark"), "{reported}");
    assert!(plan.actions.is_empty(), "{plan}");
}

/// I15: whatever is wrong with a guest's identity, no operation touches it.
#[test]
fn nothing_is_done_to_what_is_not_provably_ours() {
    let breaks: [fn(&mut World); 6] = [
        |w| w.facts(300).mark = mark::Mark::None,
        |w| w.facts(300).mark = mark::Mark::Broken,
        |w| w.facts(300).mark = mark::Mark::Of(uid(77)),
        |w| w.facts(300).volumes.clear(),
        |w| w.seen(300).detail = Detail::Unknown("403".to_owned()),
        |w| drop(w.observed.guests.remove(&vmid(300))),
    ];
    for set_up in breaks {
        let mut world = world(1);
        world.seen(300).run = Running::Stopped;
        world.facts(300).memory_mib = 64;
        world.desired[0].size.rootfs_gib = DiskGib::try_from(99).unwrap();
        set_up(&mut world);
        assert!(world.plan().actions.is_empty(), "{}", world.plan());
    }
}

#[test]
fn a_plan_asks_again_when_a_snapshots_time_ends() {
    let mut world = world(3);
    world.records.snapshots = vec![snapshot(1, "s1", 90), snapshot(2, "s2", 60), snapshot(2, "s3", 70)];
    assert_eq!((world.plan().actions.len(), world.plan().again_at), (0, Some(at(60))));
}

#[test]
fn a_plan_asks_again_when_a_wait_ends() {
    let mut world = world(0);
    world.desired.push(guest(3));
    world.records.attempts.push(Attempts {
        guest: uid(3),
        kind: OperationKind::Provision,
        failed: 1,
        last: at(-5),
        message: String::new(),
    });
    assert_eq!(world.plan().again_at, Some(at(10)));
}

#[test]
fn a_clock_that_is_set_back_keeps_no_one_waiting() {
    let mut world = world(0);
    world.desired.push(guest(3));
    let year_s = 365 * 86_400;
    for (last, waits) in [(0, true), (1, false), (year_s, false)] {
        world.records.attempts = vec![Attempts {
            guest: uid(3),
            kind: OperationKind::Provision,
            failed: 4,
            last: at(last),
            message: String::new(),
        }];
        assert_eq!(world.plan().actions.is_empty(), waits, "failed at {last}");
    }
}

#[test]
fn a_report_has_a_line_for_everybody() {
    let mut world = world(2);
    world.desired.push(guest(3));
    world.desired.remove(0);
    let inputs = world.inputs();
    let reports = report::guests(&inputs, &plan(&inputs), (&BTreeMap::new(), 10));
    let lines: Vec<_> = reports.iter().map(|r| (r.name.as_str(), r.status, r.run)).collect();
    assert_eq!(
        lines,
        [
            ("web-1", GuestStatus::Unmanaged, Running::Running),
            ("web-2", GuestStatus::Managed, Running::Running),
            ("web-3", GuestStatus::Absent, Running::Stopped)
        ]
    );
}

/// Requests, records and sights in any order give the same plan; 10,000 settled guests give an empty one.
#[test]
fn ten_thousand_settled_guests_are_no_work() {
    let mut world = world(10_000);
    world.desired.reverse();
    let plan = world.plan();
    assert!(plan.actions.is_empty() && plan.held.is_empty());
    assert_eq!(plan.verdicts.iter().filter(|verdict| verdict.status == GuestStatus::Managed).count(), 10_000);
}
