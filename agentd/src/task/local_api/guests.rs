//! Addresses of guests, for connection slots.
//!
//! In: the document in use, the addresses that Proxmox was last seen to have, the address of scratch guests. Out: a
//! table of addresses, kept up to date. If two claim one address, the document's guest has it. Deliberately absent:
//! whether a caller is that guest; `api` finds that from its token.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use holdfast_protocol::desired::DesiredGuest;
use holdfast_protocol::id::GuestUid;
use holdfast_protocol::report::GuestReport;
use tokio::sync::watch;

use super::super::stop::Stop;
use crate::model::view::{HostSnapshot, News};
use crate::port::store::{Store, StoreError};

/// The owner of reserved slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Member {
    Guest(GuestUid),
    /// The scratch guest of the restore test under way.
    Scratch,
}

/// Every known address, with its owner.
pub type KnownAddresses = BTreeMap<IpAddr, Member>;

/// Keeps the table as the document and the host say.
pub struct KnownTask {
    /// Has the document.
    pub store: Store,
    /// What was last seen.
    pub view: watch::Receiver<Arc<HostSnapshot>>,
    /// From where a scratch guest may speak.
    pub scratch: Option<IpAddr>,
    /// Where the table is published.
    pub known: watch::Sender<Arc<KnownAddresses>>,
}

impl KnownTask {
    /// Runs until the agent stops.
    pub async fn run(mut self, mut stop: Stop) {
        let mut changes = self.store.changes();
        let mut read: Option<(u64, Vec<DesiredGuest>)> = None;
        loop {
            let taken = changes.borrow_and_update().desired;
            let seen = Arc::clone(&self.view.borrow_and_update());
            match self.named(&mut read, taken).await {
                Ok(named) => {
                    let now = known(named, &seen.guests, self.scratch);
                    self.known.send_if_modified(|before| {
                        let is_new = **before != now;
                        if is_new {
                            *before = Arc::new(now);
                        }
                        is_new
                    });
                }
                // What was known stays; the next change reads again.
                Err(error) => tracing::warn!(%error, "the addresses of guests could not be read"),
            }
            tokio::select! {
                () = stop.requested() => return,
                Ok(()) = changes.changed() => {}
                Ok(_) = self.view.wait_for(|next| seen.news(next) == News::Yes) => {}
                else => return,
            }
        }
    }

    /// The guests of the document, read again when another document was taken.
    async fn named<'a>(
        &self,
        read: &'a mut Option<(u64, Vec<DesiredGuest>)>,
        taken: u64,
    ) -> Result<&'a [DesiredGuest], StoreError> {
        if read.as_ref().is_none_or(|(at, _)| *at != taken) {
            let document = self.store.desired().await?;
            *read = Some((taken, document.map(|desired| desired.guests().to_vec()).unwrap_or_default()));
        }
        Ok(read.as_ref().map_or(&[], |(_, named)| named))
    }
}

fn known(named: &[DesiredGuest], seen: &[GuestReport], scratch: Option<IpAddr>) -> KnownAddresses {
    let mut known = KnownAddresses::new();
    if let Some(address) = scratch {
        known.insert(address.to_canonical(), Member::Scratch);
    }
    for guest in seen {
        if let (Some(uid), Some(address)) = (guest.uid, &guest.address) {
            known.insert(IpAddr::V4(address.address()), Member::Guest(uid));
        }
    }
    for guest in named {
        known.insert(IpAddr::V4(guest.network.address.address()), Member::Guest(guest.uid));
    }
    known
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guest(number: u32) -> DesiredGuest {
        let text = format!(
            r#"{{ "uid": "018f3c1e-6b1f-7c1d-9d0a-00000000000{number}", "name": "web-{number}", "customer": "acme",
                "golden": "2026.11.1", "size": {{ "cores": 1, "memory_mib": 512, "swap_mib": 0, "rootfs_gib": 8 }},
                "network": {{ "bridge": "vmbr0", "address": "10.66.0.{number}/24" }}, "run": "running" }}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn the_document_has_the_first_word_about_an_address() {
        let named = [guest(1), guest(2)];
        let own = |guest: &DesiredGuest| IpAddr::V4(guest.network.address.address());
        let scratch: IpAddr = [10, 99, 0, 2].into();
        let table = known(&named, &[], Some(scratch));
        assert_eq!(table.len(), 3);
        assert_eq!((table[&own(&named[0])], table[&scratch]), (Member::Guest(named[0].uid), Member::Scratch));
        // A scratch guest's address that a document names as well is the document's.
        let both = known(&named, &[], Some(own(&named[1])));
        assert_eq!(both[&own(&named[1])], Member::Guest(named[1].uid));
    }
}
