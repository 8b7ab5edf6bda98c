//! The bounded queue of samples of use.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use holdfast_protocol::id::HostId;
use holdfast_protocol::usage::{SAMPLES_PER_CHECKIN, UsageSample};
use tokio::sync::mpsc;

/// Check-ins whose samples may wait: some megabytes.
const QUEUE_MAX: usize = 1024;

/// Samples of one check-in.
pub type UsageFromHost = (HostId, Vec<UsageSample>);

/// Where check-ins leave their samples.
#[derive(Clone, Debug)]
pub struct UsageInbox {
    queue: mpsc::Sender<UsageFromHost>,
    dropped: Arc<AtomicU64>,
}

impl UsageInbox {
    /// An inbox, and what the task reads.
    #[must_use]
    pub fn new() -> (Self, mpsc::Receiver<UsageFromHost>) {
        let (queue, waiting) = mpsc::channel(QUEUE_MAX);
        (Self { queue, dropped: Arc::default() }, waiting)
    }

    /// Leaves the samples of one check-in, as far as there is room.
    pub fn put(&self, host: HostId, mut samples: Vec<UsageSample>) {
        samples.truncate(SAMPLES_PER_CHECKIN);
        let count = u64::try_from(samples.len()).unwrap_or(u64::MAX);
        if count > 0 && self.queue.try_send((host, samples)).is_err() {
            self.dropped.fetch_add(count, Ordering::Relaxed);
        }
    }

    /// Samples that found no room, since the start.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}
