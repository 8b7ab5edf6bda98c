//! The time from which a guest's failed starts count.

use holdfast_protocol::id::GuestUid;
use jiff::Timestamp;
use rusqlite::Transaction;

use super::columns::micros;
use super::{Part, Store, StoreError, audit};

/// Why earlier starts no longer count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Forgiven {
    /// The guest was seen healthy.
    Healthy,
    /// By a person.
    By(String),
}

fn forgive(
    transaction: &Transaction<'_>,
    guest: GuestUid,
    why: &Forgiven,
    at: Timestamp,
) -> Result<(), StoreError> {
    // A clock that went back must not bring old starts back to life.
    transaction
        .execute(
            "INSERT INTO starts_forgiven (guest, at) VALUES (?1, max(?2, coalesce(
                 (SELECT max(ended_at) FROM operation WHERE guest = ?1 AND kind = 'start'), 0)))
             ON CONFLICT (guest) DO UPDATE SET at = max(at, excluded.at)",
            (guest.to_string(), micros(at)),
        )
        .map_err(StoreError::sqlite("forgive a guest's starts"))?;
    let detail = match why {
        Forgiven::Healthy => "seen healthy".to_owned(),
        Forgiven::By(who) => format!("by {who}"),
    };
    let line =
        audit::Line { at, action: "starts_forgiven", guest: Some(guest), operation: None, detail: &detail };
    audit::append(transaction, &line)
}

impl Store {
    /// The starts of these guests up to now no longer count.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn forgive_starts(
        &self,
        guests: Vec<GuestUid>,
        why: Forgiven,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        let part = if why == Forgiven::Healthy { Part::Nothing } else { Part::Answers };
        self.write(part, "forgive a guest's starts", move |transaction| {
            guests.iter().try_for_each(|guest| forgive(transaction, *guest, &why, at))
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use holdfast_protocol::generation::Generation;
    use holdfast_protocol::id::OperationId;
    use holdfast_protocol::operation::OperationKind;

    use super::*;
    use crate::journal::NewOperation;
    use crate::tests::{at, open, uid, vmid};
    use agent_core::operation::log::Event;
    use agent_core::operation::{Operation, Start, Stop, Target};

    /// One successful start or stop, under its own document.
    async fn went_well(store: &Store, n: u64, operation: fn(Target) -> Operation) {
        let target = Target { uid: uid(1), name: "web-1".parse().unwrap(), vmid: vmid(300) };
        let new = NewOperation {
            id: OperationId::new(uuid::Uuid::from_u128(u128::from(n))),
            operation: operation(target),
            generation: Generation::new(n),
            reason: "test".to_owned(),
            at: at(i64::try_from(n).unwrap()),
        };
        let moment = new.at;
        let mut progress = store.open_operation(new).await.unwrap();
        let succeeded = |step| Event::Succeeded { step, facts: Vec::new(), note: None };
        let steps = [Event::Intended { step: 0 }, succeeded(0), Event::Intended { step: 1 }, succeeded(1)];
        for event in [Event::Begun].into_iter().chain(steps).chain([Event::Finished]) {
            progress = store.append(&progress, event, moment).await.unwrap();
        }
    }

    async fn count(store: &Store) -> u32 {
        let records = store.records(Generation::new(1), at(1_000)).await.unwrap();
        let start = records.attempts.iter().find(|tried| tried.kind == OperationKind::Start);
        start.map_or(0, |tried| tried.failed)
    }

    #[tokio::test]
    async fn starts_count_over_restarts_and_documents_until_it_was_healthy_forgiven_or_stopped_by_us() {
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path()).await;
        for n in 1..=3 {
            went_well(&store, n, |target| Operation::Start(Start(target))).await;
        }
        drop(store);
        let store = open(folder.path()).await;
        assert_eq!(count(&store).await, 3, "each under another document");
        store.forgive_starts(vec![uid(1)], Forgiven::Healthy, at(10)).await.unwrap();
        assert_eq!(count(&store).await, 0);
        for n in 11..=15 {
            went_well(&store, n, |target| Operation::Start(Start(target))).await;
        }
        assert_eq!(count(&store).await, 5);
        let changes = store.changes();
        let before = changes.borrow().answers;
        // The clock went back meanwhile.
        store.forgive_starts(vec![uid(1)], Forgiven::By("uid 0".to_owned()), at(5)).await.unwrap();
        assert_eq!((count(&store).await, changes.borrow().answers), (0, before + 1), "and the loop is woken");
        went_well(&store, 21, |target| Operation::Start(Start(target))).await;
        went_well(&store, 22, |target| Operation::Stop(Stop(target))).await;
        assert_eq!(count(&store).await, 0, "what we stopped did not fall");
        went_well(&store, 23, |target| Operation::Start(Start(target))).await;
        assert_eq!(count(&store).await, 1);
        store.verify_audit().await.unwrap();
    }
}
