//! Approved storage targets.
//!
//! A job names the present approval and the new one, both completely. It is taken, and takes effect, only while the
//! first is in force. Its row, its end and its line in the audit are one transaction. Detaching a target is refused
//! while some guest has no backup elsewhere. Deliberately absent: mounting (`task/storage`), and where volumes are
//! stored (`gate/only_copy`).

use holdfast_protocol::id::{JobId, TargetName};
use holdfast_protocol::job::act::LetGo;
use holdfast_protocol::job::{Act, JobState};
use holdfast_protocol::storage::{Approval, TargetState};
use holdfast_trust::Accepted;
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, Transaction};

use super::columns::{from_json, json, micros, parsed};
use super::job_end::{Swapped, TakeError, end};
use super::protection::Changed;
use super::{Part, Store, StoreError, audit};
use agent_core::gate::job_validation::TurnedAway;
use agent_core::model::storage::{EntryAction, EntryDue, Marked, TargetRecord};

/// As many guests as a sentence names.
const NAMED_MAX: usize = 5;

struct Raw {
    texts: [String; 3],
    marked_at: Option<i64>,
    iops: Option<u32>,
    entry: Option<(String, String)>,
}

const COLUMNS: &str = "approval, standing, mark, marked_at, iops, entry_due, entry_job";

fn raw(row: &Row<'_>) -> rusqlite::Result<Raw> {
    let (due, job): (Option<String>, Option<String>) = (row.get(5)?, row.get(6)?);
    Ok(Raw {
        texts: [row.get(0)?, row.get(1)?, row.get(2)?],
        marked_at: row.get(3)?,
        iops: row.get(4)?,
        entry: due.zip(job),
    })
}

impl Raw {
    fn record(self) -> Result<TargetRecord, StoreError> {
        let [approval, status, mark] = self.texts;
        let entry = match &self.entry {
            Some((due, job)) => Some(EntryAction {
                due: from_json("what is owed to an entry", &format!("\"{due}\""))?,
                job: parsed("a job", job)?,
            }),
            None => None,
        };
        Ok(TargetRecord {
            approval: from_json("an approved storage", &approval)?,
            status: from_json("how a storage stands", &format!("\"{status}\""))?,
            mark: parsed("a marker", &mark)?,
            marked: self.marked_at.map(|_| Marked { iops: self.iops }),
            entry,
        })
    }
}

pub(super) fn all(connection: &Connection) -> Result<Vec<TargetRecord>, StoreError> {
    let rows: Vec<Raw> = connection
        .prepare_cached(&format!("SELECT {COLUMNS} FROM storage_target ORDER BY name"))
        .and_then(|mut select| select.query_map([], raw)?.collect())
        .map_err(StoreError::sqlite("read the storage targets"))?;
    rows.into_iter().map(Raw::record).collect()
}

fn of(connection: &Connection, name: &TargetName) -> Result<Option<TargetRecord>, StoreError> {
    connection
        .prepare_cached(&format!("SELECT {COLUMNS} FROM storage_target WHERE name = ?1"))
        .and_then(|mut select| select.query_row([name.as_str()], raw).optional())
        .map_err(StoreError::sqlite("read a storage target"))?
        .map(Raw::record)
        .transpose()
}

/// Checks a job against the present approval. Acts of other kinds pass.
pub(super) fn as_signed(connection: &Connection, act: &Act) -> Result<(), TakeError> {
    let changed = |why: String| Err(TurnedAway::Storage(why).into());
    match act {
        Act::AttachStorage(args) => {
            let known = of(connection, &args.to.name)?;
            if known.as_ref().map(|record| &record.approval) != args.from.as_deref() {
                return changed(format!("{} is not approved as the operator saw it", args.to.name));
            }
            let same =
                |record: &TargetRecord| record.status == TargetState::Attached && record.approval == *args.to;
            if known.as_ref().is_some_and(same) {
                return changed(format!("{} is approved and attached like this already", args.to.name));
            }
            for other in all(connection)? {
                let attached = other.status == TargetState::Attached && other.approval.name != args.to.name;
                if attached && other.approval.backend.to_string() == args.to.backend.to_string() {
                    let (backend, name) = (&args.to.backend, other.approval.name);
                    return changed(format!("{backend} is attached as {name} already"));
                }
            }
            Ok(())
        }
        Act::DetachStorage(args) => match of(connection, &args.from.name)? {
            Some(record) if record.approval != *args.from => {
                changed(format!("{} is not approved as the operator saw it", args.from.name))
            }
            Some(record) if record.status == status(args.to) => {
                changed(format!("{} is {} already", args.from.name, record.status))
            }
            Some(_) => Ok(()),
            None => changed(format!("{} was never approved", args.from.name)),
        },
        _ => Ok(()),
    }
}

const fn status(to: LetGo) -> TargetState {
    match to {
        LetGo::Disconnected => TargetState::Disconnected,
        LetGo::Decommissioned => TargetState::Decommissioned,
    }
}

/// Guests, existing or not, whose known backups are all stored on this target or on detached ones.
fn only_backups(connection: &Connection, name: &TargetName) -> Result<Vec<String>, StoreError> {
    connection
        .prepare_cached(
            "SELECT DISTINCT coalesce(g.name, b.guest) FROM backup AS b LEFT JOIN guest AS g ON g.uid = b.guest
             WHERE b.storage = ?1 AND NOT EXISTS (SELECT 1 FROM backup AS o WHERE o.guest = b.guest AND o.storage <> ?1
                 AND o.storage NOT IN (SELECT name FROM storage_target WHERE standing <> 'attached'))
             ORDER BY 1",
        )
        .and_then(|mut select| select.query_map([name.as_str()], |row| row.get(0))?.collect())
        .map_err(StoreError::sqlite("look where backups lie"))
}

fn put(
    transaction: &Transaction<'_>,
    approval: &Approval,
    (mark, marked): (JobId, Option<&Marked>),
    job: JobId,
    at: Timestamp,
) -> Result<(), StoreError> {
    transaction
        .execute(
            "INSERT OR REPLACE INTO storage_target (name, approval, standing, mark, marked_at, iops, by, at,
                 entry_due, entry_job)
             VALUES (?1, ?2, 'attached', ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            rusqlite::params![
                approval.name.as_str(),
                json("an approved storage", approval)?,
                mark.to_string(),
                marked.map(|_| micros(at)),
                marked.and_then(|marked| marked.iops),
                format!("job {job}"),
                micros(at),
                EntryDue::Make.as_str(),
                job.to_string(),
            ],
        )
        .map_err(StoreError::sqlite("write a storage target"))?;
    Ok(())
}

fn note(transaction: &Transaction<'_>, at: Timestamp, action: &str, detail: &str) -> Result<(), StoreError> {
    audit::append(transaction, &audit::Line { at, action, guest: None, operation: None, detail })
}

/// Ends a signed job and attaches the target that it names, both or neither.
fn attach(transaction: &Transaction<'_>, job: &Accepted, at: Timestamp) -> Result<(), TakeError> {
    let payload = job.payload();
    let Act::AttachStorage(args) = &payload.act else {
        return Err(TurnedAway::Unsupported(payload.act.verb()).into());
    };
    as_signed(transaction, &payload.act)?;
    let (waits, done) = (JobState::Waiting, JobState::Done);
    if end(transaction, payload.job_id, (waits, done), None, at)? == Swapped::No {
        return Ok(());
    }
    let known = of(transaction, &args.to.name)?;
    // The same disk keeps its marker; another one gets its own, and is measured anew.
    let same = known.as_ref().filter(|record| record.approval.backend == args.to.backend);
    let (mark, marked) = same.map_or((payload.job_id, None), |record| (record.mark, record.marked.as_ref()));
    put(transaction, &args.to, (mark, marked), payload.job_id, at)?;
    let Approval { name, backend, class, role, .. } = args.to.as_ref();
    let detail = format!("{name}: {backend}, {class}, for {role}, by job {}", payload.job_id);
    Ok(note(transaction, at, "storage_approved", &detail)?)
}

/// Ends a signed job and detaches the target that it names, both or neither.
fn detach(transaction: &Transaction<'_>, job: &Accepted, at: Timestamp) -> Result<(), TakeError> {
    let payload = job.payload();
    let Act::DetachStorage(args) = &payload.act else {
        return Err(TurnedAway::Unsupported(payload.act.verb()).into());
    };
    as_signed(transaction, &payload.act)?;
    let name = &args.from.name;
    let only = only_backups(transaction, name)?;
    if !only.is_empty() {
        let named: Vec<&str> = only.iter().take(NAMED_MAX).map(String::as_str).collect();
        let more = only.len().saturating_sub(NAMED_MAX);
        let more = if more == 0 { String::new() } else { format!(" and {more} more") };
        let what = format!("the only backups of {}{more}", named.join(", "));
        return Err(TurnedAway::OnlyCopy { target: name.clone(), what }.into());
    }
    let (waits, done) = (JobState::Waiting, JobState::Done);
    if end(transaction, payload.job_id, (waits, done), None, at)? == Swapped::No {
        return Ok(());
    }
    let by = format!("job {}", payload.job_id);
    transaction
        .execute(
            "UPDATE storage_target SET standing = ?2, by = ?3, at = ?4, entry_due = ?5, entry_job = ?6
             WHERE name = ?1",
            rusqlite::params![
                name.as_str(),
                status(args.to).as_str(),
                &by,
                micros(at),
                EntryDue::Disable.as_str(),
                payload.job_id.to_string()
            ],
        )
        .map_err(StoreError::sqlite("let a storage target go"))?;
    Ok(note(transaction, at, "storage_let_go", &format!("{name}: {}, by {by}", args.to.as_str()))?)
}

impl Store {
    /// Approves the target that a signed job names, and ends the job.
    ///
    /// # Errors
    /// [`TakeError`]; nothing is approved then.
    pub async fn attach_storage(&self, job: Accepted, at: Timestamp) -> Result<(), TakeError> {
        self.write(Part::Jobs, "approve a storage", move |transaction| attach(transaction, &job, at)).await
    }

    /// Detaches the target that a signed job names, and ends the job.
    ///
    /// # Errors
    /// [`TakeError`]; it stays attached then.
    pub async fn detach_storage(&self, job: Accepted, at: Timestamp) -> Result<(), TakeError> {
        self.write(Part::Jobs, "let a storage go", move |transaction| detach(transaction, &job, at)).await
    }

    /// Every target that was ever approved, by name.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn storage_targets(&self) -> Result<Vec<TargetRecord>, StoreError> {
        self.read(all).await
    }

    /// Notes that a disk has its marker, and how fast it is; once.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn note_marked(
        &self,
        (target, mark): (TargetName, JobId),
        marked: Marked,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        self.write(Part::Nothing, "note a marker", move |transaction| {
            let new = transaction
                .execute(
                    "UPDATE storage_target SET marked_at = ?3, iops = ?4
                     WHERE name = ?1 AND mark = ?2 AND marked_at IS NULL",
                    rusqlite::params![target.as_str(), mark.to_string(), micros(at), marked.iops],
                )
                .map_err(StoreError::sqlite("note a marker"))?;
            if new == 0 {
                return Ok(());
            }
            let speed = marked.iops.map_or("not measured".to_owned(), |iops| format!("{iops} IOPS"));
            note(transaction, at, "storage_marked", &format!("{target}: mark {mark}, {speed}"))
        })
        .await
    }

    /// The line of the audit before a target is mounted, while it is approved and attached at this moment.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn note_mounting(
        &self,
        (target, mark): (TargetName, JobId),
        detail: String,
        at: Timestamp,
    ) -> Result<Changed, StoreError> {
        self.write(Part::Nothing, "write the audit", move |transaction| {
            let record = of(transaction, &target)?;
            let lawful =
                |record: &TargetRecord| record.status == TargetState::Attached && record.mark == mark;
            if !record.as_ref().is_some_and(lawful) {
                return Ok(Changed::No);
            }
            note(transaction, at, "storage_mount", &detail)?;
            Ok(Changed::Yes)
        })
        .await
    }

    /// The line of the audit before an entry of Proxmox is changed, while that change is outstanding for a signed job.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn note_entry(
        &self,
        (target, outstanding): (TargetName, EntryAction),
        detail: String,
        at: Timestamp,
    ) -> Result<Changed, StoreError> {
        self.write(Part::Nothing, "write the audit", move |transaction| {
            if of(transaction, &target)?.and_then(|record| record.entry) != Some(outstanding) {
                return Ok(Changed::No);
            }
            note(transaction, at, "storage_entry", &detail)?;
            Ok(Changed::Yes)
        })
        .await
    }

    /// Notes once that no change of a Proxmox entry is outstanding for a signed job any more.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn settle_entry(
        &self,
        (target, outstanding): (TargetName, EntryAction),
        detail: String,
        at: Timestamp,
    ) -> Result<Changed, StoreError> {
        self.write(Part::Jobs, "settle an entry", move |transaction| {
            let settled = transaction
                .execute(
                    "UPDATE storage_target SET entry_due = NULL, entry_job = NULL
                     WHERE name = ?1 AND entry_due = ?2 AND entry_job = ?3",
                    (target.as_str(), outstanding.due.as_str(), outstanding.job.to_string()),
                )
                .map_err(StoreError::sqlite("settle an entry"))?;
            if settled == 0 {
                return Ok(Changed::No);
            }
            note(transaction, at, "storage_entry_settled", &detail)?;
            Ok(Changed::Yes)
        })
        .await
    }

    /// A line of the audit about a target, before or after something was done to it.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn note_storage(
        &self,
        action: &'static str,
        detail: String,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        self.write(Part::Nothing, "write the audit", move |transaction| {
            note(transaction, at, action, &detail)
        })
        .await
    }

    /// Guests whose newest known backup is stored on this storage.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn newest_backup_on(
        &self,
        target: TargetName,
    ) -> Result<Vec<holdfast_protocol::id::GuestUid>, StoreError> {
        self.read(move |connection| {
            let rows: Vec<String> = connection
                .prepare_cached(
                    "SELECT guest FROM backup AS b WHERE storage = ?1 AND taken_at =
                         (SELECT max(taken_at) FROM backup AS o WHERE o.guest = b.guest)",
                )
                .and_then(|mut select| select.query_map([target.as_str()], |row| row.get(0))?.collect())
                .map_err(StoreError::sqlite("look where backups lie"))?;
            rows.iter().map(|guest| parsed("a guest", guest)).collect()
        })
        .await
    }
}
