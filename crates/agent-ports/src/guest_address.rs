//! The address that Proxmox gives a guest at this moment.
//!
//! Input: a guest's number. Output: the address in its configuration, or that it is unknown. A guest's calls are judged
//! by it where they do not come from the document's address. An answer is reused for some seconds, so a guest that
//! calls often costs Proxmox little. Deliberately absent: the judgement (`model::token_reuse`).

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use holdfast_protocol::id::Vmid;
use holdfast_protocol::net::Ipv4Cidr;

use super::clock::Clock;
use super::pve::Pve;
use crate::model::net::NetLine;

/// A change by hand is noticed after this time.
const SERVES_FOR: Duration = Duration::from_secs(5);

/// Guests of one host, and as many that were.
const KNOWN_MAX: usize = 4096;

/// The source of the addresses, and its recent answers.
pub struct GuestAddresses {
    way: Way,
    clock: Arc<dyn Clock>,
    known: Mutex<HashMap<Vmid, (Duration, Option<IpAddr>)>>,
}

enum Way {
    Proxmox(Arc<dyn Pve>),
    Reported(Box<dyn Fn(Vmid) -> Option<IpAddr> + Send + Sync>),
}

impl GuestAddresses {
    /// Nothing was asked yet.
    #[must_use]
    pub fn of(pve: Arc<dyn Pve>, clock: Arc<dyn Clock>) -> Self {
        Self { way: Way::Proxmox(pve), clock, known: Mutex::default() }
    }

    /// The answers of a function, for tests.
    #[must_use]
    pub fn reported(
        says: impl Fn(Vmid) -> Option<IpAddr> + Send + Sync + 'static,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self { way: Way::Reported(Box::new(says)), clock, known: Mutex::default() }
    }

    /// The address of its first network; none where it has none, or Proxmox does not answer.
    pub async fn now(&self, vmid: Vmid) -> Option<IpAddr> {
        let asked_at = self.clock.monotonic();
        if let Some(known) = self.fresh(vmid, asked_at) {
            return known;
        }
        let address = match &self.way {
            Way::Reported(says) => says(vmid),
            Way::Proxmox(pve) => {
                let config = pve.guest_config(vmid).await.ok()?;
                let line = config.nets.get(&0).and_then(|line| line.parse::<NetLine>().ok());
                let address = line.and_then(|line| line.ip()?.parse::<Ipv4Cidr>().ok());
                address.map(|cidr| IpAddr::V4(cidr.address()))
            }
        };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= KNOWN_MAX {
            known.clear();
        }
        known.insert(vmid, (asked_at, address));
        address
    }

    fn fresh(&self, vmid: Vmid, now: Duration) -> Option<Option<IpAddr>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, address) = known.get(&vmid)?;
        (now.saturating_sub(*at) < SERVES_FOR).then_some(*address)
    }
}
