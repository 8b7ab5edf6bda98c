//! Approved releases: exact bytes by kind and version.
//!
//! Input: a signed job whose delay is over. Output: its row, in the transaction that ends the job, with the line of the
//! audit; from then on the plan finds it among the records. An approval is never widened and never withdrawn. To stop
//! using a release, it is removed from the settings, and its bytes from the host.

use holdfast_protocol::id::{GoldenVersion, GuestUid};
use holdfast_protocol::job::act::ReleaseKind;
use holdfast_protocol::job::{Act, JobState};
use holdfast_trust::Accepted;
use jiff::Timestamp;
use rusqlite::{Connection, Transaction};

use super::columns::{from_json, micros, word};
use super::job_end::{Swapped, TakeError, end};
use super::{Part, Store, StoreError, audit, controller, guest};
use agent_core::gate::job_validation::TurnedAway;
use agent_core::model::policy::Sha256Hex;
use agent_core::model::records::ReleaseRecord;

pub(super) fn all(connection: &Connection) -> Result<Vec<ReleaseRecord>, StoreError> {
    let rows: Vec<(String, String, String)> = connection
        .prepare_cached("SELECT kind, version, sha256 FROM release ORDER BY kind, version, sha256")
        .and_then(|mut select| {
            select.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?.collect()
        })
        .map_err(StoreError::sqlite("read what was approved"))?;
    rows.into_iter()
        .map(|(kind, version, sha256)| {
            Ok(ReleaseRecord {
                kind: from_json("a kind of code", &format!("\"{kind}\""))?,
                version: version.try_into().map_err(StoreError::unreadable("a version"))?,
                sha256: sha256.try_into().map_err(StoreError::unreadable("a digest"))?,
            })
        })
        .collect()
}

fn approve(transaction: &Transaction<'_>, job: &Accepted, at: Timestamp) -> Result<(), TakeError> {
    let payload = job.payload();
    let Act::ApproveRelease(release) = &payload.act else {
        return Err(TurnedAway::Unsupported(payload.act.verb()).into());
    };
    let (waits, done) = (JobState::Waiting, JobState::Done);
    if end(transaction, payload.job_id, (waits, done), None, at)? == Swapped::No {
        return Ok(());
    }
    let sha256 = Sha256Hex::try_from(release.sha256.as_str().to_owned());
    let record = ReleaseRecord {
        kind: release.kind,
        version: release.version.clone(),
        sha256: sha256.map_err(StoreError::unreadable("a digest"))?,
    };
    let by = format!("job {}", payload.job_id);
    put(transaction, &record, &by, at)?;
    controller::forgiven(transaction, &record.sha256)?;
    Ok(())
}

/// A controller that came up in a guest just made from an approved golden is part of that golden: no one else was in
/// the guest before it. The operator who approved the image approved its contents.
pub(super) fn came_with(
    transaction: &Transaction<'_>,
    uid: GuestUid,
    (golden, image): (&GoldenVersion, &Sha256Hex),
    at: Timestamp,
) -> Result<(), StoreError> {
    let hello = guest::find(transaction, uid)?.and_then(|record| record.hello);
    let Some((sha256, version)) = hello.and_then(|hello| Some((hello.build?, hello.version))) else {
        return Ok(());
    };
    // A version that no job could carry is approved under none.
    let Ok(version) = version.try_into() else { return Ok(()) };
    let record = ReleaseRecord { kind: ReleaseKind::Controller, version, sha256 };
    let image = image.as_str();
    put(transaction, &record, &format!("golden {golden}, sha256 {image}, in which it came"), at)
}

/// Notes an approval, with the line of the audit that says by whom. An existing one stays as it is.
pub(super) fn put(
    transaction: &Transaction<'_>,
    release: &ReleaseRecord,
    by: &str,
    at: Timestamp,
) -> Result<(), StoreError> {
    let kind = word("a kind of code", &release.kind)?;
    let (version, sha256) = (release.version.as_str(), release.sha256.as_str());
    let new = transaction
        .execute(
            "INSERT OR IGNORE INTO release (kind, version, sha256, by, at) VALUES (?1, ?2, ?3, ?4, ?5)",
            (&kind, version, sha256, by, micros(at)),
        )
        .map_err(StoreError::sqlite("note an approval"))?;
    if new == 0 {
        return Ok(());
    }
    let detail = format!("{kind} {version}, sha256 {sha256}, by {by}");
    let line = audit::Line { at, action: "release_approved", guest: None, operation: None, detail: &detail };
    audit::append(transaction, &line)
}

fn is_approved(connection: &Connection, release: &ReleaseRecord) -> Result<bool, StoreError> {
    let kind = word("a kind of code", &release.kind)?;
    connection
        .prepare_cached("SELECT count(*) FROM release WHERE kind = ?1 AND version = ?2 AND sha256 = ?3")
        .and_then(|mut select| {
            let named = (&kind, release.version.as_str(), release.sha256.as_str());
            select.query_row(named, |row| Ok(row.get::<_, i64>(0)? > 0))
        })
        .map_err(StoreError::sqlite("read what was approved"))
}

impl Store {
    /// Whether exactly these bytes were approved under this version.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn is_approved(&self, release: ReleaseRecord) -> Result<bool, StoreError> {
        self.read(move |connection| is_approved(connection, &release)).await
    }

    /// Approves exactly the bytes that a signed job names.
    ///
    /// # Errors
    /// [`TakeError`]; nothing is approved then.
    pub async fn approve_release(&self, job: Accepted, at: Timestamp) -> Result<(), TakeError> {
        self.write(Part::Jobs, "note an approval", move |transaction| approve(transaction, &job, at)).await
    }
}
