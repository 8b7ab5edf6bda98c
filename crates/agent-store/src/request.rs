//! Requests of guests and work orders until they are operations or ended.
//!
//! A request is one row, written in one transaction with its audit line and the answer under its idempotency key. It
//! becomes an operation of the same id in one transaction too, by compare-and-swap on its state, so it is opened, ended
//! or cancelled only once, by the first caller (I2). `operation::lane` decides what may enter a lane. It is called here
//! because the lane cannot change within the transaction. Deliberately absent: acting.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::id::{CorrelationId, GuestUid, IdempotencyKey, OperationId};
use holdfast_protocol::local::work::{Acceptance, Accepted};
use holdfast_protocol::operation::{OperationKind, OperationView};
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Transaction};

use super::columns::{from_json, json, micros, parsed, time};
use super::idempotency::{self, KeptAnswer, KnownKey};
use super::journal::{self, NewOperation, OpenOperationError};
use super::{Part, Store, StoreError, audit, compact, guest_view, quota, snapshot, work_order};
use agent_core::model::limits;
use agent_core::model::request::{Ask, BackupsSpent, Ended, QueuedRequest, RequestRecord};
use agent_core::operation::lane::table::Why;
use agent_core::operation::lane::{Admission, Entry, Incoming, Lane, Subject, admit, waits_in};
use agent_core::operation::progress::OperationState;

/// A request as it arrives.
#[derive(Clone, Debug)]
pub struct NewRequest {
    /// The id its operation would have.
    pub id: OperationId,
    pub guest: GuestUid,
    pub ask: Ask,
    /// Under which key.
    pub key: Option<RequestKey>,
    /// The id of the call, as the guest gave it. It decides nothing.
    pub correlation: Option<CorrelationId>,
    pub at: Timestamp,
}

/// An idempotency key with the request that it belongs to.
#[derive(Clone, Debug)]
pub struct RequestKey {
    pub key: IdempotencyKey,
    /// SHA-256 of method, path and body.
    pub request_sha256: [u8; 32],
}

/// Why a request is not taken. Nothing was written then.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The key was used with another request.
    #[error("this idempotency key was used with another request: use a new key for new work")]
    Mismatch,
    /// The lane, or the host's queue, is full.
    #[error("as much work waits as may: ask again in {retry_after_s} s")]
    Busy {
        /// When to ask again.
        retry_after_s: u32,
    },
    /// It may not follow the work already in the lane.
    #[error("{}", .0.sentence())]
    Lane(Why),
    /// The guest has no such snapshot that it requested itself.
    #[error("there is no snapshot {0} that was taken through this API")]
    NoSuchSnapshot(String),
    /// It has one of that name.
    #[error("there is a snapshot {0} already: choose another name, or delete it first")]
    NameTaken(String),
    /// It has as many snapshots as it may, those that wait included.
    #[error("a guest may have {} snapshots: delete one first", limits::SNAPSHOTS_PER_GUEST)]
    Quota,
    /// It asked for as many backups today as it may.
    #[error(transparent)]
    Backups(BackupsSpent),
    /// It asked for this as often today as it may.
    #[error("a guest may ask for {} {} times a day: ask again later", .0.as_str(), limits::asked_per_day(*.0))]
    Daily(OperationKind),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What became of a request to cancel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cancelled {
    /// It had not begun, and never will.
    Ended(RequestRecord),
    NotYours,
    /// It is under way, or over: its present state.
    TooLate(Box<OperationState>),
    /// It ended long ago.
    Over,
    /// No such request is known.
    Unknown,
}

/// Work by its id: a request until it is an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestOrOperation {
    /// It is an operation.
    Operation(Box<OperationState>),
    /// It was one that ended so long ago that only this is kept of it.
    Kept(Box<OperationView>),
    /// It waits, or has ended without becoming one.
    Request(RequestRecord),
}

const COLUMNS: &str = "serial, id, guest, body, asked_at, problem, ended_at";

struct RawRequest {
    serial: i64,
    id: String,
    guest: String,
    body: String,
    asked_at: i64,
    problem: Option<String>,
    ended_at: Option<i64>,
}

fn raw(row: &rusqlite::Row<'_>) -> Result<RawRequest, rusqlite::Error> {
    Ok(RawRequest {
        serial: row.get(0)?,
        id: row.get(1)?,
        guest: row.get(2)?,
        body: row.get(3)?,
        asked_at: row.get(4)?,
        problem: row.get(5)?,
        ended_at: row.get(6)?,
    })
}

impl RawRequest {
    fn record(self) -> Result<RequestRecord, StoreError> {
        let end = match (self.problem, self.ended_at) {
            (Some(problem), Some(at)) => {
                Some(Ended { problem: from_json("a request's end", &problem)?, at: time(at)? })
            }
            _ => None,
        };
        let request = QueuedRequest {
            serial: u64::try_from(self.serial).map_err(StoreError::unreadable("a request's number"))?,
            id: parsed("a request's id", &self.id)?,
            guest: parsed("a guest", &self.guest)?,
            ask: from_json("a request", &self.body)?,
            asked_at: time(self.asked_at)?,
        };
        Ok(RequestRecord { request, end })
    }
}

/// Every request that waits, oldest first.
pub(super) fn queued(connection: &Connection) -> Result<Vec<QueuedRequest>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM request WHERE state = 'queued' ORDER BY serial");
    let rows: Vec<RawRequest> = connection
        .prepare_cached(&sql)
        .and_then(|mut select| select.query_map([], raw)?.collect())
        .map_err(StoreError::sqlite("read the requests"))?;
    rows.into_iter().map(|row| Ok(row.record()?.request)).collect()
}

/// The number of the last request, whatever became of it.
pub(super) fn last_serial(connection: &Connection) -> Result<u64, StoreError> {
    let last: i64 = connection
        .prepare_cached("SELECT coalesce(max(serial), 0) FROM request")
        .and_then(|mut select| select.query_row([], |row| row.get(0)))
        .map_err(StoreError::sqlite("count the requests"))?;
    u64::try_from(last).map_err(StoreError::unreadable("a request's number"))
}

fn find(connection: &Connection, id: OperationId) -> Result<Option<RequestRecord>, StoreError> {
    connection
        .prepare_cached(&format!("SELECT {COLUMNS} FROM request WHERE id = ?1"))
        .and_then(|mut select| select.query_row([id.to_string()], raw).optional())
        .map_err(StoreError::sqlite("find a request"))?
        .map(RawRequest::record)
        .transpose()
}

fn entry(request: &QueuedRequest) -> Entry {
    Entry { id: request.id, work: request.ask.kind(), subject: Subject::of_ask(&request.ask) }
}

/// What is in a guest's lane.
fn lane(connection: &Connection, guest: GuestUid) -> Result<Lane, StoreError> {
    lane_of(connection, (guest, guest))
}

/// What of this guest is in this lane: its own, or that of all restore tests.
fn lane_of(connection: &Connection, (lane, guest): (GuestUid, GuestUid)) -> Result<Lane, StoreError> {
    let all = queued(connection)?;
    let open = journal::open_on(connection, lane)?;
    // Of an operation that holds two guests, the lane of the other one is held as well.
    let holds = open.filter(|progress| lane == guest || progress.operation.uid() == guest).map(|progress| {
        Entry { id: progress.id, work: progress.operation.kind(), subject: progress.operation.subject() }
    });
    let is_in =
        |request: &&QueuedRequest| request.guest == guest && waits_in(&request.ask, request.guest) == lane;
    let waits = all.iter().filter(is_in).map(entry).collect();
    Ok(Lane { holds, waits, host_waits: all.len() })
}

/// Judges against data that no lane has: the existing snapshots.
fn judge_snapshots(connection: &Connection, new: &NewRequest, lane: &Lane) -> Result<(), AskError> {
    let Some(name) = new.ask.snapshot() else { return Ok(()) };
    let snapshots = guest_view::snapshots(connection, new.guest)?;
    let stands = snapshots.iter().any(|own| own.name == *name);
    let coming = |entry: &&Entry| entry.work == OperationKind::Snapshot;
    let on_its_way = lane.holds.iter().chain(&lane.waits).filter(coming);
    let subject = Subject::of_ask(&new.ask);
    match &new.ask {
        Ask::Snapshot { .. } if stands => Err(AskError::NameTaken(name.to_string())),
        Ask::Snapshot { .. } => {
            let count = snapshots.len() + on_its_way.filter(|entry| entry.subject != subject).count();
            if count < limits::SNAPSHOTS_PER_GUEST { Ok(()) } else { Err(AskError::Quota) }
        }
        Ask::ExpireSnapshot { .. } | Ask::RollBack { .. } => {
            let known = stands || on_its_way.map(|entry| &entry.subject).any(|coming| *coming == subject);
            if known { Ok(()) } else { Err(AskError::NoSuchSnapshot(name.to_string())) }
        }
        Ask::Backup { .. } | Ask::QuiescedBackup { .. } | Ask::Ordered(_) => Ok(()),
    }
}

fn insert(transaction: &Transaction<'_>, new: &NewRequest) -> Result<(), StoreError> {
    let guest = new.guest.to_string();
    let kind = new.ask.kind().as_str();
    transaction
        .execute(
            "INSERT INTO request (id, guest, kind, body, asked_at, state, correlation)
             VALUES (?1, ?2, ?3, ?4, ?5, 'queued', ?6)",
            (
                new.id.to_string(),
                &guest,
                kind,
                json("a request", &new.ask)?,
                micros(new.at),
                new.correlation.map(|id| id.to_string()),
            ),
        )
        .map_err(StoreError::sqlite("write a request"))?;
    // Ended requests are kept for the guest that asked, but not for ever.
    transaction
        .execute(
            "DELETE FROM request WHERE guest = ?1 AND state <> 'queued' AND serial NOT IN
             (SELECT serial FROM request WHERE guest = ?1 ORDER BY serial DESC LIMIT ?2)
             AND NOT (state = 'opened' AND kind IN ('backup', 'quiesced_backup') AND asked_at > ?3)",
            (
                &guest,
                limits::ENDED_REQUESTS_PER_GUEST,
                // Requests that a quota counts are not deleted to make room for others.
                micros(new.at).saturating_sub(limits::ASKED_BACKUPS_S.saturating_mul(1_000_000)),
            ),
        )
        .map_err(StoreError::sqlite("forget old requests"))?;
    if !matches!(new.ask, Ask::Ordered(_)) {
        quota::count(transaction, new.guest, new.ask.kind(), new.at)?;
    }
    let detail = new.ask.snapshot().map_or_else(|| kind.to_owned(), |name| format!("{kind} {name}"));
    note(transaction, new.at, "request_queued", new.guest, new.id, &detail)
}

fn note(
    transaction: &Transaction<'_>,
    at: Timestamp,
    action: &'static str,
    guest: GuestUid,
    id: OperationId,
    detail: &str,
) -> Result<(), StoreError> {
    let line = audit::Line { at, action, guest: Some(guest), operation: Some(id), detail };
    audit::append(transaction, &line)
}

/// Ends a request that still waits. No, when it does not wait any more.
fn end(
    transaction: &Transaction<'_>,
    id: OperationId,
    state: &'static str,
    ended: &Ended,
) -> Result<Swapped, StoreError> {
    let guest: Option<String> = transaction
        .query_row(
            "UPDATE request SET state = ?2, problem = ?3, ended_at = ?4 WHERE id = ?1 AND state = 'queued'
             RETURNING guest",
            (id.to_string(), state, json("a request's end", &ended.problem)?, micros(ended.at)),
            |row| row.get(0),
        )
        .optional()
        .map_err(StoreError::sqlite("end a request"))?;
    let Some(guest) = guest else { return Ok(Swapped::No) };
    let action = match state {
        "cancelled" => "request_cancelled",
        "preempted" => "request_preempted",
        _ => "request_refused",
    };
    note(transaction, ended.at, action, parsed("a guest", &guest)?, id, &ended.problem.to_string())?;
    work_order::request_ended(transaction, id, &ended.problem, ended.at)?;
    Ok(Swapped::Yes)
}

/// Whether a compare-and-swap found the expected value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Swapped {
    Yes,
    No,
}

fn ask(transaction: &Transaction<'_>, new: &NewRequest) -> Result<Accepted, AskError> {
    if let Some(key) = &new.key {
        match idempotency::known(transaction, new.guest, &key.key, &key.request_sha256)? {
            KnownKey::New => {}
            KnownKey::Answered(answer) => return Ok(from_json("a kept answer", &answer.body)?),
            KnownKey::Mismatch => return Err(AskError::Mismatch),
        }
    }
    let lane = lane(transaction, new.guest)?;
    judge_snapshots(transaction, new, &lane)?;
    let incoming = Incoming::Work(new.ask.kind());
    let snapshot = match &new.ask {
        Ask::Snapshot { name, .. } => Some(name.clone()),
        Ask::ExpireSnapshot { .. }
        | Ask::RollBack { .. }
        | Ask::Backup { .. }
        | Ask::QuiescedBackup { .. }
        | Ask::Ordered(_) => None,
    };
    let (operation, taken, before) = match admit(&lane, incoming, &Subject::of_ask(&new.ask)) {
        Admission::Admitted { place } => {
            quota::judge(transaction, new)?;
            insert(transaction, new)?;
            (new.id, Acceptance::Queued, place)
        }
        Admission::Preempts { ended, place } => {
            quota::judge(transaction, new)?;
            for id in ended {
                end(transaction, id, "preempted", &preempted(new.ask.kind().as_str(), new.at))?;
            }
            insert(transaction, new)?;
            (new.id, Acceptance::Queued, place)
        }
        Admission::Joins(other) => (other, Acceptance::Joined, 0),
        Admission::Refused(why) => return Err(AskError::Lane(why)),
        Admission::Busy { retry_after_s } => return Err(AskError::Busy { retry_after_s }),
    };
    let before = u32::try_from(before).unwrap_or(u32::MAX);
    let accepted = Accepted { operation, taken, before, snapshot };
    if let Some(key) = &new.key {
        let answer = KeptAnswer { status: 202, body: json("an answer", &accepted)? };
        idempotency::keep(transaction, new.guest, &key.key, &key.request_sha256, &answer, new.at)?;
    }
    Ok(accepted)
}

/// Takes a work order into the road of requests. Returns the id that it is followed by: its own, or that of the same work
/// that waits or is under way.
pub(super) fn order(transaction: &Transaction<'_>, new: &NewRequest) -> Result<OperationId, AskError> {
    let lane = lane_of(transaction, (waits_in(&new.ask, new.guest), new.guest))?;
    let subject = Subject::of_ask(&new.ask);
    if let Some(name) = new.ask.snapshot() {
        let is_there = snapshot::of(transaction, new.guest)?.iter().any(|one| one.name == *name);
        let comes = |entry: &Entry| entry.work == OperationKind::Snapshot && entry.subject == subject;
        if is_there || lane.holds.iter().chain(&lane.waits).any(comes) {
            return Err(AskError::NameTaken(name.to_string()));
        }
    }
    match admit(&lane, Incoming::Work(new.ask.kind()), &subject) {
        Admission::Admitted { .. } => insert(transaction, new)?,
        Admission::Preempts { ended, .. } => {
            for id in ended {
                end(transaction, id, "preempted", &preempted(new.ask.kind().as_str(), new.at))?;
            }
            insert(transaction, new)?;
        }
        Admission::Joins(other) => return Ok(other),
        Admission::Refused(why) => return Err(AskError::Lane(why)),
        Admission::Busy { retry_after_s } => return Err(AskError::Busy { retry_after_s }),
    }
    Ok(new.id)
}

/// Ends a work order that still waits.
pub(super) fn cancel_ordered(
    transaction: &Transaction<'_>,
    id: OperationId,
    ended: &Ended,
) -> Result<Swapped, StoreError> {
    end(transaction, id, "cancelled", ended)
}

/// Whether a guest may cancel it: what the hub ordered is not the guest's to take back.
fn is_own(record: &RequestRecord, guest: GuestUid) -> bool {
    record.request.guest == guest && !matches!(record.request.ask, Ask::Ordered(_))
}

fn preempted(by: &'static str, at: Timestamp) -> Ended {
    let text = format!(
        "it had not begun, and ended for {by}, which goes before it: ask again if it is still wanted"
    );
    Ended { problem: ErrorBody::new(ErrorCode::Preempted, text), at }
}

fn cancel(
    transaction: &Transaction<'_>,
    guest: GuestUid,
    id: OperationId,
    at: Timestamp,
) -> Result<Cancelled, StoreError> {
    let Some(stands) = find_asked(transaction, id)? else { return Ok(Cancelled::Unknown) };
    let record = match stands {
        RequestOrOperation::Operation(progress) if progress.operation.uid() == guest => {
            return Ok(Cancelled::TooLate(progress));
        }
        RequestOrOperation::Request(record) if is_own(&record, guest) => record,
        RequestOrOperation::Kept(view) if view.guest == guest => return Ok(Cancelled::Over),
        RequestOrOperation::Operation(_) | RequestOrOperation::Kept(_) | RequestOrOperation::Request(_) => {
            return Ok(Cancelled::NotYours);
        }
    };
    let problem = ErrorBody::new(ErrorCode::Cancelled, "it was cancelled by its guest before it began");
    let ended = Ended { problem, at };
    Ok(match end(transaction, id, "cancelled", &ended)? {
        Swapped::Yes => Cancelled::Ended(RequestRecord { end: Some(ended), ..record }),
        // It ended before: cancelled once more, refused, or pre-empted. The answer is its present state.
        Swapped::No => Cancelled::Ended(record),
    })
}

pub(super) fn find_asked(
    connection: &Connection,
    id: OperationId,
) -> Result<Option<RequestOrOperation>, StoreError> {
    if let Some(view) = compact::kept_of(connection, id)? {
        return Ok(Some(RequestOrOperation::Kept(Box::new(view))));
    }
    if let Some(progress) = journal::one(connection, id)? {
        return Ok(Some(RequestOrOperation::Operation(Box::new(progress))));
    }
    Ok(find(connection, id)?.map(RequestOrOperation::Request))
}

impl Store {
    /// Writes a request down, if its lane takes it. On disk when this returns, with its audit line and its answer.
    ///
    /// # Errors
    /// [`AskError`]; nothing was written then.
    pub async fn ask(&self, new: NewRequest) -> Result<Accepted, AskError> {
        self.write(Part::Requests, "write a request", move |transaction| ask(transaction, &new)).await
    }

    /// Cancels a request that has not begun. Cancelling is idempotent; a key only checks that a repeat is for the same
    /// request.
    ///
    /// # Errors
    /// [`AskError::Mismatch`], or the database's.
    pub async fn cancel_request(
        &self,
        guest: GuestUid,
        id: OperationId,
        key: Option<RequestKey>,
        at: Timestamp,
    ) -> Result<Cancelled, AskError> {
        self.write(Part::Requests, "cancel a request", move |transaction| {
            let Some(key) = &key else { return Ok(cancel(transaction, guest, id, at)?) };
            if idempotency::known(transaction, guest, &key.key, &key.request_sha256)? == KnownKey::Mismatch {
                return Err(AskError::Mismatch);
            }
            let cancelled = cancel(transaction, guest, id, at)?;
            if matches!(cancelled, Cancelled::Ended(_)) {
                // A repeat reads the answer again from the request's row, which stays cancelled.
                let answer = KeptAnswer { status: 200, body: String::new() };
                idempotency::keep(transaction, guest, &key.key, &key.request_sha256, &answer, at)?;
            }
            Ok(cancelled)
        })
        .await
    }

    /// Ends a request that cannot be served, with the reason for its guest. One that does not wait any more is left.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn refuse_request(
        &self,
        id: OperationId,
        problem: ErrorBody,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        let ended = Ended { problem, at };
        self.write(Part::Requests, "refuse a request", move |transaction| {
            end(transaction, id, "refused", &ended).map(|_| ())
        })
        .await
    }

    /// Ends a request that still waits, in favour of work with priority; `by` names that work.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn preempt_request(
        &self,
        id: OperationId,
        by: &'static str,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        self.write(Part::Requests, "pre-empt a request", move |transaction| {
            end(transaction, id, "preempted", &preempted(by, at)).map(|_| ())
        })
        .await
    }

    /// Opens the operation that a request becomes; the operation's id is the request's.
    ///
    /// # Errors
    /// [`OpenOperationError`]: also when the request does not wait any more, and then nothing was opened.
    pub async fn open_request(&self, new: NewOperation) -> Result<OperationState, OpenOperationError> {
        let mut progress = OperationState::new(new.id, new.operation.clone(), new.at);
        let correlation = self.write(Part::Operations, "open a request", move |transaction| {
            let taken = transaction
                .execute(
                    "UPDATE request SET state = 'opened', ended_at = ?2 WHERE id = ?1 AND state = 'queued'",
                    (new.id.to_string(), micros(new.at)),
                )
                .map_err(StoreError::sqlite("take up a request"))?;
            if taken == 0 {
                return Err(OpenOperationError::Ended(new.id));
            }
            journal::open(transaction, &new)?;
            Ok(journal::correlate(transaction, new.id)?)
        });
        progress.correlation = correlation.await?;
        Ok(progress)
    }

    /// Work by its id, in one read: a request, or the operation it became.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn asked(&self, id: OperationId) -> Result<Option<RequestOrOperation>, StoreError> {
        self.read(move |connection| find_asked(connection, id)).await
    }
}

#[cfg(test)]
mod tests;
