//! The task that issues restore certificates and sends them to the hub.
//!
//! In: restore tests that proved a backup, the identity of this host, time. Out: one certificate for each such test,
//! signed and kept before it is sent, sent until the hub has it, and repeated once a day for a hub that lost it. There
//! is no journal: what is kept is never signed again, and the hub answers a repeat as the first time. A hub that is away
//! delays nothing else. Deliberately absent: what a certificate says (`plan/restore_certificate`).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::NodeName;
use holdfast_protocol::json::chain;
use holdfast_protocol::restore_certificate::{CertificatePut, CertifiedHost};
use restore_certificate::issue::{IssueError, issue};
use tokio::sync::watch;

use super::hub_sync::Dial;
use super::stop::Stop;
use crate::plan::restore_certificate::{Issuer, NoDocument, document};
use crate::port::clock::Clock;
use crate::port::hub::HubError;
use crate::port::identity::{Identity, IdentityError, IdentityFolder};
use crate::port::store::restore_certificate::CertificateRecord;
use crate::port::store::{Changes, Store, StoreError};

/// Operations write many events; their records are read once after so long.
const SETTLE: Duration = Duration::from_secs(10);

/// The delay after a certificate that could not be issued or sent.
const RETRY: Duration = Duration::from_secs(600);

/// How often the records are read without a known event.
const LOOK_EVERY: Duration = Duration::from_secs(6 * 3600);

pub struct RestoreCertificatesTask {
    /// Tests and certificates.
    pub store: Store,
    /// The identity of this agent; its key signs.
    pub folder: IdentityFolder,
    /// How the hub is called.
    pub dial: Dial,
    /// The name of this host in Proxmox.
    pub node: NodeName,
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
    Document(#[from] NoDocument),
    #[error(transparent)]
    Issue(#[from] IssueError),
    #[error(transparent)]
    Hub(#[from] HubError),
}

impl RestoreCertificatesTask {
    /// Issues and sends until the agent stops.
    pub async fn run(self, mut stop: Stop) {
        let mut changes = self.store.changes();
        loop {
            let seen = changes.borrow_and_update().operations;
            let pause = match self.round().await {
                Ok(()) => LOOK_EVERY,
                Err(error) => {
                    tracing::warn!(error = chain(&error), "restore certificates are issued and sent again");
                    RETRY
                }
            };
            tokio::select! {
                biased;
                () = stop.requested() => return,
                closed = operations_after(&mut changes, seen) => if closed { return },
                () = self.clock.sleep(pause) => {}
            }
            tokio::select! {
                biased;
                () = stop.requested() => return,
                () = self.clock.sleep(SETTLE) => {}
            }
        }
    }

    /// Issues what is due, and sends what the hub does not have. What fails for one guest does not keep the others from
    /// theirs; the first failure is returned.
    async fn round(&self) -> Result<(), RoundError> {
        if self.store.refusal().is_some() {
            return Ok(());
        }
        let due = self.store.certificates_due(self.clock.now()).await?;
        let mut first = Ok(());
        if !due.is_empty() {
            let identity = self.identity()?;
            let key = identity.signing_key()?;
            for tested in due {
                let at = self.clock.now();
                let issuer = Issuer { host: self.host(&identity), version: VERSION.to_owned(), at };
                let signed = document(&tested, &issuer)
                    .map_err(RoundError::from)
                    .and_then(|document| issue(&document, &key).map_err(RoundError::from));
                match signed {
                    Ok(signed) => {
                        let (guest, test) = (tested.guest.uid, tested.test.operation);
                        let record = CertificateRecord { guest, test, signed };
                        self.store.keep_certificate(record, tested.test.at, at).await?;
                    }
                    Err(error) => first = first.and(Err(error)),
                }
            }
        }
        first.and(self.send().await)?;
        self.repeat().await
    }

    async fn send(&self) -> Result<(), RoundError> {
        let waiting = self.store.undelivered_certificates().await?;
        if waiting.is_empty() {
            return Ok(());
        }
        let hub = (self.dial)(&self.identity()?)?;
        let (mut taken, mut first) = (BTreeSet::new(), Ok(()));
        for record in waiting {
            let put = CertificatePut { certificate: record.signed };
            match hub.put_restore_certificate(&put).await {
                Ok(_) => drop(taken.insert(record.test)),
                // About this certificate alone: the others are sent.
                Err(error @ HubError::Refused { .. }) => first = first.and(Err(error.into())),
                Err(error) => {
                    first = first.and(Err(error.into()));
                    break;
                }
            }
        }
        if !taken.is_empty() {
            self.store.certificates_delivered(taken, self.clock.now()).await?;
        }
        first
    }

    /// Sends again what the hub took a day ago. A hub that has it keeps it as it is; one that was restored from an older
    /// backup has it again. A refusal is no failure here: the hub holds a newer one, or the host was readmitted with
    /// another key.
    async fn repeat(&self) -> Result<(), RoundError> {
        let delivered = self.store.certificates_to_repeat(self.clock.now()).await?;
        if delivered.is_empty() {
            return Ok(());
        }
        let hub = (self.dial)(&self.identity()?)?;
        let (mut answered, mut end) = (BTreeSet::new(), Ok(()));
        for CertificateRecord { guest, test, signed } in delivered {
            match hub.put_restore_certificate(&CertificatePut { certificate: signed }).await {
                Ok(_) => drop(answered.insert(test)),
                Err(error) if is_of_certificate(&error) => {
                    tracing::info!(%guest, error = chain(&error), "a restore certificate was not repeated");
                    answered.insert(test);
                }
                Err(error) => {
                    end = Err(error.into());
                    break;
                }
            }
        }
        if !answered.is_empty() {
            self.store.certificates_delivered(answered, self.clock.now()).await?;
        }
        end
    }

    fn identity(&self) -> Result<Identity, RoundError> {
        self.folder.read()?.ok_or(RoundError::NotEnrolled)
    }

    fn host(&self, identity: &Identity) -> CertifiedHost {
        let enrolled = &identity.enrolled;
        CertifiedHost { id: enrolled.host_id, name: enrolled.host_name.clone(), node: self.node.clone() }
    }
}

/// Whether a certificate is refused for what it is, and not for the moment.
const fn is_of_certificate(error: &HubError) -> bool {
    let HubError::Refused { problem, .. } = error else { return false };
    matches!(problem.code, ErrorCode::RestoreCertificate | ErrorCode::RestoreCertificateOld)
}

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Returns when an operation was written since; true when the store is closed.
async fn operations_after(changes: &mut watch::Receiver<Changes>, seen: u64) -> bool {
    changes.wait_for(|changes| changes.operations != seen).await.is_err()
}

#[cfg(test)]
mod tests;
