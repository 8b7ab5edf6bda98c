//! What several hubs on one database know of each other.

use async_trait::async_trait;
use holdfast_protocol::id::HostId;
use jiff::Timestamp;
use tokio::sync::mpsc;

use super::StoreError;
use super::duty::DeadMansSwitch;
use super::term::Term;

/// Hosts for which something waits that a hub wrote.
pub type ChangedHosts = mpsc::Receiver<Vec<HostId>>;

/// What hubs on one database share besides their rows.
#[async_trait]
pub trait Replicas: Send + Sync {
    /// Keeps the fingerprint of the CA, where none is kept yet, or the one that it came after. Answers the one that is kept:
    /// hubs with different CAs would lock out each other's hosts.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn keep_ca(&self, ca: String, after: Option<String>) -> Result<String, StoreError>;

    /// Keeps that a hub hears hosts now, and answers since when one has done so without a gap.
    ///
    /// # Errors
    /// [`StoreError`]; also where the term is over.
    async fn listen(&self, term: &Term<DeadMansSwitch>, now: Timestamp) -> Result<Timestamp, StoreError>;

    /// Changes that any hub makes, to be taken by one task. None where there is one hub, or where it was taken already.
    fn changed_hosts(&self) -> Option<ChangedHosts>;
}
