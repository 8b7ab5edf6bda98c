//! Audit lines of ways into the host that were opened and closed.
//!
//! In: what root's program wrote of its orders. Out: one line for each opening and each end, once, however often it is
//! read. Deliberately absent: a table of its own; the audit itself says what it has.

use agent_core::plan::break_glass::WayLine;
use holdfast_protocol::id::JobId;
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Transaction};

use super::job_end::note;
use super::{Part, Store, StoreError};

fn has(connection: &Connection, action: &str, job: JobId) -> Result<bool, StoreError> {
    connection
        .prepare_cached("SELECT 1 FROM audit WHERE action = ?1 AND operation = ?2 LIMIT 1")
        .and_then(|mut select| select.query_row((action, job.to_string()), |_| Ok(())).optional())
        .map(|found| found.is_some())
        .map_err(StoreError::sqlite("read the audit"))
}

fn write(transaction: &Transaction<'_>, lines: &[WayLine], at: Timestamp) -> Result<(), StoreError> {
    for line in lines {
        let action = line.change.as_str();
        if !has(transaction, action, line.job)? {
            note(transaction, at, action, (None, line.job), &line.detail)?;
        }
    }
    Ok(())
}

impl Store {
    /// Writes these lines to the audit, without those that it has.
    ///
    /// # Errors
    /// [`StoreError`]; none of them was written.
    pub async fn note_ways(&self, lines: Vec<WayLine>, at: Timestamp) -> Result<(), StoreError> {
        self.write(Part::Jobs, "write the audit", move |transaction| write(transaction, &lines, at)).await
    }
}

#[cfg(test)]
mod tests {
    use agent_core::plan::break_glass::WayChange;
    use uuid::Uuid;

    use super::*;

    #[tokio::test]
    async fn each_change_is_written_once() {
        let (folder, at) = (tempfile::tempdir().unwrap(), Timestamp::UNIX_EPOCH);
        let store = Store::open(folder.path(), at).unwrap();
        let line = |n: u128, change| WayLine {
            job: JobId::new(Uuid::from_u128(n)),
            change,
            detail: "way".to_owned(),
        };
        let mut lines = vec![line(1, WayChange::Opened)];
        store.note_ways(lines.clone(), at).await.unwrap();
        lines.extend([line(1, WayChange::Closed), line(2, WayChange::Opened)]);
        for _ in 0..2 {
            store.note_ways(lines.clone(), at).await.unwrap();
        }
        let audit = store.audit(20).await.unwrap();
        let actions: Vec<&str> = audit
            .iter()
            .map(|line| line.action.as_str())
            .filter(|action| action.starts_with("break_glass"))
            .collect();
        assert_eq!(actions, ["break_glass_opened", "break_glass_closed", "break_glass_opened"]);
        store.verify_audit().await.unwrap();
    }
}
