//! Audit lines about guests that the hub does not have yet.

use holdfast_protocol::guest_audit::{DETAIL_BYTES_MAX, RECORDS_PER_PUT};
use holdfast_protocol::local::audit::AuditRecord;
use rusqlite::{Connection, OptionalExtension, params};

use super::own_audit::{BEFORE, record};
use super::{Store, StoreError, audit};

/// Lines that are behind the newest by more than this are not sent: the hub keeps the tail alone.
const BACKLOG_MAX: u32 = 2_000;

/// The next records for the hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditTail {
    /// Oldest first, at most [`RECORDS_PER_PUT`].
    pub records: Vec<AuditRecord>,
    /// No line up to this number is missing, but for those that are not sent at all.
    pub through: u64,
}

fn tail(connection: &Connection, after: u64) -> Result<AuditTail, StoreError> {
    let failed = || StoreError::sqlite("read records about guests");
    let unreadable = || StoreError::unreadable("the number of an audit line");
    let (head, _) = audit::head(connection)?;
    // The hub was ahead: these records were set back to an older copy, or begun anew. Their tail is sent again.
    let after = if after > head { 0 } else { i64::try_from(after).map_err(unreadable())? };
    let too_old: Option<i64> = connection
        .prepare_cached(
            "SELECT number FROM audit WHERE guest IS NOT NULL AND number > ?1
             ORDER BY number DESC LIMIT 1 OFFSET ?2",
        )
        .and_then(|mut select| select.query_row([after, BACKLOG_MAX.into()], |row| row.get(0)).optional())
        .map_err(failed())?;
    let sql = format!(
        "SELECT number, at, action, guest, operation, detail, chain, {BEFORE} FROM audit AS line
         WHERE guest IS NOT NULL AND number > ?1 AND length(CAST(detail AS BLOB)) <= ?2 ORDER BY number LIMIT ?3"
    );
    let max = |bound: usize| i64::try_from(bound).unwrap_or(i64::MAX);
    let bounds = params![too_old.unwrap_or(after), max(DETAIL_BYTES_MAX), max(RECORDS_PER_PUT)];
    let records: Vec<AuditRecord> = connection
        .prepare_cached(&sql)
        .and_then(|mut select| select.query_map(bounds, record)?.collect())
        .map_err(failed())?;
    let last = records.last().filter(|_| records.len() == RECORDS_PER_PUT).map(|last| last.line.number);
    let through = last.map(u64::try_from).transpose().map_err(unreadable())?.unwrap_or(head);
    Ok(AuditTail { records, through })
}

impl Store {
    /// The records about guests behind a line that the hub has; of a long backlog the newest.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn guest_audit_tail(&self, after: u64) -> Result<AuditTail, StoreError> {
        self.read(move |connection| tail(connection, after)).await
    }
}

#[cfg(any(test, feature = "testing"))]
impl Store {
    /// Writes lines, of guests by their number or of the host.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn write_lines_for_tests(&self, lines: Vec<(Option<u128>, String)>) -> Result<(), StoreError> {
        self.write(super::Part::Operations, "write lines", move |transaction| {
            for (guest, detail) in &lines {
                let guest =
                    guest.map(|guest| holdfast_protocol::id::GuestUid::new(uuid::Uuid::from_u128(guest)));
                let at = jiff::Timestamp::UNIX_EPOCH;
                audit::append(
                    transaction,
                    &audit::Line { at, action: "noted", guest, operation: None, detail },
                )?;
            }
            Ok(())
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    async fn store_with(details: Vec<(Option<u128>, String)>) -> (tempfile::TempDir, Store) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), Timestamp::UNIX_EPOCH).unwrap();
        store.write_lines_for_tests(details).await.unwrap();
        (folder, store)
    }

    fn numbers(tail: &AuditTail) -> Vec<i64> {
        tail.records.iter().map(|record| record.line.number).collect()
    }

    #[tokio::test]
    async fn lines_of_the_host_and_long_ones_stay_and_each_that_goes_holds() {
        let line = |guest, detail: &str| (guest, detail.to_owned());
        let long = "x".repeat(DETAIL_BYTES_MAX + 1);
        let lines = vec![
            line(Some(1), "a"),
            line(None, "of the host"),
            line(Some(2), "b"),
            line(Some(1), &long),
            line(None, ""),
        ];
        let (_folder, store) = store_with(lines).await;
        let all = store.guest_audit_tail(0).await.unwrap();
        assert_eq!((numbers(&all), all.through), (vec![1, 3], 5));
        assert!(all.records.iter().all(AuditRecord::holds));
        let rest = store.guest_audit_tail(1).await.unwrap();
        assert_eq!((numbers(&rest), rest.through), (vec![3], 5));
        assert_eq!(store.guest_audit_tail(5).await.unwrap().records, []);
        assert_eq!(store.guest_audit_tail(6).await.unwrap(), all, "the hub knows another, longer history");
    }

    #[tokio::test]
    async fn a_backlog_is_cut_to_its_newest_lines_and_goes_in_parts() {
        let count = BACKLOG_MAX + 250;
        let (_folder, store) = store_with((0..count).map(|n| (Some(1), n.to_string())).collect()).await;
        let (mut after, mut sent) = (0, 0_usize);
        loop {
            let tail = store.guest_audit_tail(after).await.unwrap();
            if tail.records.is_empty() {
                break;
            }
            if sent == 0 {
                assert_eq!(tail.records[0].line.number, 251, "older ones are not sent");
            }
            assert_eq!(usize::try_from(tail.through).unwrap(), 250 + sent + tail.records.len());
            sent += tail.records.len();
            after = tail.through;
        }
        assert_eq!((sent, after), (BACKLOG_MAX as usize, count.into()));
    }
}
