//! The program that logs, and the host or guest it runs on.

use std::sync::{PoisonError, RwLock};

use holdfast_protocol::id::{CustomerId, GuestUid, HostId};
use serde::Serialize;

// A process has one log, and its host or guest is known only some time after the log began.
static PLACE: RwLock<Place> = RwLock::new(Place { host: None, guest: None, customer: None });

/// The host or guest of a process.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub host: Option<HostId>,
    pub guest: Option<GuestUid>,
    pub customer: Option<CustomerId>,
}

/// A program with a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Service {
    /// The agent of a host.
    Agentd,
    /// The agent of a guest.
    Guestd,
    /// The hub.
    Hubd,
}

impl Service {
    /// The name of the program.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Agentd => "agentd",
            Self::Guestd => "guestd",
            Self::Hubd => "hubd",
        }
    }
}

/// From now on entries that name no host are of this one.
pub fn set_host(host: HostId) {
    change(|place| place.host = Some(host));
}

/// From now on entries that name no guest are of this one.
pub fn set_guest(guest: GuestUid, customer: CustomerId) {
    change(|place| (place.guest, place.customer) = (Some(guest), Some(customer)));
}

fn change(set: impl FnOnce(&mut Place)) {
    // A place is whole even where a thread panicked.
    set(&mut PLACE.write().unwrap_or_else(PoisonError::into_inner));
}

pub(crate) fn place() -> Place {
    PLACE.read().unwrap_or_else(PoisonError::into_inner).clone()
}
