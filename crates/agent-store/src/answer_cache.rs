//! Answers of the file, cached while nothing is written.
//!
//! The file has one connection, and SQLite counts the rows that it changed. While the count stands still, an answer
//! still holds, and the store's thread is not woken. Answers that depend on the time carry it in their key, as coarsely
//! as they may be old.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use rusqlite::Connection;

use super::{Store, StoreError};

/// An answer that depends on the time is at most this old.
const TIME_STEP_S: i64 = 60;

/// How many rows were changed since the file was opened, noted after each piece of work on it.
#[derive(Default)]
pub(super) struct ChangedRows(AtomicU64);

impl ChangedRows {
    /// Called by the store's thread, before the answer to the work is sent.
    pub(super) fn note(&self, connection: &Connection) {
        self.0.store(connection.total_changes(), Ordering::Release);
    }

    fn count(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}

struct Entry<K, T> {
    changed_rows: u64,
    key: K,
    value: T,
}

/// The last answer to one question.
pub(super) struct CachedAnswer<K, T>(Mutex<Option<Entry<K, T>>>);

impl<K, T> Default for CachedAnswer<K, T> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

impl<K: PartialEq, T: Clone> CachedAnswer<K, T> {
    fn get(&self, changed_rows: u64, key: &K) -> Option<T> {
        // A poisoned lock still guards a valid answer.
        let entry = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = entry.as_ref()?;
        (entry.changed_rows == changed_rows && entry.key == *key).then(|| entry.value.clone())
    }

    fn put(&self, entry: Entry<K, T>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(entry);
    }
}

/// The time, as coarsely as an answer may be old.
pub(super) fn time_step(now: Timestamp) -> i64 {
    now.as_second().div_euclid(TIME_STEP_S)
}

impl Store {
    /// The cached answer, or a new one.
    pub(super) async fn read_cached<K, T, F>(
        &self,
        cached: &CachedAnswer<K, T>,
        key: K,
        work: F,
    ) -> Result<T, StoreError>
    where
        K: PartialEq,
        T: Clone + Send + 'static,
        F: FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    {
        if let Some(value) = cached.get(self.changed_rows.count(), &key) {
            return Ok(value);
        }
        let (changed_rows, value) = self
            .read(move |connection| {
                let changed_rows = connection.total_changes();
                Ok((changed_rows, work(connection)?))
            })
            .await?;
        cached.put(Entry { changed_rows, key, value: value.clone() });
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{open, uid};
    use holdfast_protocol::generation::Generation;

    /// A second connection does what nothing does in service, so that an answer from memory differs from the file's.
    #[tokio::test]
    async fn the_file_is_read_again_after_a_write_or_a_minute() {
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path()).await;
        let at = |second: i64| Timestamp::from_second(1_800_000_000 + second).unwrap();
        let raw = Connection::open(folder.path().join("agent.db")).unwrap();
        let mut vmids = Vec::new();
        for (row, second) in [(500, 0), (501, 1), (502, 60), (503, 61)] {
            raw.execute("INSERT INTO used_vmid (vmid, uid) VALUES (?1, ?2)", (row, uid(1).to_string()))
                .unwrap();
            if row == 503 {
                store.note_time(at(61)).await.unwrap();
            }
            vmids.push(store.records(Generation::NONE, at(second)).await.unwrap().used_vmids.len());
        }
        assert_eq!(vmids, [1, 1, 3, 4]);
    }

    #[test]
    fn an_answer_holds_for_its_key_until_a_row_changes() {
        let cached = CachedAnswer::default();
        assert_eq!(cached.get(0, &"key"), None);
        cached.put(Entry { changed_rows: 7, key: "key", value: 1 });
        assert_eq!(cached.get(7, &"key"), Some(1));
        assert_eq!((cached.get(8, &"key"), cached.get(7, &"other")), (None, None));
    }

    #[test]
    fn a_step_of_time_is_a_minute_and_holds_before_1970() {
        let step = |second| time_step(Timestamp::from_second(second).unwrap());
        assert_eq!([step(-1), step(0), step(59), step(60)], [-1, 0, 0, 1]);
    }
}
