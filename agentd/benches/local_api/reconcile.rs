//! Reconcile cycles of 100 guests on the runtime that serves.
//!
//! A cycle is what the loop does on a settled host: it reads the records from the store that the API uses, and plans.
//! Deliberately absent: the observation, which waits for Proxmox most of its time.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use agentd::plan::{Memory, plan_with};
use agentd::port::store::Store;
use anyhow::{Result, ensure};
use holdfast_protocol::generation::Generation;
use jiff::Timestamp;
use tokio::task::JoinHandle;

use crate::world::{Order, World};

pub const GUESTS: u32 = 100;

/// Between two cycles: 200 times as often as an agent at rest observes its host.
pub const EVERY: Duration = Duration::from_millis(50);

pub struct Reconcile {
    task: JoinHandle<Result<()>>,
    over: Arc<AtomicBool>,
}

impl Reconcile {
    #[expect(clippy::disallowed_methods, reason = "a load on the runtime that is measured, ended by `end`")]
    pub fn start(store: Store) -> Result<Self> {
        let world = World::settled(GUESTS, Order::Made)?.promised()?;
        let over = Arc::new(AtomicBool::new(false));
        let task = tokio::spawn(cycles(store, world, Arc::clone(&over)));
        Ok(Self { task, over })
    }

    pub async fn end(self) -> Result<()> {
        self.over.store(true, Ordering::Relaxed);
        self.task.await?
    }
}

async fn cycles(store: Store, world: World, over: Arc<AtomicBool>) -> Result<()> {
    let (mut memory, mut beat) = (Memory::default(), tokio::time::interval(EVERY));
    for turn in 0.. {
        beat.tick().await;
        if over.load(Ordering::Relaxed) {
            break;
        }
        let records = store.records(Generation::new(1), Timestamp::UNIX_EPOCH).await?;
        ensure!(records.guests.len() >= GUESTS as usize, "the store has records of all guests");
        let inputs = world.inputs(turn, &world.records)?;
        let plan = black_box(plan_with(black_box(&inputs), &mut memory));
        ensure!(plan.actions.is_empty(), "a settled host needs nothing");
    }
    Ok(())
}
