//! Growth of guests: the daily ledger and signed permits.
//!
//! Input: an operation that is opened with the growth of its guest, and signed jobs whose delay is over. Output: the
//! growth that counts, and the signed growth that is not used up. A row of the ledger is written in the transaction
//! that opens the operation. So it exists before any effect, and only once. A guest whose creation was undone
//! completely does not count. A disk that failed to grow may have grown, so it counts; a signed job lets it be tried
//! again, to the same size. Rows carry the time that schedules use, and expire by it. Deliberately absent: limits,
//! which rows still count, and whether there is enough space.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_protocol::id::JobId;
use holdfast_protocol::job::act::args::AllowGrowth;
use holdfast_protocol::job::{Act, JobState};
use holdfast_trust::Accepted;
use jiff::{SignedDuration, Timestamp};
use rusqlite::{Connection, Row, Transaction};

use super::columns::{from_json, json, micros, parsed, time};
use super::job_end::{Swapped, TakeError, end};
use super::journal_read::NewOperation;
use super::{Part, Store, StoreError, audit, guest, roster};
use agent_core::gate::job_validation::TurnedAway;
use agent_core::model::growth::{self, Amount, Grown, Growth, Growths, Passed, Permit, UnderWay};
use agent_core::model::records::Place;

/// Rows are kept for longer than they count and than any job lives, so that a signature is never used twice.
const KEPT: SignedDuration = SignedDuration::from_hours(48);

/// Checks the guest of a job against our records: the signers read its name.
pub(super) fn names(connection: &Connection, allow: &AllowGrowth) -> Result<(), TakeError> {
    let changed = |why: String| Err(TurnedAway::Target(why).into());
    let found = guest::find(connection, allow.guest)?;
    match (found, &allow.from) {
        (Some(record), _) if record.name != allow.name => {
            changed(format!("guest {} is {}, not {}", allow.guest, record.name, allow.name))
        }
        (Some(record), None) if record.place != Place::Nowhere => {
            changed(format!("guest {} is there already, and the job lets it be made", allow.name))
        }
        (None, Some(_)) => changed(format!("no guest {} of ours is here", allow.guest)),
        (Some(_) | None, _) => Ok(()),
    }
}

fn put(transaction: &Transaction<'_>, job: &Accepted, at: Timestamp) -> Result<(), TakeError> {
    let payload = job.payload();
    let Act::AllowGrowth(allow) = &payload.act else {
        return Err(TurnedAway::Unsupported(payload.act.verb()).into());
    };
    names(transaction, allow)?;
    let failed = StoreError::sqlite("note what may grow");
    let before = micros(at.checked_sub(KEPT).unwrap_or(Timestamp::MIN));
    transaction.execute("DELETE FROM growth_permit WHERE expires_at < ?1", [before]).map_err(failed)?;
    if end(transaction, payload.job_id, (JobState::Waiting, JobState::Done), None, at)? == Swapped::No {
        return Ok(());
    }
    let seen = allow.from.as_ref().map(|from| json("how large a guest is", from)).transpose()?;
    transaction
        .execute(
            "INSERT OR IGNORE INTO growth_permit (job, guest, name, seen, requested, expires_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            (
                payload.job_id.to_string(),
                allow.guest.to_string(),
                allow.name.as_str(),
                seen,
                json("how large a guest may become", &allow.to)?,
                micros(payload.expires_at.at()),
            ),
        )
        .map_err(StoreError::sqlite("note what may grow"))?;
    Ok(())
}

/// Counts the growth of an operation's guest, in the transaction that opens it.
pub(super) fn count(
    transaction: &Transaction<'_>,
    new: &NewOperation,
    growth: &Growth,
) -> Result<(), StoreError> {
    forget(transaction, growth.at)?;
    let (passed, job) = match growth.passed {
        Passed::Budget => ("budget", None),
        Passed::Signed(job) => ("signed", Some(job)),
        Passed::Recovery => ("recovery", None),
    };
    let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let (guest, amount) = (new.operation.uid(), &growth.amount);
    transaction
        .execute(
            "INSERT INTO growth (operation, guest, at, part, cores, memory_mib, swap_mib, disk_gib, guests, volumes, passed, job)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
            rusqlite::params![
                new.id.to_string(),
                guest.to_string(),
                micros(growth.at),
                growth.part.to_string(),
                number(amount.cores),
                number(amount.memory_mib),
                number(amount.swap_mib),
                number(amount.disk_gib),
                number(amount.guests),
                number(amount.volumes),
                passed,
                job.map(|job| job.to_string()),
            ],
        )
        .map_err(StoreError::sqlite("count what a guest grows by"))?;
    let Some(job) = job else { return Ok(()) };
    let detail = format!("{} was let grow by job {job}, which is used up for it", growth.part);
    audit::append(
        transaction,
        &audit::Line {
            at: new.at,
            action: "growth_allowed",
            guest: Some(guest),
            operation: Some(new.id),
            detail: &detail,
        },
    )
}

/// Rows that no longer count: expired ones, and guests whose creation was undone completely.
fn forget(transaction: &Transaction<'_>, at: Timestamp) -> Result<(), StoreError> {
    let before = micros(at.checked_sub(KEPT).unwrap_or(Timestamp::MIN));
    transaction
        .execute(
            "DELETE FROM growth WHERE at < ?1
             OR operation IN (SELECT id FROM growth JOIN operation ON id = growth.operation
                 WHERE part = 'guest' AND outcome = 'undone')",
            [before],
        )
        .map_err(StoreError::sqlite("forget what guests grew by"))?;
    Ok(())
}

/// A row as it is read.
struct Counted {
    guest: String,
    at: i64,
    part: String,
    amounts: [i64; 6],
    passed: String,
    job: Option<String>,
    ended: bool,
    undone: bool,
}

impl Counted {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let amounts = [row.get(3)?, row.get(4)?, row.get(5)?, row.get(6)?, row.get(7)?, row.get(8)?];
        let (guest, at, part) = (row.get(0)?, row.get(1)?, row.get(2)?);
        Ok(Self {
            guest,
            at,
            part,
            amounts,
            passed: row.get(9)?,
            job: row.get(10)?,
            ended: row.get(11)?,
            undone: row.get(12)?,
        })
    }

    fn grown(&self) -> Result<Grown, StoreError> {
        let [cores, memory_mib, swap_mib, disk_gib, guests, volumes] =
            self.amounts.map(|amount| u64::try_from(amount).unwrap_or_default());
        let passed = match (self.passed.as_str(), &self.job) {
            (_, Some(job)) => Passed::Signed(parsed("a job", job)?),
            ("recovery", None) => Passed::Recovery,
            // Whatever it is, it counts.
            (_, None) => Passed::Budget,
        };
        Ok(Grown {
            guest: parsed("a guest", &self.guest)?,
            at: time(self.at)?,
            amount: Amount { cores, memory_mib, swap_mib, disk_gib, guests, volumes },
            passed,
            under_way: if self.ended { UnderWay::No } else { UnderWay::Yes },
        })
    }
}

/// The growth that counts, and the signed growth.
pub(super) fn all(connection: &Connection, now: Timestamp) -> Result<Growths, StoreError> {
    let failed = || StoreError::sqlite("read what guests grew by");
    let rows: Vec<Counted> = connection
        .prepare_cached(
            "SELECT growth.guest, at, part, cores, memory_mib, swap_mib, disk_gib, guests, volumes, passed, growth.job,
                 ended_at IS NOT NULL, coalesce(outcome, '') = 'undone'
             FROM growth LEFT JOIN operation ON id = growth.operation
             WHERE NOT (part = 'guest' AND coalesce(outcome, '') = 'undone') ORDER BY at, growth.operation",
        )
        .and_then(|mut select| select.query_map([], Counted::read)?.collect())
        .map_err(failed())?;
    let mut used: BTreeMap<JobId, BTreeSet<growth::Part>> = BTreeMap::new();
    for row in rows.iter().filter(|row| !row.undone) {
        if let Some(job) = &row.job {
            used.entry(parsed("a job", job)?).or_default().insert(parsed("a part", &row.part)?);
        }
    }
    let ledger = rows.iter().map(Counted::grown).collect::<Result<Vec<_>, _>>()?;
    type Read = (String, String, String, Option<String>, String);
    let permits: Vec<Read> = connection
        .prepare_cached("SELECT job, guest, name, seen, requested FROM growth_permit WHERE expires_at > ?1 ORDER BY expires_at, job")
        .and_then(|mut select| {
            let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?));
            select.query_map([micros(now)], read)?.collect()
        })
        .map_err(failed())?;
    let permits = permits.into_iter().map(|(job, guest, name, seen, intended)| {
        let job: JobId = parsed("a job", &job)?;
        Ok(Permit {
            job,
            guest: parsed("a guest", &guest)?,
            name: parsed("a guest's name", &name)?,
            from: seen.map(|seen| from_json("how large a guest is", &seen)).transpose()?,
            to: from_json("how large a guest may become", &intended)?,
            used: used.remove(&job).unwrap_or_default(),
        })
    });
    let permits = permits.collect::<Result<_, StoreError>>()?;
    Ok(Growths { limits: roster::growth_limits(connection)?, ledger, permits })
}

impl Store {
    /// The recent growth of guests, and the growth allowed by jobs that are in force at a time.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn growth(&self, now: Timestamp) -> Result<Growths, StoreError> {
        self.read(move |connection| all(connection, now)).await
    }

    /// Lets a guest grow as a signed job says, and ends the job.
    ///
    /// # Errors
    /// [`TakeError`]; nothing may grow then.
    pub async fn allow_growth(&self, job: Accepted, at: Timestamp) -> Result<(), TakeError> {
        self.write(Part::Jobs, "let a guest grow", move |transaction| put(transaction, &job, at)).await
    }
}

#[cfg(test)]
mod tests;
