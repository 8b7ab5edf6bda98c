//! Token holders, cached until the store changes.
//!
//! Controllers come back every few minutes with the token they had, and a lookup would wake the store's thread each time.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use holdfast_protocol::secret::TokenHash;

use crate::model::token_reuse::PresentedToken;
use crate::port::store::token_holder::Holder;
use crate::port::store::{Changes, Store, StoreError};

/// The tokens that were shown and accepted since the store last changed: at most one for each guest.
pub struct Holders {
    store: Store,
    known: Mutex<(Changes, HashMap<[u8; 32], Holder>)>,
}

impl Holders {
    pub(super) fn new(store: Store) -> Self {
        Self { store, known: Mutex::default() }
    }

    /// The guest whose token this is, or was.
    pub(super) async fn of(&self, token: TokenHash) -> Result<Option<Holder>, StoreError> {
        // Taken before the reading, so a change meanwhile is read next time.
        let now = *self.store.changes().borrow();
        if let Some(holder) = self.with(now, |known| known.get(token.as_bytes()).cloned()) {
            return Ok(Some(holder));
        }
        let found = self.store.holder(token).await?;
        if let Some(holder) = found.as_ref().filter(|holder| holder.shown == PresentedToken::Current) {
            self.with(now, |known| known.insert(*token.as_bytes(), holder.clone()));
        }
        Ok(found)
    }

    /// Works with what is known as of these changes; what was known before them is forgotten.
    fn with<T>(
        &self,
        now: Changes,
        work: impl FnOnce(&mut HashMap<[u8; 32], Holder>) -> Option<T>,
    ) -> Option<T> {
        // A poisoned lock still guards a copy of what the store holds.
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.0 != now {
            *known = (now, HashMap::new());
        }
        work(&mut known.1)
    }
}
