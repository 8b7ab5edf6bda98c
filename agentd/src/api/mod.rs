//! The local API of guests.
//!
//! ```text
//! connection ─▶ frame (ids, envelope) ─▶ throttle (address) ─▶ guard (form) ─▶ token ─▶ GuestScope ─▶ handler ─▶ store
//! ```
//! | module | does |
//! | --- | --- |
//! | [`auth`] | token and source address → [`auth::GuestScope`], the only way to be a guest |
//! | [`audit`] | the records about the guest |
//! | [`backups`] | the guest's backups |
//! | [`body`] | a bounded body, strictly read |
//! | [`claim`] | the claim for the token |
//! | [`desired`] | which controller the guest should run, and its bytes |
//! | [`due_backups`] | which of its backups are due |
//! | [`request_guard`] | which requests are considered at all |
//! | [`error`] | every refusal, and the one match to its code |
//! | [`envelope`] | ids and the envelope |
//! | [`guest`] | hello, self, storage |
//! | [`token_holders`] | who holds which token |
//! | [`operations`] | progress of the guest's own operations; cancelling those that have not begun |
//! | [`routes`] | the table of calls |
//! | [`windows`] | quiesce windows: requested, entered, left |
//! | [`scratch_api`] | what scratch guests report while a backup is tried |
//! | [`wait`] | answers that come when they change |
//! | [`work`] | snapshots, rollback and backups, requested |
//! | [`desired_cache`] | the document in use, by guest |

pub mod audit;
pub mod auth;
pub mod backups;
pub mod body;
mod calls;
pub mod claim;
pub mod desired;
pub mod desired_cache;
pub mod due_backups;
pub mod envelope;
pub mod error;
pub mod guest;
pub mod operations;
pub mod request_guard;
pub mod restore_tests;
pub mod routes;
pub mod scratch_api;
pub mod token_holders;
pub mod wait;
pub mod windows;
pub mod work;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use holdfast_protocol::id::GuestUid;
use holdfast_protocol::local::{BODY_BYTES_MAX, Limits};
use holdfast_protocol::pin::Pin;
use net::rate::Rates;
use tokio::sync::watch;

use self::error::ApiError;
use crate::model::policy::QuiesceBound;
use crate::model::view::HostSnapshot;
use crate::port::artifacts::Artifacts;
use crate::port::clock::Clock;
use crate::port::guest_address::GuestAddresses;
use crate::port::store::Store;

/// A controller says hello at most once a minute and follows an operation from time to time; two a second is ten times
/// that.
pub const REQUESTS_PER_MINUTE: u32 = 120;
/// Twice a guest's own share, for callers without a token or with a wrong one.
pub const ADDRESS_REQUESTS_PER_MINUTE: u32 = 240;
/// Connections of one address at once.
pub const CONNECTIONS_EACH: u32 = 8;

/// What a token may do in a while.
pub const LIMITS: Limits = Limits {
    requests_per_minute: REQUESTS_PER_MINUTE,
    connections: CONNECTIONS_EACH,
    body_bytes: BODY_BYTES_MAX as u32,
};

/// The two ends of a connection, as the kernel reports them.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    pub from: IpAddr,
    /// Which address of ours was called.
    pub to: SocketAddr,
}

/// What stays as it is while the agent runs.
#[derive(Clone, Debug)]
pub struct ApiSettings {
    /// Of the certificate that guests see.
    pub pin: Pin,
    /// The hub's URL, which guests only show.
    pub hub: String,
    /// How long programs may stand still for a backup.
    pub quiesce_bound: QuiesceBound,
    /// From where a scratch guest may speak.
    pub test_guest: Option<IpAddr>,
    /// The controllers' bytes.
    pub artifacts: Artifacts,
}

/// What the handlers need.
pub struct Local {
    store: Store,
    clock: Arc<dyn Clock>,
    view: watch::Receiver<Arc<HostSnapshot>>,
    wanted: desired_cache::DesiredCache,
    holders: token_holders::Holders,
    settings: ApiSettings,
    addresses: GuestAddresses,
    by_guest: Rates<GuestUid>,
    by_address: Rates<IpAddr>,
}

impl Local {
    /// Without any request so far.
    #[must_use]
    pub fn new(
        store: Store,
        clock: Arc<dyn Clock>,
        view: watch::Receiver<Arc<HostSnapshot>>,
        settings: ApiSettings,
        addresses: GuestAddresses,
    ) -> Arc<Self> {
        Arc::new(Self {
            wanted: desired_cache::DesiredCache::new(store.clone()),
            holders: token_holders::Holders::new(store.clone()),
            store,
            clock,
            view,
            settings,
            addresses,
            by_guest: Rates::per_minute(REQUESTS_PER_MINUTE),
            by_address: Rates::per_minute(ADDRESS_REQUESTS_PER_MINUTE),
        })
    }

    fn is_of_a_test(&self, from: IpAddr) -> bool {
        self.settings.test_guest == Some(from.to_canonical())
    }

    /// The address this guest must call from: the wanted one, or for a guest that is no longer wanted its last observed
    /// one. An agent that just started has observed none. Refusing a claim then would be final, and a token could not
    /// be fully judged.
    async fn address_of(&self, uid: GuestUid) -> Result<Option<IpAddr>, ApiError> {
        if let Some(guest) = self.wanted.guest(uid).await? {
            return Ok(Some(IpAddr::V4(guest.network.address.address())));
        }
        let view = self.view.borrow();
        let seen = view.guests.iter().find(|guest| guest.uid == Some(uid)).ok_or(ApiError::NotSeen)?;
        Ok(seen.address.map(|cidr| IpAddr::V4(cidr.address())))
    }
}

#[cfg(test)]
mod tests;
