//! Stored answers to repeated requests of guests.
//!
//! Both calls are part of a larger transaction: an answer is kept if and only if the change that it reports was
//! written.

use holdfast_protocol::id::{GuestUid, IdempotencyKey};
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Transaction};

use super::StoreError;
use super::columns::micros;
use agent_core::model::limits;

/// An answer that was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptAnswer {
    pub status: u16,
    pub body: String,
}

/// The state of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KnownKey {
    /// It is new: go on.
    New,
    /// This request was answered before: give that answer again.
    Answered(KeptAnswer),
    /// It was used with another request.
    Mismatch,
}

/// Looks a key up.
pub(super) fn known(
    connection: &Connection,
    guest: GuestUid,
    key: &IdempotencyKey,
    request_sha256: &[u8; 32],
) -> Result<KnownKey, StoreError> {
    let row: Option<(Vec<u8>, u16, String)> = connection
        .query_row(
            "SELECT body, status, answer FROM idempotency WHERE guest = ?1 AND key = ?2",
            (guest.to_string(), key.as_str()),
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
        )
        .optional()
        .map_err(StoreError::sqlite("look up a request"))?;
    Ok(match row {
        None => KnownKey::New,
        Some((request, ..)) if request != request_sha256 => KnownKey::Mismatch,
        Some((_, status, body)) => KnownKey::Answered(KeptAnswer { status, body }),
    })
}

/// Keeps an answer, in the transaction that made it true. The first one stays.
pub(super) fn keep(
    transaction: &Transaction<'_>,
    guest: GuestUid,
    key: &IdempotencyKey,
    request_sha256: &[u8; 32],
    answer: &KeptAnswer,
    now: Timestamp,
) -> Result<(), StoreError> {
    let failed = || StoreError::sqlite("keep an answer");
    let guest = guest.to_string();
    transaction
        .execute(
            "INSERT OR IGNORE INTO idempotency (guest, key, body, status, answer, at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            (&guest, key.as_str(), request_sha256, answer.status, &answer.body, micros(now)),
        )
        .map_err(failed())?;
    transaction
        .execute(
            "DELETE FROM idempotency WHERE guest = ?1 AND key NOT IN
             (SELECT key FROM idempotency WHERE guest = ?1 ORDER BY at DESC, key LIMIT ?2)",
            (&guest, limits::IDEMPOTENCY_KEYS_PER_GUEST),
        )
        .map_err(failed())?;
    Ok(())
}
