//! Restore certificates, issued once for each proved test.
//!
//! They are sent until the hub has them, and once a day after that. A guest has one row, with the certificate of its
//! newest proved test. A row is replaced by a later test alone, so a restart between signing and sending sends the same
//! bytes again.

use std::collections::BTreeSet;

use agent_core::model::tested_guest::TestedGuest;
use holdfast_protocol::id::{GuestUid, OperationId};
use holdfast_protocol::restore_certificate::SignedCertificate;
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};

use super::columns::{from_json, json, micros, parsed};
use super::{Part, Store, StoreError, audit, backup, guest, restore_test};

/// The time after a delivery from which on it is repeated, in microseconds: a day.
const REPEAT_AFTER_US: i64 = 24 * 3_600 * 1_000_000;

/// Certificates that are repeated in one go, at most: half of what the hub takes of a host within a minute.
pub const REPEATS_MAX: i64 = 30;

/// A certificate, and which test it is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateRecord {
    pub guest: GuestUid,
    /// The operation of the restore test.
    pub test: OperationId,
    pub signed: SignedCertificate,
}

/// The operation of the last test that a guest has a certificate of, and when that ended.
fn issued(connection: &Connection, guest: GuestUid) -> Result<Option<(String, i64)>, StoreError> {
    connection
        .prepare_cached("SELECT test, tested_at FROM restore_certificate WHERE guest = ?1")
        .and_then(|mut select| {
            select.query_row([guest.to_string()], |row| Ok((row.get(0)?, row.get(1)?))).optional()
        })
        .map_err(StoreError::sqlite("read the last certificate"))
}

fn due(connection: &Connection, now: Timestamp) -> Result<Vec<TestedGuest>, StoreError> {
    let mut due = Vec::new();
    for (test, checks) in restore_test::newest_proved(connection, now)? {
        let is_new = issued(connection, test.guest)?
            .is_none_or(|(last, at)| last != test.operation.to_string() && at < micros(test.at));
        if !is_new {
            continue;
        }
        let guest = guest::find(connection, test.guest)?;
        // A backup that was pruned meanwhile is not there to be restored.
        let backup = backup::of(connection, test.backup)?.filter(|backup| backup.missing_since.is_none());
        if let (Some(guest), Some(backup)) = (guest, backup) {
            due.push(TestedGuest { guest, backup, test, checks });
        }
    }
    Ok(due)
}

fn records<const N: usize>(
    connection: &Connection,
    rest: &str,
    parameters: [i64; N],
) -> Result<Vec<CertificateRecord>, StoreError> {
    let rows: Vec<[String; 3]> = connection
        .prepare_cached(&format!("SELECT guest, test, signed FROM restore_certificate WHERE {rest}"))
        .and_then(|mut select| {
            let read = |row: &rusqlite::Row<'_>| Ok([row.get(0)?, row.get(1)?, row.get(2)?]);
            select.query_map(rusqlite::params_from_iter(parameters), read)?.collect()
        })
        .map_err(StoreError::sqlite("read restore certificates"))?;
    rows.into_iter()
        .map(|[guest, test, signed]| {
            Ok(CertificateRecord {
                guest: parsed("a guest's uid", &guest)?,
                test: parsed("an operation", &test)?,
                signed: from_json("a restore certificate", &signed)?,
            })
        })
        .collect()
}

impl Store {
    /// Guests with a newer proved test than that of their certificate.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn certificates_due(&self, now: Timestamp) -> Result<Vec<TestedGuest>, StoreError> {
        self.read(move |connection| due(connection, now)).await
    }

    /// Keeps a certificate, with its line in the audit. Nothing is changed where the guest has one of this test, or of a
    /// later one.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn keep_certificate(
        &self,
        record: CertificateRecord,
        tested_at: Timestamp,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        self.write(Part::Nothing, "keep a restore certificate", move |transaction| {
            let signed = json("a restore certificate", &record.signed)?;
            let changed = transaction
                .execute(
                    "INSERT INTO restore_certificate (guest, test, tested_at, issued_at, signed)
                     VALUES (?1, ?2, ?3, ?4, ?5)
                     ON CONFLICT (guest) DO UPDATE SET test = excluded.test, tested_at = excluded.tested_at,
                         issued_at = excluded.issued_at, signed = excluded.signed, delivered_at = NULL
                     WHERE test <> excluded.test AND tested_at < excluded.tested_at",
                    params![
                        record.guest.to_string(),
                        record.test.to_string(),
                        micros(tested_at),
                        micros(at),
                        signed
                    ],
                )
                .map_err(StoreError::sqlite("keep a restore certificate"))?;
            if changed == 0 {
                return Ok(());
            }
            let line = audit::Line {
                at,
                action: "restore_certificate_issued",
                guest: Some(record.guest),
                operation: Some(record.test),
                detail: "",
            };
            audit::append(transaction, &line)
        })
        .await
    }

    /// Certificates that the hub has not taken yet, the oldest first.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn undelivered_certificates(&self) -> Result<Vec<CertificateRecord>, StoreError> {
        self.read(|connection| records(connection, "delivered_at IS NULL ORDER BY issued_at, guest", []))
            .await
    }

    /// Certificates of guests of this host that the hub took more than a day ago, the oldest delivery first; at most
    /// [`REPEATS_MAX`]. A hub that was restored from an older backup does not have them.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn certificates_to_repeat(&self, now: Timestamp) -> Result<Vec<CertificateRecord>, StoreError> {
        self.read(move |connection| {
            // A delivery that is ahead was noted by a clock that was wrong.
            let rest = "delivered_at NOT BETWEEN ?1 AND ?2 AND guest IN (SELECT uid FROM guest)
                        ORDER BY delivered_at, guest LIMIT ?3";
            let day_ago = micros(now).saturating_sub(REPEAT_AFTER_US);
            records(connection, rest, [day_ago, micros(now), REPEATS_MAX])
        })
        .await
    }

    /// The hub has the certificates of these tests.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn certificates_delivered(
        &self,
        tests: BTreeSet<OperationId>,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        self.write(Part::Nothing, "note delivered certificates", move |transaction| {
            for test in tests {
                transaction
                    .prepare_cached("UPDATE restore_certificate SET delivered_at = ?2 WHERE test = ?1")
                    .and_then(|mut update| update.execute(params![test.to_string(), micros(at)]))
                    .map_err(StoreError::sqlite("note a delivered certificate"))?;
            }
            Ok(())
        })
        .await
    }
}

/// Inserts a guest of this number where there is none, and a backup of it that test `test` proved at a time.
///
/// # Errors
/// SQLite's.
#[cfg(any(test, feature = "testing"))]
pub fn insert_proved_for_tests(
    folder: &std::path::Path,
    (guest, test): (u8, u8),
    at: Timestamp,
) -> rusqlite::Result<()> {
    let connection = Connection::open(folder.join("agent.db"))?;
    let id = |number: u128| uuid::Uuid::from_u128(number).to_string();
    let (uid, test) = (id(u128::from(guest)), u128::from(test));
    let (archive, at) = (format!("backup2:backup/{test}.tar.zst"), micros(at));
    connection.execute(
        "INSERT OR IGNORE INTO guest (uid, name, customer, golden, place, vmid, made_by)
         VALUES (?1, 'web-' || ?2, 'acme', '2026.11.1', 'made', 300 + ?2, ?1)",
        params![uid, guest],
    )?;
    connection.execute(
        "INSERT INTO backup (volid, guest, vmid, storage, bytes, taken_at, operation, why)
         VALUES (?1, ?2, 300, 'backup2', 7000, ?3, ?4, 'schedule')",
        params![archive, uid, at, id(1_000 + test)],
    )?;
    connection.execute(
        "INSERT INTO restore_test (operation, guest, archive, backup, verdict, why, taken_at, began_at, at, bytes,
             restore_s, up_s, checks)
         VALUES (?1, ?2, ?3, ?4, 'proved', 'as the story wants it', ?5, ?5, ?5, 7000, 180, 42,
             '[{\"check\":\"restored\"}]')",
        params![id(2_000 + test), uid, archive, id(1_000 + test), at],
    )?;
    Ok(())
}

#[cfg(test)]
mod tests;
