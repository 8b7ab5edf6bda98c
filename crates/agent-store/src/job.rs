//! The ledger of signed jobs.
//!
//! A job is one row. Taking it, cancelling it, and opening its operation are each one transaction with the line of the
//! audit; every change of state is a compare-and-swap, so that a job has at most one effect, even with repeats, kills
//! and parallel calls (I2). Its operation has the job's id. A refused text leaves a line in the audit and an entry in
//! memory for the report, and nothing else. Deliberately absent: signatures; a job that arrives here is already
//! verified.

use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::id::{CorrelationId, CustomerId, GuestName, GuestUid, JobId, Vmid};
use holdfast_protocol::job::{Act, JobState, Payload, SignedJob, Target};
use holdfast_protocol::json::chain;
use holdfast_trust::Accepted;
use jiff::{SignedDuration, Timestamp};
use rusqlite::{Connection, Transaction};

use super::columns::{json, micros, parsed, time};
pub use super::job_end::{NewJob, TakeError};
use super::job_end::{Swapped, end, note};
use super::journal::{self, NewOperation, OpenOperationError};
use super::protection::{self, Changed};
use super::roster::RosterTexts;
use super::{Part, Store, StoreError, brake_release, copies, growth, guest, roster, storage};
use agent_core::gate::job_validation::{self, TurnedAway};
use agent_core::model::records::{GuestRecord, Place};
use agent_core::operation::progress::OperationState;

/// More jobs than a host gets in years.
const LEDGER_MAX: u32 = 10_000;

/// A job that has ended is forgotten no sooner than this after its own end: until then its nonce is known.
const KEPT: SignedDuration = SignedDuration::from_hours(30 * 24);

/// What became of a checked job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobOutcome {
    /// It is on record from now on.
    New,
    /// It was before. Nothing was done.
    Known,
}

/// A job whose delay is over.
#[derive(Clone, Debug)]
pub struct DueJob {
    pub id: JobId,
    /// Its bytes and signatures, to be checked again.
    pub signed: SignedJob,
    /// When its delay ended.
    pub due_at: Timestamp,
    /// The id of the click that left it.
    pub correlation: Option<CorrelationId>,
}

/// What a job that waited became.
#[derive(Clone, Debug)]
pub enum Settled {
    /// It is done without an operation.
    Done,
    /// It had no effect.
    Failed(ErrorBody),
}

/// The digests of the jobs on record with this id or this nonce: two, when these are different jobs.
fn digests(connection: &Connection, id: &str, nonce: &str) -> Result<Vec<Vec<u8>>, StoreError> {
    connection
        .prepare_cached("SELECT digest FROM job WHERE id = ?1 OR nonce = ?2")
        .and_then(|mut select| select.query_map((id, nonce), |row| row.get(0))?.collect())
        .map_err(StoreError::sqlite("look for a job"))
}

fn count(
    connection: &Connection,
    sql: &'static str,
    params: impl rusqlite::Params,
) -> Result<u32, StoreError> {
    connection
        .prepare_cached(sql)
        .and_then(|mut select| select.query_row(params, |row| row.get(0)))
        .map_err(StoreError::sqlite("count the jobs"))
}

fn judge(transaction: &Transaction<'_>, new: &NewJob) -> Result<JobOutcome, TakeError> {
    let payload = new.job.payload();
    let verb = payload.act.verb();
    match digests(transaction, &payload.job_id.to_string(), payload.nonce.as_str())?.as_slice() {
        [] => {}
        // Id and nonce are part of the hash.
        [digest] if *digest == new.job.digest() => return Ok(JobOutcome::Known),
        _ => return Err(TurnedAway::Replayed.into()),
    }
    let day = new.at.checked_sub(SignedDuration::from_hours(24)).unwrap_or(Timestamp::MIN);
    let today = count(
        transaction,
        "SELECT count(*) FROM job WHERE verb = ?1 AND taken_at > ?2",
        (verb.as_str(), micros(day)),
    )?;
    let per_day = new.job.rule().per_day;
    if today >= per_day {
        return Err(TurnedAway::Often { verb, per_day }.into());
    }
    forget(transaction, new.at)?;
    if count(transaction, "SELECT count(*) FROM job", [])? >= LEDGER_MAX {
        return Err(TurnedAway::Full(LEDGER_MAX).into());
    }
    storage::as_signed(transaction, &payload.act)?;
    if let Act::ReleaseBrake(release) = &payload.act {
        brake_release::names(transaction, release)?;
    }
    if let Act::AllowGrowth(allow) = &payload.act {
        growth::names(transaction, allow)?;
    }
    if let Target::Guest { uid, .. } = &payload.target {
        let record = guest::find(transaction, *uid)?;
        guests(transaction, payload, record.as_ref())?;
        if let Act::LoosenPolicy(args) = &payload.act
            && protection::of(transaction, *uid)?.unwrap_or_default() != *args.from
        {
            return Err(TurnedAway::Promise.into());
        }
    }
    Ok(JobOutcome::New)
}

/// Holds the guests that a job names to our records.
fn guests(
    transaction: &Transaction<'_>,
    payload: &Payload,
    record: Option<&GuestRecord>,
) -> Result<(), TakeError> {
    if let Act::AdoptGuest(_) = &payload.act {
        return Ok(job_validation::stranger(&payload.target, record.map(|record| &record.place))?);
    }
    job_validation::same_guest(&payload.target, record.and_then(known))?;
    if let (Act::SwapGuest(swap), Some(record)) = (&payload.act, record) {
        let copies = copies::of(transaction, record.uid)?;
        return Ok(job_validation::whole_copy(swap.copy.vmid, &copies)?);
    }
    if let (Act::DiscardCopy(discard), Some(record)) = (&payload.act, record) {
        let copies = copies::of(transaction, record.uid)?;
        return Ok(job_validation::whole_copy(discard.copy.vmid, &copies)?);
    }
    let (Act::ReassignVolume(hand), Some(from)) = (&payload.act, record) else { return Ok(()) };
    let to = guest::find(transaction, hand.to.uid)?;
    job_validation::same_guest(&hand.to.target(), to.as_ref().and_then(known))?;
    if let Some(to) = &to {
        job_validation::pair((from.uid, &from.customer), (to.uid, &to.customer))?;
    }
    Ok(())
}

/// The name, customer and VMID of a guest that was made.
fn known(record: &GuestRecord) -> Option<(&GuestName, &CustomerId, Vmid)> {
    match &record.place {
        Place::Made { vmid, .. } => Some((&record.name, &record.customer, *vmid)),
        Place::Nowhere | Place::Making { .. } | Place::Gone { .. } => None,
    }
}

/// Old jobs that ended. One that could still be replayed is never among them.
fn forget(transaction: &Transaction<'_>, at: Timestamp) -> Result<(), StoreError> {
    let before = at.checked_sub(KEPT).unwrap_or(Timestamp::MIN);
    transaction
        .execute("DELETE FROM job WHERE ended_at IS NOT NULL AND expires_at < ?1", [micros(before)])
        .map_err(StoreError::sqlite("forget old jobs"))?;
    Ok(())
}

const fn target(job: &Accepted) -> Option<GuestUid> {
    match &job.payload().target {
        Target::Guest { uid, .. } => Some(*uid),
        Target::Host {} => None,
    }
}

fn insert(transaction: &Transaction<'_>, new: &NewJob, state: JobState) -> Result<(), StoreError> {
    let payload = new.job.payload();
    let due = job_validation::due(&new.job, new.at);
    transaction
        .execute(
            "INSERT INTO job (id, nonce, digest, blob, verb, guest, signers, taken_at, due_at, expires_at, state, ended_at,
                              correlation)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
            rusqlite::params![
                payload.job_id.to_string(),
                payload.nonce.as_str(),
                new.job.digest().as_slice(),
                new.blob,
                payload.act.verb().as_str(),
                target(&new.job).map(|uid| uid.to_string()),
                json("who signed", new.job.signers())?,
                micros(new.at),
                micros(due),
                micros(payload.expires_at.at()),
                state.as_str(),
                state.is_end().then(|| micros(new.at)),
                new.correlation.map(|id| id.to_string()),
            ],
        )
        .map_err(StoreError::sqlite("write a job"))?;
    let names: Vec<&str> = new.job.signers().iter().map(|name| name.as_str()).collect();
    let correlation = new.correlation.map(|id| format!(" (correlation {id})")).unwrap_or_default();
    let detail = format!(
        "{} signed by {}, due {due}{correlation}: {}",
        payload.act.verb().as_str(),
        names.join(", "),
        payload.reason.as_str()
    );
    note(transaction, new.at, "job_taken", (target(&new.job), payload.job_id), &detail)
}

fn take(transaction: &Transaction<'_>, new: &NewJob) -> Result<JobOutcome, TakeError> {
    if judge(transaction, new)? == JobOutcome::Known {
        return Ok(JobOutcome::Known);
    }
    if let Act::Cancel(cancel) = &new.job.payload().act {
        super::cancel::stop(transaction, cancel.job, new)?;
        insert(transaction, new, JobState::Done)?;
    } else {
        insert(transaction, new, JobState::Waiting)?;
    }
    Ok(JobOutcome::New)
}

fn due(connection: &Connection, at: Timestamp) -> Result<Vec<DueJob>, StoreError> {
    let rows: Vec<(String, String, i64, Option<String>)> = connection
        .prepare_cached(
            "SELECT id, blob, due_at, correlation FROM job WHERE state = 'waiting' AND due_at <= ?1 ORDER BY taken_at, id",
        )
        .and_then(|mut select| {
            select.query_map([micros(at)], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?.collect()
        })
        .map_err(StoreError::sqlite("read the jobs"))?;
    rows.into_iter()
        .map(|(id, blob, due_at, correlation)| {
            let signed = SignedJob::parse(blob.as_bytes()).map_err(StoreError::unreadable("a job"))?;
            let correlation = correlation.map(|id| parsed("a correlation id", &id)).transpose()?;
            Ok(DueJob { id: parsed("a job", &id)?, signed, due_at: time(due_at)?, correlation })
        })
        .collect()
}

fn next_due(connection: &Connection) -> Result<Option<Timestamp>, StoreError> {
    let at: Option<i64> = connection
        .prepare_cached("SELECT min(due_at) FROM job WHERE state = 'waiting'")
        .and_then(|mut select| select.query_row([], |row| row.get(0)))
        .map_err(StoreError::sqlite("read the jobs"))?;
    at.map(time).transpose()
}

/// Opens the operation of a job. Its correlation id goes with it.
fn open(
    transaction: &Transaction<'_>,
    new: &NewOperation,
) -> Result<Option<CorrelationId>, OpenOperationError> {
    let taken = transaction
        .execute(
            "UPDATE job SET state = 'under_way' WHERE id = ?1 AND state = 'waiting'",
            [new.id.to_string()],
        )
        .map_err(StoreError::sqlite("take up a job"))?;
    if taken == 0 {
        return Err(OpenOperationError::Ended(new.id));
    }
    journal::open(transaction, new)?;
    Ok(journal::correlate(transaction, new.id)?)
}

fn settle(
    transaction: &Transaction<'_>,
    id: JobId,
    settled: &Settled,
    at: Timestamp,
) -> Result<(), StoreError> {
    let (to, problem) = match settled {
        Settled::Done => (JobState::Done, None),
        Settled::Failed(problem) => (JobState::Failed, Some(problem)),
    };
    end(transaction, id, (JobState::Waiting, to), problem, at)?;
    Ok(())
}

/// Puts new operators and a new policy into use: those of a signed job, whose delay is over.
fn change_roster(transaction: &Transaction<'_>, job: &Accepted, at: Timestamp) -> Result<(), TakeError> {
    let Act::PolicyUpdate(update) = &job.payload().act else {
        return Err(TurnedAway::Unsupported(job.payload().act.verb()).into());
    };
    let held = roster::trust_state(transaction)?.roster.map_or(0, |roster| roster.policy.version);
    let version = job_validation::new_roster(&update.signers, &update.policy, held)?.policy.version;
    let id = job.payload().job_id;
    if end(transaction, id, (JobState::Waiting, JobState::Done), None, at)? == Swapped::Yes {
        let texts = RosterTexts { operators: update.signers.clone(), policy: update.policy.clone() };
        roster::put(transaction, version, &texts, &format!("job {id}"), at)?;
    }
    Ok(())
}

/// Ends a signed job and lowers the promise that it names, both or neither.
fn lower_protection(transaction: &Transaction<'_>, job: &Accepted, at: Timestamp) -> Result<(), TakeError> {
    let payload = job.payload();
    let (Act::LoosenPolicy(args), Target::Guest { uid, .. }) = (&payload.act, &payload.target) else {
        return Err(TurnedAway::Unsupported(payload.act.verb()).into());
    };
    if end(transaction, payload.job_id, (JobState::Waiting, JobState::Done), None, at)? == Swapped::Yes {
        let changed = protection::lower(transaction, (payload.job_id, *uid), (&args.from, &args.to), at)?;
        if changed == Changed::No {
            return Err(TurnedAway::Promise.into());
        }
    }
    Ok(())
}

impl Store {
    /// Takes a checked job, once.
    ///
    /// # Errors
    /// [`TakeError`]; nothing was written then.
    pub async fn take_job(&self, new: NewJob) -> Result<JobOutcome, TakeError> {
        self.write(Part::Jobs, "take a job", move |transaction| take(transaction, &new)).await
    }

    /// Notes that a text was refused: one line of the audit, and an entry for the report. Nothing else changes.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn turn_away(
        &self,
        left: JobId,
        blob: &str,
        why: &TurnedAway,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        let problem = ErrorBody::new(why.code(), chain(why));
        let Some(word) = self.mail.word(left, blob, &problem, at) else { return Ok(()) };
        let detail = format!("text {}: {problem}", word.blob);
        // First, since the write wakes the report, which shows what is kept.
        self.mail.keep(word);
        let written = self
            .write(Part::Jobs, "write the audit", move |transaction| {
                note(transaction, at, "job_refused", (None, left), &detail)
            })
            .await;
        if written.is_err() {
            self.mail.unkeep(left);
        }
        written
    }

    /// The jobs whose delay is over, oldest first.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn due_jobs(&self, at: Timestamp) -> Result<Vec<DueJob>, StoreError> {
        // The next one is known without the file while nothing is written.
        if self.next_due_job().await?.is_none_or(|next| next > at) {
            return Ok(Vec::new());
        }
        self.read(move |connection| due(connection, at)).await
    }

    /// When the next delay ends.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn next_due_job(&self) -> Result<Option<Timestamp>, StoreError> {
        self.read_cached(&self.answers.next_due_job, (), next_due).await
    }

    /// Opens the operation of a job that waits; the operation's id is the job's.
    ///
    /// # Errors
    /// [`OpenOperationError`]: also when the job does not wait any more, and then nothing was opened.
    pub async fn open_job(&self, new: NewOperation) -> Result<OperationState, OpenOperationError> {
        let mut progress = OperationState::new(new.id, new.operation.clone(), new.at);
        progress.correlation =
            self.write(Part::Operations, "open a job", move |transaction| open(transaction, &new)).await?;
        Ok(progress)
    }

    /// Ends a job that waited and becomes no operation. One that does not wait any more is left.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn settle_job(&self, id: JobId, settled: Settled, at: Timestamp) -> Result<(), StoreError> {
        self.write(Part::Jobs, "end a job", move |transaction| settle(transaction, id, &settled, at)).await
    }

    /// Lowers the promise that a signed job names, and ends the job.
    ///
    /// # Errors
    /// [`TakeError`]; the promise in force stays, and so does the job.
    pub async fn lower_protection(&self, job: Accepted, at: Timestamp) -> Result<(), TakeError> {
        self.write(Part::Jobs, "lower a promise", move |transaction| lower_protection(transaction, &job, at))
            .await
    }

    /// Puts the operators and the policy of a signed job into use.
    ///
    /// # Errors
    /// [`TakeError`]; those in use stay.
    pub async fn change_roster(&self, job: Accepted, at: Timestamp) -> Result<(), TakeError> {
        self.write(Part::Jobs, "write who may sign", move |transaction| change_roster(transaction, &job, at))
            .await?;
        self.mail.judge_anew();
        Ok(())
    }
}
