//! The record that another host replaced this one.

use holdfast_trust::Accepted;
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension};

use super::{Part, Store, StoreError, audit};

/// By whom it was ordered, as it was written down; nothing, where it was not.
pub(super) fn found(connection: &Connection) -> rusqlite::Result<Option<String>> {
    connection.query_row("SELECT value FROM meta WHERE key = 'replaced'", [], |row| row.get(0)).optional()
}

impl Store {
    /// Stops all work from now on, in this run and in every later one.
    ///
    /// # Errors
    /// [`StoreError`]; nothing changed then.
    pub async fn stand_still(&self, order: Accepted, at: Timestamp) -> Result<(), StoreError> {
        let names: Vec<&str> = order.signers().iter().map(|name| name.as_str()).collect();
        let (by, why) = (names.join(", "), order.payload().reason.as_str());
        let words = format!("{by} at {}", order.payload().not_before);
        let detail = format!("another box took this one's place, ordered by {by}: {why}");
        let kept = words.clone();
        self.write(Part::Jobs, "write down that this box was replaced", move |transaction| {
            transaction
                .execute("INSERT OR REPLACE INTO meta (key, value) VALUES ('replaced', ?1)", [&kept])
                .map_err(StoreError::sqlite("write down that this box was replaced"))?;
            let line = audit::Line { at, action: "replaced", guest: None, operation: None, detail: &detail };
            audit::append(transaction, &line)
        })
        .await?;
        self.health.stand_still(words);
        self.report(Part::Health);
        Ok(())
    }
}
