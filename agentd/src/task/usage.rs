//! The task that takes a sample of use each minute.
//!
//! In: readings of the observer, the kernel's figures, and the levels of the document. Out: samples for the hub and for
//! metrics, which levels are too high, and which guests use most of what is short. They are kept in memory alone, as long as the hub keeps them by the minute.

use std::sync::{Arc, Mutex, PoisonError};

use holdfast_protocol::desired::Desired;
use holdfast_protocol::json::chain;
use holdfast_protocol::usage::UsageSample;
use tokio::sync::watch;

use super::stop::Stop;
use crate::model::level_rules::LevelRules;
use crate::model::neighbours::{CpuScale, NeighbourWindow};
use crate::model::usage::{MinuteReading, UsageBacklog, UsageMeter, UsageReading};
use crate::model::usage_levels::UsageLevels;
use crate::port::clock::Clock;
use crate::port::kernel_use::KernelUse;
use crate::port::store::Store;

/// Samples that wait for the hub, shared by the tasks.
#[derive(Clone, Debug, Default)]
pub struct UsageQueue(Arc<Mutex<UsageBacklog>>);

impl UsageQueue {
    /// A value whose holder panicked is whole: each change is one call.
    fn with<T>(&self, act: impl FnOnce(&mut UsageBacklog) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn push(&self, sample: UsageSample) {
        self.with(|backlog| backlog.push(sample));
    }

    /// What the next check-in carries.
    #[must_use]
    pub fn batch(&self) -> Vec<UsageSample> {
        self.with(|backlog| backlog.batch())
    }

    /// The hub has a batch.
    pub(super) fn acknowledge(&self, batch: &[UsageSample]) {
        self.with(|backlog| backlog.acknowledge(batch));
    }

    /// The newest sample.
    #[must_use]
    pub fn newest(&self) -> Option<UsageSample> {
        self.with(|backlog| backlog.newest().cloned())
    }
}

pub struct UsageTask {
    /// What observations say.
    pub readings: watch::Receiver<UsageReading>,
    /// Gathers them into samples.
    pub meter: UsageMeter,
    pub queue: UsageQueue,
    /// Has the document.
    pub store: Store,
    /// Where levels are published that are too high.
    pub levels: watch::Sender<Arc<UsageLevels>>,
    pub kernel: KernelUse,
    pub clock: Arc<dyn Clock>,
}

impl UsageTask {
    /// Takes samples until the agent stops.
    pub async fn run(mut self, mut stop: Stop) {
        let mut rules: Option<(u64, LevelRules)> = None;
        let (mut window, mut scale) = (NeighbourWindow::default(), CpuScale::default());
        loop {
            tokio::select! {
                () = stop.requested() => return,
                changed = self.readings.changed() => if changed.is_err() { return },
            }
            let reading = self.readings.borrow_and_update().clone();
            // A reading without figures of the node leaves the scale as it was.
            if reading.cpus_centi.is_some() {
                scale = CpuScale::of(&reading);
            }
            self.meter.note(reading);
            if self.meter.is_due(self.clock.monotonic()) {
                let once = self.read_once().await;
                let sample = self.meter.take((self.clock.monotonic(), self.clock.now()), &once);
                self.read_rules(&mut rules).await;
                window.note(&sample, &scale);
                let usual = LevelRules::default();
                let rules = rules.as_ref().map_or(&usual, |(_, rules)| rules);
                self.levels.send_if_modified(|levels| {
                    let mut next = UsageLevels::clone(levels);
                    next.note(&sample, rules);
                    next.neighbours = window.known().clone();
                    let changed = **levels != next;
                    *levels = Arc::new(next);
                    changed
                });
                self.queue.push(sample);
            }
        }
    }

    /// The levels of the document, read again when another document was taken. Where it cannot be read, what was read before holds.
    async fn read_rules(&self, rules: &mut Option<(u64, LevelRules)>) {
        let taken = self.store.changes().borrow().desired;
        if rules.as_ref().is_some_and(|(at, _)| *at == taken) {
            return;
        }
        match self.store.desired().await {
            Ok(document) => *rules = Some((taken, LevelRules::of(document.as_ref().map(Desired::document)))),
            Err(error) => {
                tracing::warn!(error = chain(&error), "the levels of the document could not be read")
            }
        }
    }

    /// A few small files of the kernel for each guest.
    async fn read_once(&self) -> MinuteReading {
        let (kernel, guests) = (self.kernel.clone(), self.meter.guests().collect::<Vec<_>>());
        let read = move || MinuteReading {
            host: kernel.host(),
            guests: guests.into_iter().filter_map(|(uid, vmid)| Some((uid, kernel.guest(vmid?)))).collect(),
        };
        tokio::task::spawn_blocking(read).await.unwrap_or_default()
    }
}
