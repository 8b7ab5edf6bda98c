//! A benchmark of the journal.
//!
//! In: nothing; the folder for temporary files says which disk. Out: lines `BENCH {json}` for `cargo bench-all`.
#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use std::hint::black_box;
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use agentd::operation::log::{AfterFailure, Event, Finding};
use agentd::operation::{Operation, Start, Target};
use agentd::port::store::Store;
use agentd::port::store::journal::NewOperation;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::generation::Generation;
use holdfast_protocol::id::{GuestUid, OperationId, Vmid};
use jiff::Timestamp;
use serde_json::json;
use tempfile::TempDir;

/// Both sides of a pair run right after one another, so that a machine that slows down slows both.
const PAIRS: usize = 15;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

fn vmid(number: u32) -> Vmid {
    Vmid::try_from(number).unwrap()
}

fn uid(n: u32) -> GuestUid {
    GuestUid::new(uuid::Uuid::from_u128(u128::from(n) << 64))
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

/// A runtime for the store's calls.
fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap()
}

async fn start_of(store: &Store, n: u32) -> agentd::operation::progress::OperationState {
    let target = Target { uid: uid(n), name: "web".parse().unwrap(), vmid: vmid(1_000) };
    let new = NewOperation {
        id: OperationId::new(uuid::Uuid::from_u128(u128::from(n))),
        operation: Operation::Start(Start(target)),
        generation: Generation::new(1),
        reason: "a benchmark".to_owned(),
        at: at(0),
    };
    store.open_operation(new).await.unwrap()
}

fn retried() -> Event {
    let problem = ErrorBody::new(ErrorCode::Unavailable, "Proxmox was busy");
    Event::Failed { step: 0, problem, then: AfterFailure::Again }
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

/// Ten thousand records in a hundred open operations.
async fn fill(store: &Store) {
    for n in 0..100 {
        let mut progress = store.append(&start_of(store, n).await, Event::Begun, at(0)).await.unwrap();
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
}

/// After a crash every open operation is replayed, by a store that has none of them in memory yet.
fn replay(filled: &Path) {
    let runtime = runtime();
    let plain = vec![Finding::Vmid(vmid(300)); 10_000];
    let text: Vec<String> = plain.iter().map(|fact| serde_json::to_string(fact).unwrap()).collect();
    let mut pairs = Vec::new();
    for _ in 0..PAIRS {
        let filled = left_by_a_kill(filled);
        let store = Store::open(filled.path(), at(2)).unwrap();
        let ours = timed(|| assert_eq!(runtime.block_on(store.open_operations()).unwrap().len(), 100));
        let bare = timed(|| {
            for line in &text {
                black_box(serde_json::from_str::<Finding>(line).unwrap());
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

/// Everything that a starting agent does with its database before it acts. It opens the database as a killed agent left
/// it, checks whether it is sound, counts the start, and reads what is to be taken up, planned by and reported.
fn begin(folder: &Path, open: usize) {
    let store = Store::open(folder, at(2)).unwrap();
    runtime().block_on(async {
        store.begin_run().await.unwrap();
        assert_eq!(store.open_operations().await.unwrap().len(), open);
        assert_eq!(store.records(Generation::new(1), at(2)).await.unwrap().open.len(), open);
        assert!(store.operation_views(20).await.unwrap().len() >= open);
    });
}

/// The files as they are on disk while the agent lives, which is how a kill leaves them.
fn left_by_a_kill(folder: &Path) -> TempDir {
    let copy = tempfile::tempdir().unwrap();
    for name in ["agent.db", "agent.db-wal"] {
        std::fs::copy(folder.join(name), copy.path().join(name)).unwrap();
    }
    copy
}

fn start(filled: &Path) {
    let empty = tempfile::tempdir().unwrap();
    let _empty_store = Store::open(empty.path(), at(0)).unwrap();
    let pairs: Vec<(f64, f64)> = (0..PAIRS)
        .map(|_| {
            let (filled, empty) = (left_by_a_kill(filled), left_by_a_kill(empty.path()));
            (timed(|| begin(filled.path(), 100)), timed(|| begin(empty.path(), 0)))
        })
        .collect();
    figure(
        "start after kill -9 with 10000 journal records in open operations",
        ("ms", 1e3),
        &pairs,
        "the same start with an empty journal; goal at most 1000 ms",
    );
}

fn main() {
    let began = Instant::now();
    journal();
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), at(0)).unwrap();
    runtime().block_on(fill(&store));
    replay(folder.path());
    start(folder.path());
    assert!(
        began.elapsed() < Duration::from_secs(600),
        "a benchmark that takes minutes is not run by anybody"
    );
}
