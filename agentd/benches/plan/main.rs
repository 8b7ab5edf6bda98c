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

use anyhow::{Result, ensure};
use serde::Serialize;

use world::{Order, World};

/// Guests, the order of their uids, and how often each side is measured. More than a document may hold, to show that the cost stays linear.
const HOSTS: &[(u32, Order, KeptPlan, u32)] = &[
    (1_000, Order::Made, KeptPlan::Nothing, 41),
    (10_000, Order::Made, KeptPlan::Nothing, 21),
    (10_000, Order::None, KeptPlan::Nothing, 21),
    (100_000, Order::Made, KeptPlan::Nothing, 9),
    (1_000, Order::Made, KeptPlan::Promises, 41),
    (10_000, Order::Made, KeptPlan::Promises, 21),
];

/// Whether backups are promised, and were taken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum KeptPlan {
    Nothing,
    Promises,
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
    for (guests, order, kept, pairs) in HOSTS {
        writeln!(out, "BENCH {}", serde_json::to_string(&measure(*guests, *order, *kept, *pairs)?)?)?;
    }
    Ok(())
}

fn measure(guests: u32, order: Order, kept: KeptPlan, pairs: u32) -> Result<Figure> {
    let world = World::settled(guests, order)?;
    let world = if kept == KeptPlan::Promises { world.promised()? } else { world };
    let inputs = world.inputs();
    let pairing = bare::Pairing::of(&world);
    let (mut ours, mut bare, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    // The first round warms caches and allocator, and is not counted.
    for turn in 0..=pairs {
        let began = Instant::now();
        let plan = black_box(agentd::plan::plan(black_box(&inputs)));
        let took = began.elapsed().as_secs_f64() * 1e3;
        let begun = plan.actions.first().map(|action| action.reason.as_str());
        let held = plan.held.first().map(|held| held.reason);
        ensure!(
            (begun, held, plan.raises.len()) == (None, None, 0),
            "a settled host needs nothing: {begun:?}, {held:?}, {} promises",
            plan.raises.len()
        );
        ensure!(plan.verdicts.len() == guests as usize, "every guest has its verdict");
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
    let promised = match kept {
        KeptPlan::Nothing => "",
        KeptPlan::Promises => ", each with a nightly backup promised and seven kept",
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
