//! The queue of events for the webhook.

use async_trait::async_trait;
use holdfast_protocol::id::CorrelationId;

use super::columns::Id;
use super::sql::OptionalExtension as _;
use super::{Failed, Postgres, events};
use crate::store::{Outgoing, StoreError, Term, WebhookQueue, duty::Webhook};

#[async_trait]
impl WebhookQueue for Postgres {
    async fn next_outgoing(&self) -> Result<Option<Outgoing>, StoreError> {
        self.read("look for an event to forward", |connection| {
            let sql = "SELECT number, at, kind, host, actor, message, correlation FROM events
                       WHERE number > (SELECT passed FROM webhook) ORDER BY number LIMIT 1";
            let statement = connection.prepare_cached(sql)?;
            let outgoing = statement.query_row([], |row| {
                let correlation = CorrelationId::new(row.get::<_, Id>("correlation")?.0);
                Ok(Outgoing { event: events::read(row)?, correlation })
            });
            outgoing.optional()
        })
        .await
    }

    async fn passed_on(&self, term: &Term<Webhook>, number: u64) -> Result<(), StoreError> {
        let action = "write down what was forwarded";
        let written = self.write_fenced(term.fence(), action, move |tx| {
            let number = i64::try_from(number).unwrap_or(i64::MAX);
            tx.prepare_cached("UPDATE webhook SET passed = greatest(passed, $1)")?.execute([number])?;
            Ok::<_, Failed<std::convert::Infallible>>(())
        });
        written.await.map_err(StoreError::from)
    }

    async fn pass_over_all(&self, term: &Term<Webhook>) -> Result<(), StoreError> {
        let written = self.write_fenced(term.fence(), "pass over old events", |tx| {
            let sql = "UPDATE webhook SET passed = (SELECT coalesce(max(number), 0) FROM events)";
            tx.prepare_cached(sql)?.execute([])?;
            Ok::<_, Failed<std::convert::Infallible>>(())
        });
        written.await.map_err(StoreError::from)
    }
}
