//! The document in use, by guest, cached until it changes.

use std::collections::HashMap;
use std::sync::Arc;

use holdfast_protocol::desired::DesiredGuest;
use holdfast_protocol::id::GuestUid;
use tokio::sync::Mutex;

use crate::port::store::{Store, StoreError};

type ByGuest = Arc<HashMap<GuestUid, DesiredGuest>>;

/// The guests of the document in use.
pub struct DesiredCache {
    store: Store,
    kept: Mutex<Option<(u64, ByGuest)>>,
}

impl DesiredCache {
    pub(super) fn new(store: Store) -> Self {
        Self { store, kept: Mutex::new(None) }
    }

    /// One guest, if the document names it.
    pub(super) async fn guest(&self, uid: GuestUid) -> Result<Option<DesiredGuest>, StoreError> {
        Ok(self.all().await?.get(&uid).cloned())
    }

    /// How many it names.
    pub(super) async fn count(&self) -> Result<usize, StoreError> {
        Ok(self.all().await?.len())
    }

    async fn all(&self) -> Result<ByGuest, StoreError> {
        // The count is taken before the reading, so a change meanwhile is read next time.
        let now = self.store.changes().borrow().desired;
        let mut kept = self.kept.lock().await;
        if let Some((at, guests)) = kept.as_ref()
            && *at == now
        {
            return Ok(Arc::clone(guests));
        }
        let document = self.store.desired().await?;
        let guests: HashMap<_, _> = document
            .iter()
            .flat_map(|document| document.guests())
            .map(|guest| (guest.uid, guest.clone()))
            .collect();
        let guests = Arc::new(guests);
        *kept = Some((now, Arc::clone(&guests)));
        Ok(guests)
    }
}
