//! A benchmark of an idle plan.
//!
//! In: nothing. Out: lines `BENCH {json}` for `cargo bench-all`. Plan and baseline are measured alternately over the
//! same data in the same memory, and the ratio is the median of the pairs' ratios. Building the guests is not measured.
//! Deliberately absent: observation, storage and JSON; this is the decision alone.
#![forbid(unsafe_code)]

mod bare;
mod world;

use std::hint::black_box;
use std::io::Write as _;
use std::time::Instant;

use agentd::plan::{Memory, plan_with};
use anyhow::{Result, ensure};
use serde::Serialize;

use world::{Order, World};

/// Guests, the order of their uids, and how often each side is measured. More than a document may hold, to show that the cost stays linear.
const HOSTS: &[(u32, Order, Promised, u32)] = &[
    (1_000, Order::Made, Promised::Nothing, 41),
    (10_000, Order::Made, Promised::Nothing, 21),
    (10_000, Order::None, Promised::Nothing, 21),
    (100_000, Order::Made, Promised::Nothing, 9),
    (1_000, Order::Made, Promised::Backups(Since::Nothing), 41),
    (10_000, Order::Made, Promised::Backups(Since::Nothing), 21),
    (10_000, Order::None, Promised::Backups(Since::Nothing), 21),
    (100_000, Order::Made, Promised::Backups(Since::Nothing), 9),
    (10_000, Order::Made, Promised::Backups(Since::OneBackup), 21),
    (10_000, Order::Made, Promised::Backups(Since::Start), 21),
    (100_000, Order::Made, Promised::Backups(Since::Start), 5),
];

/// Whether backups are promised, and were taken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Promised {
    Nothing,
    Backups(Since),
}

/// What happened since the plan before.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Since {
    /// A few seconds passed.
    Nothing,
    /// One backup in the list is another, and the list was read anew.
    OneBackup,
    /// The agent was started: there was no plan before.
    Start,
}

/// The form that `cargo bench-all` reads.
#[derive(Debug, Serialize)]
struct Figure {
    name: String,
    ours: f64,
    baseline: f64,
    ratio: f64,
    unit: &'static str,
    pairs: u32,
    note: String,
}

fn main() -> Result<()> {
    let mut out = std::io::stdout();
    for (guests, order, promised, pairs) in HOSTS {
        writeln!(out, "BENCH {}", serde_json::to_string(&measure(*guests, *order, *promised, *pairs)?)?)?;
    }
    Ok(())
}

fn measure(guests: u32, order: Order, promised: Promised, pairs: u32) -> Result<Figure> {
    let world = World::settled(guests, order)?;
    let world = if promised == Promised::Nothing { world } else { world.promised()? };
    let (mut ours, mut bare, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    let another = (promised == Promised::Backups(Since::OneBackup)).then(|| world.with_another_backup());
    let pairing = bare::Pairing::of(&world);
    let mut memory = Memory::default();
    // The first round warms caches and allocator, and is not counted.
    for turn in 0..=pairs {
        // The plan before went by the other list.
        let records = another.as_ref().filter(|_| turn % 2 == 0).unwrap_or(&world.records);
        if promised == Promised::Backups(Since::Start) {
            memory = Memory::default();
        }
        let inputs = world.inputs(turn, records)?;
        let began = Instant::now();
        let plan = black_box(plan_with(black_box(&inputs), &mut memory));
        let took = began.elapsed().as_secs_f64() * 1e3;
        let begun = plan.actions.first().map(|action| action.reason.as_str());
        let held = plan.held.first().map(|held| held.reason);
        ensure!(
            (begun, held, plan.raises.len()) == (None, None, 0),
            "a settled host needs nothing: {begun:?}, {held:?}, {} promises",
            plan.raises.len()
        );
        ensure!(plan.verdicts.len() == guests as usize, "every guest has its verdict");
        let reported = plan.verdicts.iter().find(|verdict| !verdict.conditions.is_empty());
        ensure!(reported.is_none(), "nothing is reported of a settled host: {reported:?}");
        drop(plan);
        let began = Instant::now();
        let differing = black_box(bare::differing(black_box(&pairing)));
        let bare_took = began.elapsed().as_secs_f64() * 1e3;
        ensure!(differing.is_empty(), "the baseline sees no difference either");
        if turn > 0 {
            ours.push(took);
            bare.push(bare_took);
            ratios.push(took / bare_took);
        }
    }
    let ours = median(&mut ours);
    let lie = match order {
        Order::Made => "",
        Order::None => ", uids in no order",
    };
    let promised = match promised {
        Promised::Nothing => "",
        Promised::Backups(Since::Nothing) => ", each with a nightly backup promised and seven kept",
        Promised::Backups(Since::OneBackup) => {
            ", each with a nightly backup promised and seven kept, one of them another than before"
        }
        Promised::Backups(Since::Start) => {
            ", each with a nightly backup promised and seven kept, the first plan after a start"
        }
    };
    Ok(Figure {
        name: format!("plan of {guests} settled guests{lie}{promised}"),
        ours,
        baseline: median(&mut bare),
        ratio: median(&mut ratios),
        unit: "ms",
        pairs,
        note: format!(
            "wall time of one plan ({:.0} ns a guest), one thread; baseline: merge-join of the same requests and sights, \
             both sorted before, comparing the same fields and keeping only what differs",
            ours * 1e6 / f64::from(guests)
        ),
    })
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
