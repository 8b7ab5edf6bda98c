//! The queue of events for the webhook.

use holdfast_protocol::id::CorrelationId;
use holdfast_protocol::operator::EventView;
use rusqlite::OptionalExtension as _;

use super::columns::Id;
use super::writer::Shape;
use super::{Failed, Store, StoreError, events};

/// An event to be forwarded.
#[derive(Clone, Debug)]
pub struct Outgoing {
    pub event: EventView,
    /// The correlation id of the request.
    pub correlation: CorrelationId,
}

impl Store {
    /// The oldest event that was not passed on.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn next_outgoing(&self) -> Result<Option<Outgoing>, StoreError> {
        self.read("look for an event to forward", |connection| {
            let sql = "SELECT number, at, kind, host, actor, message, correlation FROM events
                       WHERE number > (SELECT passed FROM webhook) ORDER BY number LIMIT 1";
            let mut statement = connection.prepare_cached(sql)?;
            let outgoing = statement.query_row([], |row| {
                let correlation = CorrelationId::new(row.get::<_, Id>("correlation")?.0);
                Ok(Outgoing { event: events::read(row)?, correlation })
            });
            outgoing.optional()
        })
        .await
    }

    /// Writes down that everything up to this event was passed on, or given up.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn passed_on(&self, number: u64) -> Result<(), StoreError> {
        let written = self.write("write down what was forwarded", Shape::Single, move |tx| {
            let number = i64::try_from(number).unwrap_or(i64::MAX);
            tx.prepare_cached("UPDATE webhook SET passed = max(passed, ?1)")?.execute([number])?;
            Ok::<_, Failed<std::convert::Infallible>>(())
        });
        written.await.map_err(StoreError::from)
    }

    /// Passes over all that happened before a webhook was there to hear of it.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn pass_over_all(&self) -> Result<(), StoreError> {
        let written = self.write("pass over old events", Shape::Single, |tx| {
            let sql = "UPDATE webhook SET passed = (SELECT coalesce(max(number), 0) FROM events)";
            tx.prepare_cached(sql)?.execute([])?;
            Ok::<_, Failed<std::convert::Infallible>>(())
        });
        written.await.map_err(StoreError::from)
    }
}
