//! The promise of each guest, lowered by signatures only.
//!
//! One row for each guest, changed by compare-and-swap in one transaction with the line of the audit. The document
//! raises it; a signed job lowers it, and ends in that transaction. A destroyed guest keeps its row, so that a guest
//! with its uid starts no lower. Deliberately absent: which promise is lower (`gate/protection`).

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use holdfast_protocol::id::{GuestUid, JobId, OperationId};
use holdfast_protocol::protection::Protection;
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Transaction};

use super::columns::{from_json, json, micros, parsed};
use super::{Part, Store, StoreError, audit, tier};
use agent_core::plan::protect::Raise;

/// Whether a promise was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changed {
    /// It is in force from now on.
    Yes,
    /// The promise in force is not the one that the caller had seen. Nothing was written.
    No,
}

/// The promises in force for all guests. Guests of one policy often share an identical text, which is parsed once.
pub(super) fn all(connection: &Connection) -> Result<BTreeMap<GuestUid, Arc<Protection>>, StoreError> {
    let rows: Vec<(String, String)> = connection
        .prepare_cached("SELECT guest, promise FROM protection ORDER BY promise")
        .and_then(|mut select| select.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect())
        .map_err(StoreError::sqlite("read what is promised"))?;
    let mut promises = BTreeMap::new();
    let mut last: Option<(String, Arc<Protection>)> = None;
    for (guest, text) in rows {
        let promise = match &last {
            Some((same, promise)) if *same == text => Arc::clone(promise),
            _ => Arc::new(from_json("a promise", &text)?),
        };
        promises.insert(parsed("a guest", &guest)?, Arc::clone(&promise));
        last = Some((text, promise));
    }
    Ok(promises)
}

/// The promise in force for one guest.
pub(super) fn of(connection: &Connection, guest: GuestUid) -> Result<Option<Protection>, StoreError> {
    let text: Option<String> = connection
        .query_row("SELECT promise FROM protection WHERE guest = ?1", [guest.to_string()], |row| row.get(0))
        .optional()
        .map_err(StoreError::sqlite("read a promise"))?;
    text.map(|text| from_json("a promise", &text)).transpose()
}

/// The cause of a change of a promise.
#[derive(Clone, Copy)]
enum By {
    Document,
    Job(JobId),
}

impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Document => f.write_str("the document"),
            Self::Job(job) => write!(f, "job {job}"),
        }
    }
}

/// Puts one in another's place.
fn swap(
    transaction: &Transaction<'_>,
    (guest, from): (GuestUid, Option<&Protection>),
    to: &Protection,
    by: By,
    at: Timestamp,
) -> Result<Changed, StoreError> {
    if of(transaction, guest)?.as_ref() != from {
        return Ok(Changed::No);
    }
    transaction
        .execute(
            "INSERT OR REPLACE INTO protection (guest, promise, at, by) VALUES (?1, ?2, ?3, ?4)",
            (guest.to_string(), json("a promise", to)?, micros(at), by.to_string()),
        )
        .map_err(StoreError::sqlite("write a promise"))?;
    tier::promised(transaction, guest, (from, to), at)?;
    match by {
        By::Document => tier::raised(transaction, guest, (from, to), at)?,
        // The operator who signed saw what was due, and wants what is due now.
        By::Job(_) => tier::signed(transaction, guest)?,
    }
    Ok(Changed::Yes)
}

/// Lowers a promise by a signed job, in the transaction that ends the job.
pub(super) fn lower(
    transaction: &Transaction<'_>,
    (job, guest): (JobId, GuestUid),
    (from, to): (&Protection, &Protection),
    at: Timestamp,
) -> Result<Changed, StoreError> {
    // A guest to which nothing was promised yet has no row.
    let from = of(transaction, guest)?
        .is_some()
        .then_some(from)
        .or((*from != Protection::default()).then_some(from));
    let changed = swap(transaction, (guest, from), to, By::Job(job), at)?;
    if changed == Changed::Yes {
        let detail = to.lines().join("; ");
        let operation = Some(OperationId::new(job.uuid()));
        let line =
            audit::Line { at, action: "protection_lowered", guest: Some(guest), operation, detail: &detail };
        audit::append(transaction, &line)?;
    }
    Ok(changed)
}

impl Store {
    /// Puts a promise that a document raised into force.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn raise_protection(&self, new: Raise, at: Timestamp) -> Result<Changed, StoreError> {
        self.write(Part::Guests, "write a promise", move |transaction| {
            let from = new.from.as_deref();
            let changed = swap(transaction, (new.guest, from), &new.to, By::Document, at)?;
            if changed == Changed::Yes {
                let line = audit::Line {
                    at,
                    action: "protection_raised",
                    guest: Some(new.guest),
                    operation: None,
                    detail: &new.what,
                };
                audit::append(transaction, &line)?;
            }
            Ok(changed)
        })
        .await
    }

    /// The promise in force for a guest.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn protection(&self, guest: GuestUid) -> Result<Option<Protection>, StoreError> {
        self.read(move |connection| of(connection, guest)).await
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tests::{at, open, uid};

    fn promise(last: u32) -> Protection {
        let schedule = json!({ "at": ["02:30"], "zone": "UTC", "jitter_min": 0, "window_min": 60 });
        let tier = json!({ "schedule": schedule, "retention": { "keep": { "last": last } } });
        serde_json::from_value(json!({ "tiers": { "snapshot": tier }, "volumes": [] })).unwrap()
    }

    fn new(guest: u8, from: Option<u32>, to: u32) -> Raise {
        let from = from.map(|last| Arc::new(promise(last)));
        Raise { guest: uid(guest), from, to: promise(to), what: format!("to {to}") }
    }

    #[tokio::test]
    async fn a_promise_outlives_the_agent_and_is_changed_only_from_what_was_seen() {
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path()).await;
        assert_eq!(store.protection(uid(1)).await.unwrap(), None);
        for guest in [1, 2] {
            assert_eq!(store.raise_protection(new(guest, None, 3), at(1)).await.unwrap(), Changed::Yes);
        }
        assert_eq!(store.raise_protection(new(1, None, 1), at(2)).await.unwrap(), Changed::No);
        assert_eq!(store.raise_protection(new(1, Some(4), 1), at(2)).await.unwrap(), Changed::No);
        assert_eq!(store.raise_protection(new(1, Some(3), 5), at(2)).await.unwrap(), Changed::Yes);
        drop(store);
        let store = open(folder.path()).await;
        assert_eq!(store.protection(uid(1)).await.unwrap(), Some(promise(5)));
        let records = store.records(holdfast_protocol::generation::Generation::NONE, at(3)).await.unwrap();
        let all: Vec<_> =
            records.protections.into_iter().map(|(guest, promise)| (guest, (*promise).clone())).collect();
        assert_eq!(all, [(uid(1), promise(5)), (uid(2), promise(3))]);
        store.verify_audit().await.unwrap();
    }

    fn at_minute(minute: u32) -> Protection {
        let mut text = serde_json::to_string(&promise(3)).unwrap();
        text = text.replace("02:30", &format!("02:{minute}"));
        serde_json::from_str(&text).unwrap()
    }

    /// A series of raises without any backup keeps what was due before the first.
    #[tokio::test]
    async fn what_was_due_before_is_kept_until_something_came_of_what_is_promised() {
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path()).await;
        let raise = |from: Option<u32>, to: u32| Raise {
            guest: uid(1),
            from: from.map(|minute| Arc::new(at_minute(minute))),
            to: at_minute(to),
            what: "to a later minute".to_owned(),
        };
        for (second, from, to) in [(1, None, 10), (2, Some(10), 20), (3, Some(20), 30)] {
            let changed = store.raise_protection(raise(from, to), at(second)).await.unwrap();
            assert_eq!(changed, Changed::Yes);
        }
        let earlier = async || {
            let records =
                store.records(holdfast_protocol::generation::Generation::NONE, at(9)).await.unwrap();
            records.tiers[0].earlier.clone()
        };
        let first = earlier().await.unwrap();
        assert_eq!(Some(&first.schedule), at_minute(10).tiers.snapshot.as_ref().map(|tier| &tier.schedule));
        assert_eq!(first.until, at(2));
        // The operator who signs wants exactly what is signed.
        let job = JobId::new(uuid::Uuid::nil());
        let signed = store.write(Part::Jobs, "a test", move |transaction| {
            lower(transaction, (job, uid(1)), (&at_minute(30), &at_minute(40)), at(4))
        });
        assert_eq!(signed.await.unwrap(), Changed::Yes);
        assert_eq!(earlier().await, None);
    }
}
