//! What a plan with nothing to do costs, beside the bare merge-join of the same lists; and what the journal costs,
//! beside the disk's own sync.
#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::hint::black_box;
use std::io::Write as _;
use std::time::{Duration, Instant};

use agentd::model::mark::Mark;
use agentd::model::observed::{Detail, GuestFacts, Observed, ObservedGuest, Protection, Sight};
use agentd::model::policy::{Policy, VmidRange};
use agentd::model::record::{Access, GuestRecord, Place, Records, VolumeId};
use agentd::operation::log::{Event, Fact, Then};
use agentd::operation::{Operation, Target};
use agentd::plan::{Inputs, plan};
use agentd::port::store::Store;
use agentd::port::store::journal::NewOperation;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::desired::DesiredGuest;
use holdfast_protocol::envelope::Problem;
use holdfast_protocol::generation::Generation;
use holdfast_protocol::id::{GuestUid, OperationId, Vmid};
use holdfast_protocol::report::Running;
use jiff::Timestamp;
use serde_json::json;

/// Both sides of a pair run right after one another, so that a machine that slows down slows both.
const PAIRS: usize = 15;

struct Host {
    desired: Vec<DesiredGuest>,
    observed: Observed,
    records: Records,
    policy: Policy,
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

fn vmid(number: u32) -> Vmid {
    Vmid::try_from(number).unwrap()
}

fn uid(n: u32) -> GuestUid {
    GuestUid::new(uuid::Uuid::from_u128(u128::from(n) << 64))
}

fn wanted(n: u32) -> DesiredGuest {
    serde_json::from_value(json!({
        "uid": uid(n), "name": format!("web-{n}"), "customer": "acme", "run": "running", "golden": "2026.11.1",
        "size": { "cores": 2, "memory_mib": 512, "swap_mib": 0, "rootfs_gib": 8 },
        "network": { "bridge": "vmbr0", "address": format!("10.{}.{}.{}/8", n >> 16 & 255, n >> 8 & 255, n & 255) }
    }))
    .unwrap()
}

/// A host on which everything is as wanted.
fn settled(count: u32) -> Host {
    let by = OperationId::new(uuid::Uuid::nil());
    let volumes = |n: u32| BTreeSet::from([VolumeId::new(format!("fast:{n}/vm-{n}-disk-0.raw"))]);
    let seen = |n: u32| ObservedGuest {
        vmid: vmid(1_000 + n),
        name: format!("web-{n}"),
        run: Running::Running,
        lock: None,
        detail: Detail::Known(Box::new(GuestFacts {
            mark: Mark::Of(uid(n)),
            cores: Some(2),
            memory_mib: 512,
            swap_mib: 0,
            rootfs_bytes: Some(8 << 30),
            mounts: BTreeMap::new(),
            volumes: volumes(1_000 + n),
            protection: Protection::On,
            address: Some(wanted(n).network.address),
        })),
    };
    let record = |n: u32| GuestRecord {
        uid: uid(n),
        name: format!("web-{n}").parse().unwrap(),
        customer: "acme".parse().unwrap(),
        golden: "2026.11.1".parse().unwrap(),
        place: Place::Made { vmid: vmid(1_000 + n), volumes: volumes(1_000 + n), by },
        access: Access::Open,
        token_generation: 1,
        hello: None,
    };
    Host {
        desired: (1..=count).map(wanted).collect(),
        observed: Observed {
            at: at(0),
            guests: (1..=count).map(|n| (vmid(1_000 + n), seen(n))).collect(),
            vmids: BTreeMap::new(),
            storages: BTreeMap::new(),
            sight: Sight::Proved,
            node: None,
        },
        records: Records { guests: (1..=count).map(record).collect(), ..Records::default() },
        policy: Policy {
            range: VmidRange::try_from([vmid(1_000), vmid(999_999)]).unwrap(),
            pool: "holdfast".parse().unwrap(),
            storage: "fast".parse().unwrap(),
            bulk_storage: None,
            backup_storage: None,
            bridge: "vmbr0".parse().unwrap(),
            goldens: BTreeMap::new(),
        },
    }
}

fn planned(host: &Host) -> usize {
    let inputs = Inputs {
        generation: Generation::new(1),
        desired: &host.desired,
        observed: &host.observed,
        records: &host.records,
        policy: &host.policy,
        now: at(0),
    };
    let plan = plan(&inputs);
    assert!(plan.actions.is_empty(), "the host is settled");
    plan.verdicts.len()
}

/// The least that any planner must do: walk wishes and records side by side, find each guest on the host, and hold the
/// sizes and the power to one another.
fn merge_join(host: &Host) -> usize {
    let mut wishes: Vec<&DesiredGuest> = host.desired.iter().collect();
    wishes.sort_unstable_by_key(|guest| guest.uid);
    let mut settled = 0;
    for (guest, record) in wishes.iter().zip(&host.records.guests) {
        let seen = record.place.vmid().and_then(|vmid| host.observed.guests.get(&vmid));
        let Some(ObservedGuest { detail: Detail::Known(facts), run, .. }) = seen else { continue };
        let same = guest.uid == record.uid
            && facts.memory_mib == u64::from(guest.size.memory_mib.get())
            && facts.cores == Some(u64::from(guest.size.cores.get()))
            && *run == Running::Running;
        settled += usize::from(same);
    }
    settled
}

fn timed(work: impl FnOnce()) -> f64 {
    let began = Instant::now();
    work();
    began.elapsed().as_secs_f64()
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap()
}

/// One line for `cargo bench-all`.
fn figure(name: &str, unit: (&str, f64), pairs: &[(f64, f64)], note: &str) {
    let (unit, scale) = unit;
    let ours = median(pairs.iter().map(|pair| pair.0 * scale).collect());
    let baseline = median(pairs.iter().map(|pair| pair.1 * scale).collect());
    let ratio = median(pairs.iter().map(|pair| pair.0 / pair.1).collect());
    let line = json!({
        "name": name, "ours": ours, "baseline": baseline, "ratio": ratio, "unit": unit, "pairs": pairs.len(), "note": note
    });
    println!("BENCH {line}");
}

fn plans() {
    for count in [10_000, 100_000] {
        let host = settled(count);
        let pair = |_| {
            (
                timed(|| assert!(black_box(planned(black_box(&host))) > 0)),
                timed(|| assert!(black_box(merge_join(black_box(&host))) > 0)),
            )
        };
        let pairs: Vec<(f64, f64)> = (0..PAIRS).map(pair).collect();
        let note = "bare merge-join of the same wishes, records and sights";
        figure(&format!("plan of {count} settled guests"), ("ms", 1e3), &pairs, note);
    }
}

/// A runtime for the store's calls.
fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap()
}

async fn start_of(store: &Store, n: u32) -> agentd::operation::progress::Progress {
    let target = Target { uid: uid(n), name: "web".parse().unwrap(), vmid: vmid(1_000) };
    let new = NewOperation {
        id: OperationId::new(uuid::Uuid::from_u128(u128::from(n))),
        operation: Operation::Start(target),
        generation: Generation::new(1),
        reason: "a benchmark".to_owned(),
        at: at(0),
    };
    store.open_operation(new).await.unwrap()
}

fn retried() -> Event {
    let problem = Problem::new(ErrorCode::Unavailable, "Proxmox was busy");
    Event::Failed { step: 0, problem, then: Then::Again }
}

/// A journaled step is an intent and an outcome, each on disk before the next thing happens.
fn journal() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), at(0)).unwrap();
    let mut raw = std::fs::File::create(folder.path().join("raw")).unwrap();
    let runtime = runtime();
    let mut progress = runtime.block_on(async {
        let opened = start_of(&store, 1).await;
        store.append(&opened, Event::Begun, at(0)).await.unwrap()
    });
    let mut pairs = Vec::new();
    for _ in 0..200 {
        let mut after = None;
        let ours = timed(|| {
            after = Some(runtime.block_on(async {
                let intended = store.append(&progress, Event::Intended { step: 0 }, at(1)).await.unwrap();
                store.append(&intended, retried(), at(2)).await.unwrap()
            }));
        });
        progress = after.unwrap();
        let bare = timed(|| {
            raw.write_all(&[7; 4096]).unwrap();
            raw.sync_data().unwrap();
        });
        pairs.push((ours, bare));
    }
    figure(
        "journaled step (intent and outcome)",
        ("ms", 1e3),
        &pairs,
        "one 4 KiB write with fdatasync on the same disk",
    );
}

/// After a crash every open operation is replayed.
fn replay() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), at(0)).unwrap();
    let runtime = runtime();
    runtime.block_on(async {
        // Ten thousand records in a hundred open operations.
        for n in 0..100 {
            let mut progress = store.append(&start_of(&store, n).await, Event::Begun, at(0)).await.unwrap();
            for _ in 0..33 {
                for event in [
                    Event::Intended { step: 0 },
                    Event::Posted {
                        step: 0,
                        upid: "UPID:pve1:00000CEA:000654F7:6B0117B2:vzstart:300:hf@pve!operate:".to_owned(),
                    },
                    retried(),
                ] {
                    progress = store.append(&progress, event, at(1)).await.unwrap();
                }
            }
        }
    });
    let plain = vec![Fact::Vmid(vmid(300)); 10_000];
    let text: Vec<String> = plain.iter().map(|fact| serde_json::to_string(fact).unwrap()).collect();
    let mut pairs = Vec::new();
    for _ in 0..PAIRS {
        let ours = timed(|| assert_eq!(runtime.block_on(store.open_operations()).unwrap().len(), 100));
        let bare = timed(|| {
            for line in &text {
                black_box(serde_json::from_str::<Fact>(line).unwrap());
            }
        });
        pairs.push((ours, bare));
    }
    figure(
        "replay of 10000 journal records",
        ("ms", 1e3),
        &pairs,
        "parsing 10000 short JSON lines from memory",
    );
}

fn main() {
    // `cargo test` builds and runs benchmarks as well; there is nothing to check in them.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let began = Instant::now();
    plans();
    journal();
    replay();
    assert!(
        began.elapsed() < Duration::from_secs(600),
        "a benchmark that takes minutes is not run by anybody"
    );
}
