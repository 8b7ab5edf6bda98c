//! Upkeep of the agent's own records: their size and soundness.
//!
//! In: the store and the time. Out: ended operations reduced, old parts of the audit in files, the size measured. Each
//! piece is one short call, and other calls run between two of them. A clock that is ahead files and reduces early,
//! which loses nothing. Anything that removes data uses the latest time of a synchronised clock.

use std::sync::Arc;
use std::time::Duration;

use holdfast_protocol::json::chain;
use jiff::Timestamp;

use super::stop::Stop;
use crate::port::clock::Clock;
use crate::port::store::compact::Upkeep;
use crate::port::store::{Store, StoreError};

/// The period; an hour of delay does not matter.
const EVERY: Duration = Duration::from_secs(3_600);

/// The pause between two pieces: other users of the store come first.
const PAUSE: Duration = Duration::from_millis(200);

/// Pieces in one round: a host that was never tidied is tidy within a day.
const PIECES: u32 = 2_000;

pub struct UpkeepTask {
    /// What is kept small.
    pub store: Store,
    pub clock: Arc<dyn Clock>,
    /// Months after which a filed part of the audit is removed.
    pub audit_months: u16,
}

/// One kind of work. Each is repeated until it is done.
#[derive(Clone, Copy, Debug)]
enum Work {
    Compact,
    Forget,
    File,
    Remove,
}

impl UpkeepTask {
    /// Works until the agent stops.
    pub async fn run(self, mut stop: Stop) {
        tokio::select! {
            () = stop.requested() => return,
            looked = self.store.check() => match looked {
                Ok(looked) => tracing::debug!(?looked, "the records were looked at"),
                Err(error) => tracing::warn!(error = chain(&error), "the records could not be looked at"),
            },
        }
        loop {
            tokio::select! {
                () = stop.requested() => return,
                turned = self.turn() => if let Err(error) = turned {
                    tracing::warn!(error = chain(&error), "the records were not tidied");
                },
            }
            tokio::select! {
                () = stop.requested() => return,
                () = self.clock.sleep(EVERY) => {}
            }
        }
    }

    /// Everything that is due.
    ///
    /// # Errors
    /// [`StoreError`]: what is left is done in the next round.
    pub async fn turn(&self) -> Result<(), StoreError> {
        if self.store.refusal().is_some() {
            return Ok(());
        }
        for work in [Work::Compact, Work::Forget, Work::File, Work::Remove] {
            let mut pieces = 0;
            while pieces < PIECES && self.piece(work).await? == Upkeep::More {
                pieces += 1;
                self.clock.sleep(PAUSE).await;
            }
        }
        self.store.measure().await.map(drop)
    }

    async fn piece(&self, work: Work) -> Result<Upkeep, StoreError> {
        let now = self.clock.now();
        match work {
            Work::Compact => self.store.compact_operations(now).await,
            Work::Forget => self.store.forget_operations(self.surely(now).await?).await,
            Work::File => self.store.file_audit(now).await,
            Work::Remove => self.store.remove_audit(self.audit_months, self.surely(now).await?).await,
        }
    }

    /// A time that has come for sure.
    async fn surely(&self, now: Timestamp) -> Result<Timestamp, StoreError> {
        Ok(self.store.trust_state().await?.latest.min(now))
    }
}
