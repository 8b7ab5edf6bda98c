//! Last contact of hosts, and their recorded liveness.

use async_trait::async_trait;
use holdfast_protocol::id::{CorrelationId, HostId, HostName};
use holdfast_protocol::size::{AlarmSeconds, PollSeconds};
use jiff::Timestamp;

use super::duty::DeadMansSwitch;
use super::{StoreError, Term};
use crate::domain::deadman::Liveness;

/// A host that should be heard of, and when it last was.
#[derive(Clone, Debug)]
pub struct HostContact {
    pub host: HostId,
    pub name: HostName,
    /// When it was last heard of, or enrolled where it never was.
    pub since: Timestamp,
    /// How it went silent.
    pub last: LastContact,
    /// How often it should ask.
    pub poll: PollSeconds,
    /// After how long a silence it is offline, where its document says so.
    pub alarm_after: Option<AlarmSeconds>,
    /// How it is written down.
    pub written: Liveness,
}

/// The last that was heard of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastContact {
    /// Nothing since it was enrolled.
    Never,
    Checkin,
    /// That its agent stops.
    Farewell,
}

/// Last contact of hosts.
#[async_trait]
pub trait Contacts: Send + Sync {
    /// Every host that may yet get worse. All contacts before it are durable when this returns.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn listened_to(&self) -> Result<Vec<HostContact>, StoreError>;

    /// Records which hosts got worse, unless they reported in the meantime. Each alarm is an event, raised once.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn write_down(
        &self,
        term: &Term<DeadMansSwitch>,
        worse: Vec<(HostContact, Liveness)>,
        at: Timestamp,
        correlation: CorrelationId,
    ) -> Result<(), StoreError>;
}
