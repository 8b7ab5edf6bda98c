//! The task that sends audit records about guests to the hub.
//!
//! In: the audit, and how far the hub is. Out: the records that it does not have. The hub writes records and how far they go in one
//! transaction and says it in each answer, so that nothing is written here for it: after a restart, and for a hub that was set back, the
//! hub is asked. A hub that is away delays nothing else.

use std::sync::Arc;
use std::time::Duration;

use holdfast_protocol::guest_audit::GuestAuditPut;
use holdfast_protocol::json::chain;

use super::hub_sync::Dial;
use super::stop::Stop;
use crate::port::clock::Clock;
use crate::port::hub::{Hub, HubError};
use crate::port::identity::{IdentityError, IdentityFolder};
use crate::port::store::{Store, StoreError};

/// An operation writes many lines; they are read once after so long.
const SETTLE: Duration = Duration::from_secs(30);

/// The delay after records that could not be sent.
const RETRY: Duration = Duration::from_secs(600);

/// How often the audit is read without a known event.
const LOOK_EVERY: Duration = Duration::from_secs(3600);

pub struct GuestAuditTask {
    /// Has the audit.
    pub store: Store,
    /// The identity of this agent.
    pub folder: IdentityFolder,
    /// How the hub is called.
    pub dial: Dial,
    pub clock: Arc<dyn Clock>,
}

/// Why a round was not finished.
#[derive(Debug, thiserror::Error)]
enum RoundError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Identity(#[from] IdentityError),
    #[error("this box is not enrolled")]
    NotEnrolled,
    #[error(transparent)]
    Hub(#[from] HubError),
}

impl GuestAuditTask {
    /// Sends until the agent stops.
    pub async fn run(self, mut stop: Stop) {
        let mut changes = self.store.changes();
        let mut known = None;
        loop {
            changes.mark_unchanged();
            let pause = match self.round(&mut known).await {
                Ok(()) => LOOK_EVERY,
                Err(error) => {
                    tracing::warn!(error = chain(&error), "audit records of guests are sent again");
                    known = None;
                    RETRY
                }
            };
            tokio::select! {
                biased;
                () = stop.requested() => return,
                changed = changes.changed(), if known.is_some() => if changed.is_err() { return },
                () = self.clock.sleep(pause) => {}
            }
            tokio::select! {
                biased;
                () = stop.requested() => return,
                () = self.clock.sleep(SETTLE) => {}
            }
        }
    }

    /// Sends what the hub does not have. `known` is how far it is, once it was asked.
    async fn round(&self, known: &mut Option<u64>) -> Result<(), RoundError> {
        let mut hub = None;
        let mut through = match *known {
            Some(through) => through,
            None => self.put(&mut hub, &GuestAuditPut { records: Vec::new(), through: None }).await?,
        };
        loop {
            let tail = self.store.guest_audit_tail(through).await?;
            if tail.records.is_empty() {
                // Lines of the host alone: the hub has no need of their number.
                *known = Some(tail.through);
                return Ok(());
            }
            let put = GuestAuditPut { records: tail.records, through: Some(tail.through) };
            through = self.put(&mut hub, &put).await?;
            *known = Some(through);
            if through != tail.through {
                return Ok(());
            }
        }
    }

    async fn put(&self, hub: &mut Option<Hub>, put: &GuestAuditPut) -> Result<u64, RoundError> {
        let hub = match hub {
            Some(hub) => hub,
            None => hub.insert((self.dial)(&self.folder.read()?.ok_or(RoundError::NotEnrolled)?)?),
        };
        Ok(hub.put_guest_audit(put).await?.through)
    }
}

#[cfg(test)]
mod tests;
