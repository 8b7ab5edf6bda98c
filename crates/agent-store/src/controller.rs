//! Builds of guest agents: rollout order, downloads and failures.
//!
//! Which guest may run a build next is recorded only in the journal. The start of a download is on disk before the
//! first byte is sent. Without that record, no later failure counts against the bytes. The outcome of a build is kept
//! for each guest, until an operator signs these bytes again (`release`). The plan decides what follows for other
//! guests.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use holdfast_protocol::id::{GuestUid, OperationId};
use holdfast_protocol::local::desired::{TrialVerdict, Turn};
use jiff::{SignedDuration, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row, Transaction};

use super::columns::{from_json, micros, parsed, time};
use super::{Part, Store, StoreError, audit, journal_read};
use agent_core::model::policy::Sha256Hex;
use agent_core::model::records::{ControllerOutcome, ControllerTrial, ControllerVerdict, HelloRecord};
use agent_core::operation::log::Status;
use agent_core::operation::step::Step;
use agent_core::operation::update_controller::{Fetched, OpenTrial, Returned, trial_verdict};
use agent_core::operation::{Operation, UpdateController};

/// No trial is longer: of a guest with the longest pause between hellos, twice.
const TRIAL_MOST: SignedDuration = SignedDuration::from_hours(2);

/// Those that did not come up.
pub(super) fn verdicts(connection: &Connection) -> Result<Vec<ControllerVerdict>, StoreError> {
    let rows: Vec<([String; 5], i64)> = connection
        .prepare_cached(
            "SELECT sha256, version, guest, verdict, why, at FROM controller_verdict ORDER BY sha256, guest",
        )
        .and_then(|mut select| {
            let texts = |row: &Row<'_>| {
                Ok::<_, rusqlite::Error>([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?])
            };
            select.query_map([], |row| Ok::<_, rusqlite::Error>((texts(row)?, row.get(5)?)))?.collect()
        })
        .map_err(StoreError::sqlite("read which controllers did not come up"))?;
    rows.into_iter()
        .map(|([sha256, version, guest, verdict, why], at)| {
            Ok(ControllerVerdict {
                sha256: sha256.try_into().map_err(StoreError::unreadable("a digest"))?,
                version: version.try_into().map_err(StoreError::unreadable("a version"))?,
                guest: parsed("a guest", &guest)?,
                // The table's check allows only these two.
                outcome: if verdict == word(ControllerOutcome::Bad) {
                    ControllerOutcome::Bad
                } else {
                    ControllerOutcome::Silent
                },
                why,
                at: time(at)?,
            })
        })
        .collect()
}

const fn word(outcome: ControllerOutcome) -> &'static str {
    match outcome {
        ControllerOutcome::Bad => "bad",
        ControllerOutcome::Silent => "silent",
    }
}

/// Notes that a controller did not come up in a guest. A verdict from the guest itself stays, whatever is reported
/// later.
pub(super) fn did_not_come_up(
    transaction: &Transaction<'_>,
    update: &UpdateController,
    by: OperationId,
    (outcome, why): (ControllerOutcome, &str),
    at: Timestamp,
) -> Result<(), StoreError> {
    let uid = update.target().uid;
    let (version, sha256) = (update.version.as_str(), update.sha256.as_str());
    transaction
        .execute(
            "INSERT INTO controller_verdict (sha256, version, guest, verdict, operation, why, at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
             ON CONFLICT (sha256, guest) DO UPDATE SET verdict = excluded.verdict, operation = excluded.operation,
                 why = excluded.why, at = excluded.at WHERE verdict = 'silent'",
            (sha256, version, uid.to_string(), word(outcome), by.to_string(), why, micros(at)),
        )
        .map_err(StoreError::sqlite("note that a controller did not come up"))?;
    let detail = format!("controller {version}, sha256 {sha256}: {why}");
    let action = match outcome {
        ControllerOutcome::Bad => "controller_bad",
        ControllerOutcome::Silent => "controller_silent",
    };
    let line = audit::Line { at, action, guest: Some(uid), operation: Some(by), detail: &detail };
    audit::append(transaction, &line)
}

/// An operator signed for these bytes once more.
pub(super) fn forgiven(transaction: &Transaction<'_>, sha256: &Sha256Hex) -> Result<(), StoreError> {
    transaction
        .execute("DELETE FROM controller_verdict WHERE sha256 = ?1", [sha256.as_str()])
        .map_err(StoreError::sqlite("give a controller another chance"))?;
    Ok(())
}

fn turn(connection: &Connection, guest: GuestUid, sha256: &Sha256Hex) -> Result<Turn, StoreError> {
    let Some(progress) = journal_read::open_on(connection, guest)? else { return Ok(Turn::Waits) };
    let Operation::UpdateController(update) = &progress.operation else { return Ok(Turn::Waits) };
    let is_awaited = |at| progress.step(at) == Some(Step::AwaitController);
    let awaited = matches!(progress.status(), Status::During(at) if is_awaited(at));
    Ok(if awaited && update.sha256 == *sha256 { Turn::Now(progress.id) } else { Turn::Waits })
}

fn fetched(connection: &Connection, operation: OperationId) -> Result<Fetched, StoreError> {
    let found: Option<i64> = connection
        .prepare_cached("SELECT at FROM controller_fetched WHERE operation = ?1")
        .and_then(|mut select| select.query_row([operation.to_string()], |row| row.get(0)).optional())
        .map_err(StoreError::sqlite("read who fetched a controller"))?;
    Ok(match found {
        Some(at) => Fetched::Yes(time(at)?),
        None => Fetched::No,
    })
}

fn trial(
    connection: &Connection,
    guest: GuestUid,
    sha256: &Sha256Hex,
    hello: Option<&HelloRecord>,
) -> Result<TrialVerdict, StoreError> {
    let open = match journal_read::open_on(connection, guest)?.map(|progress| progress.operation) {
        Some(Operation::UpdateController(update)) if update.sha256 == *sha256 => OpenTrial::Yes,
        Some(_) | None => OpenTrial::No,
    };
    let own = verdicts(connection)?.into_iter().find(|one| one.guest == guest && one.sha256 == *sha256);
    Ok(trial_verdict(open, own.map(|own| own.outcome), hello))
}

/// What guests fetched so lately that they may run it on trial.
pub(super) fn trials(connection: &Connection, now: Timestamp) -> Result<Vec<ControllerTrial>, StoreError> {
    let since = now.checked_sub(TRIAL_MOST).unwrap_or(Timestamp::MIN);
    // What was fetched later than in a minute was fetched before the clock was set back.
    let until = now.checked_add(SignedDuration::from_mins(1)).unwrap_or(Timestamp::MAX);
    let rows: Vec<(String, i64)> = connection
        .prepare_cached(
            "SELECT spec, at FROM controller_fetched JOIN operation ON id = controller_fetched.operation
             WHERE at > ?1 AND at <= ?2 ORDER BY at",
        )
        .and_then(|mut select| {
            let rows =
                select.query_map([micros(since), micros(until)], |row| Ok((row.get(0)?, row.get(1)?)))?;
            rows.collect()
        })
        .map_err(StoreError::sqlite("read which guests try a controller"))?;
    let mut trials = Vec::new();
    for (spec, at) in rows {
        let operation: Operation = from_json("an operation", &spec)?;
        if let Operation::UpdateController(update) = &operation {
            let (guest, until) = (update.target().uid, update.trial_ends(time(at)?));
            trials.push(ControllerTrial { guest, sha256: update.sha256.clone(), until });
        }
    }
    Ok(trials)
}

/// The builds of which guests on trial heard the verdict from this run of the agent. A guest that fetches anew is on trial
/// anew.
#[derive(Default)]
pub(super) struct AnsweredTrials(Mutex<BTreeMap<GuestUid, Sha256Hex>>);

impl AnsweredTrials {
    fn all(&self) -> MutexGuard<'_, BTreeMap<GuestUid, Sha256Hex>> {
        // A poisoned lock still guards valid digests.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes away those whose guest heard the verdict.
    pub(super) fn keep_open(&self, trials: &mut Vec<ControllerTrial>) {
        let answered = self.all();
        trials.retain(|trial| answered.get(&trial.guest) != Some(&trial.sha256));
    }
}

/// The builds that guests put their previous program back for, as they last said. A guest repeats it with each hello, so
/// it is on no disk.
#[derive(Default)]
pub(super) struct ReturnedBuilds(Mutex<BTreeMap<GuestUid, Sha256Hex>>);

impl ReturnedBuilds {
    fn all(&self) -> MutexGuard<'_, BTreeMap<GuestUid, Sha256Hex>> {
        // A poisoned lock still guards valid digests.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store {
    /// What becomes of a build that a guest runs on trial.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn trial_of(&self, guest: GuestUid, sha256: Sha256Hex) -> Result<TrialVerdict, StoreError> {
        let hello = self.last_word(guest).filter(|hello| hello.build.as_ref() == Some(&sha256));
        let asked = sha256.clone();
        let verdict = self.read(move |connection| trial(connection, guest, &sha256, hello.as_ref())).await?;
        match verdict {
            TrialVerdict::Undecided => {}
            TrialVerdict::Confirmed | TrialVerdict::TakeBack => {
                self.answered.all().insert(guest, asked);
            }
        }
        Ok(verdict)
    }

    /// A guest says that it put its previous program back for this build.
    pub fn note_returned(&self, guest: GuestUid, sha256: Sha256Hex) {
        self.answered.all().insert(guest, sha256.clone());
        self.returned.all().insert(guest, sha256);
    }

    /// Whether a guest said so of this build.
    #[must_use]
    pub fn returned(&self, guest: GuestUid, sha256: &Sha256Hex) -> Returned {
        if self.returned.all().get(&guest) == Some(sha256) { Returned::Yes } else { Returned::No }
    }

    /// Whether this guest may run these bytes now.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn turn_of(&self, guest: GuestUid, sha256: Sha256Hex) -> Result<Turn, StoreError> {
        self.read(move |connection| turn(connection, guest, &sha256)).await
    }

    /// Whether the guest of this update began to fetch the bytes.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn fetched(&self, operation: OperationId) -> Result<Fetched, StoreError> {
        self.read(move |connection| fetched(connection, operation)).await
    }

    /// Notes that it begins to. When this returns, it is on disk. What the guest said of an earlier exchange is over then.
    ///
    /// # Errors
    /// [`StoreError`]; then no byte may be sent.
    pub async fn note_fetched(
        &self,
        guest: GuestUid,
        operation: OperationId,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        self.returned.all().remove(&guest);
        self.answered.all().remove(&guest);
        self.write(Part::Operations, "note who fetched a controller", move |transaction| {
            transaction
                .execute(
                    "INSERT OR IGNORE INTO controller_fetched (operation, at) VALUES (?1, ?2)",
                    (operation.to_string(), micros(at)),
                )
                .map_err(StoreError::sqlite("note who fetched a controller"))?;
            Ok::<_, StoreError>(())
        })
        .await
    }
}
