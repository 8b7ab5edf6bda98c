//! Quiesce windows from their grant on.
//!
//! Input: an event of a window, from its controller or from the agent. Output: the new state of the window, or why the
//! event is not allowed; the rules are in `operation::window`. A controller may release or cancel its window even when
//! the disk takes no writes. Its event is then kept in memory, counts at once, and is written with the next change of
//! that window. Deliberately absent: waiting, and time; every call passes its moment.

mod look;

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use holdfast_protocol::id::{GuestUid, OperationId};
use jiff::{SignedDuration, Timestamp};
use rusqlite::{Connection, OptionalExtension, Transaction};

use super::columns::{from_json, json, micros, parsed, time};
use super::{Part, Store, StoreError, audit};
use agent_core::model::boot::BootMoment;
use agent_core::model::limits;
use agent_core::model::records::StacksDown;
use agent_core::operation::Operation;
use agent_core::operation::log::Status;
use agent_core::operation::progress::OperationState;
use agent_core::operation::window::{Refused, Window, WindowEvent};

pub use look::WindowLook;

/// The moment of an event.
#[derive(Clone, Debug)]
pub struct Moment {
    /// On the clock that bounds count on.
    pub boot: BootMoment,
    /// By the time of day.
    pub at: Timestamp,
}

/// Why something was not taken in. Nothing was changed then.
#[derive(Debug, thiserror::Error)]
pub enum SayError {
    /// No window of this id was granted.
    #[error("no quiesce window of this id was granted")]
    Unknown,
    /// The event is not allowed in this state.
    #[error(transparent)]
    Refused(#[from] Refused),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The events that arrived while nothing could be written, in order.
#[derive(Default)]
pub(super) struct Unwritten(Mutex<BTreeMap<OperationId, Vec<(WindowEvent, Moment)>>>);

impl Unwritten {
    fn all(&self) -> MutexGuard<'_, BTreeMap<OperationId, Vec<(WindowEvent, Moment)>>> {
        // A poisoned lock still guards valid messages and times.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn of(&self, id: OperationId) -> Vec<(WindowEvent, Moment)> {
        self.all().get(&id).cloned().unwrap_or_default()
    }
}

/// The window with the events that could not be written yet.
fn with(window: Window, unwritten: &[(WindowEvent, Moment)]) -> Window {
    unwritten.iter().fold(window, |window, (said, moment)| window.apply(said, &moment.boot).unwrap_or(window))
}

/// A window as its row has it.
pub(super) fn find(connection: &Connection, id: OperationId) -> Result<Option<Window>, StoreError> {
    let body: Option<String> = connection
        .prepare_cached("SELECT body FROM quiesce_window WHERE operation = ?1")
        .and_then(|mut select| select.query_row([id.to_string()], |row| row.get(0)).optional())
        .map_err(StoreError::sqlite("read a quiesce window"))?;
    body.map(|body| from_json("a quiesce window", &body)).transpose()
}

fn day_before(at: Timestamp) -> Timestamp {
    at.checked_sub(limits::STOOD_STILL).unwrap_or(Timestamp::MIN)
}

/// How long programs were stopped for windows of the last day, for each guest that had one; of all, or of one. A window
/// dated in the future was granted under a wrong clock, and does not count for this day.
pub(super) fn stood_still(
    connection: &Connection,
    guest: Option<GuestUid>,
    now: Timestamp,
) -> Result<BTreeMap<GuestUid, SignedDuration>, StoreError> {
    let latest = now.checked_add(limits::CLOCKS_APART).unwrap_or(Timestamp::MAX);
    let rows: Vec<(String, String)> = connection
        .prepare_cached(
            "SELECT guest, body FROM quiesce_window
             WHERE granted_at BETWEEN ?1 AND ?2 AND guest = coalesce(?3, guest)",
        )
        .and_then(|mut select| {
            let guest = guest.map(|guest| guest.to_string());
            let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
            select.query_map((micros(day_before(now)), micros(latest), guest), read)?.collect()
        })
        .map_err(StoreError::sqlite("count how long programs stood still"))?;
    let mut stood: BTreeMap<GuestUid, SignedDuration> = BTreeMap::new();
    for (guest, body) in rows {
        let window: Window = from_json("a quiesce window", &body)?;
        let sum = stood.entry(parsed("a guest", &guest)?).or_default();
        let one = SignedDuration::try_from(window.stood_still()).unwrap_or(SignedDuration::MAX);
        *sum = sum.saturating_add(one);
    }
    Ok(stood)
}

/// It is granted, in the same breath as its step succeeds. A second grant of one window changes nothing.
pub(super) fn granted(
    transaction: &Transaction<'_>,
    after: &OperationState,
    window: &Window,
    at: Timestamp,
) -> Result<(), StoreError> {
    let guest = after.operation.uid().to_string();
    transaction
        .execute(
            "INSERT OR IGNORE INTO quiesce_window (operation, guest, body, granted_at) VALUES (?1, ?2, ?3, ?4)",
            (after.id.to_string(), &guest, json("a quiesce window", window)?, micros(at)),
        )
        .map_err(StoreError::sqlite("grant a quiesce window"))?;
    transaction
        .execute(
            "DELETE FROM quiesce_window WHERE guest = ?1 AND operation NOT IN
             (SELECT operation FROM quiesce_window WHERE guest = ?1 ORDER BY granted_at DESC LIMIT ?2)
             AND (granted_at < ?3 OR operation NOT IN
             (SELECT operation FROM quiesce_window WHERE guest = ?1 ORDER BY granted_at DESC LIMIT ?4))",
            (&guest, limits::WINDOWS_PER_GUEST, micros(day_before(at)), limits::WINDOWS_PER_DAY),
        )
        .map_err(StoreError::sqlite("forget old quiesce windows"))?;
    Ok(())
}

fn put(transaction: &Transaction<'_>, id: OperationId, window: &Window) -> Result<(), StoreError> {
    transaction
        .execute(
            "UPDATE quiesce_window SET body = ?2 WHERE operation = ?1",
            (id.to_string(), json("a quiesce window", window)?),
        )
        .map_err(StoreError::sqlite("write a quiesce window"))?;
    // A release may arrive long after the backup was found: the label follows the state known then.
    transaction
        .execute(
            "UPDATE backup SET label = ?2 WHERE operation = ?1 AND label IS NOT ?2",
            (id.to_string(), json("a backup's label", &window.label())?),
        )
        .map_err(StoreError::sqlite("name a backup"))?;
    Ok(())
}

/// The operation of a window ended in another way than done: there is nothing to wait for any more. No moment is
/// needed: a bound that passed meanwhile ends the window the same way for every reader.
pub(super) fn ended(transaction: &Transaction<'_>, after: &OperationState) -> Result<(), StoreError> {
    let (Operation::QuiescedBackup(_), Status::Undone | Status::Parked) = (&after.operation, after.status())
    else {
        return Ok(());
    };
    let (Some(window), Some(problem)) = (find(transaction, after.id)?, after.view().problem) else {
        return Ok(());
    };
    match window.apply(&WindowEvent::CameToNothing(problem), &window.granted) {
        Ok(closed) => put(transaction, after.id, &closed),
        Err(_) => Ok(()),
    }
}

/// Events of its controller are in the guest's own audit; findings of the agent are in the journal.
fn note(
    transaction: &Transaction<'_>,
    (guest, id): (GuestUid, OperationId),
    said: &WindowEvent,
    at: Timestamp,
) -> Result<(), StoreError> {
    let (action, detail) = match said {
        WindowEvent::Quiesced(said) => {
            ("window_quiesced", format!("{} stacks stand still", said.stacks.len()))
        }
        WindowEvent::Released(said) if said.down.is_empty() => ("window_released", String::new()),
        WindowEvent::Released(said) => {
            let names: Vec<&str> = said.down.iter().map(|one| one.stack.as_str()).collect();
            ("window_released", format!("not started: {}", names.join(", ")))
        }
        WindowEvent::Cancelled => ("window_given_up", String::new()),
        WindowEvent::Captured => ("window_captured", String::new()),
        WindowEvent::Began | WindowEvent::CameToNothing(_) => return Ok(()),
    };
    let line = audit::Line { at, action, guest: Some(guest), operation: Some(id), detail: &detail };
    audit::append(transaction, &line)
}

fn say(
    transaction: &Transaction<'_>,
    id: OperationId,
    said: &WindowEvent,
    moment: &Moment,
    unwritten: &[(WindowEvent, Moment)],
) -> Result<Window, SayError> {
    let guest: Option<String> = transaction
        .prepare_cached("SELECT guest FROM quiesce_window WHERE operation = ?1")
        .and_then(|mut select| select.query_row([id.to_string()], |row| row.get(0)).optional())
        .map_err(StoreError::sqlite("read a quiesce window"))?;
    let (Some(guest), Some(kept)) = (guest, find(transaction, id)?) else { return Err(SayError::Unknown) };
    let guest: GuestUid = parsed("a guest", &guest)?;
    let before = with(kept.clone(), unwritten);
    let after = before.apply(said, &moment.boot)?;
    if after != kept {
        put(transaction, id, &after)?;
        for (said, moment) in unwritten {
            released(transaction, id, said, moment.at)?;
            note(transaction, (guest, id), said, moment.at)?;
        }
    }
    if after != before {
        note(transaction, (guest, id), said, moment.at)?;
    }
    released(transaction, id, said, moment.at)?;
    Ok(after)
}

/// When the last message about the stacks came.
fn released(
    transaction: &Transaction<'_>,
    id: OperationId,
    said: &WindowEvent,
    at: Timestamp,
) -> Result<(), StoreError> {
    if !matches!(said, WindowEvent::Released(_)) {
        return Ok(());
    }
    transaction
        .execute(
            "UPDATE quiesce_window SET released_at = ?2 WHERE operation = ?1",
            (id.to_string(), micros(at)),
        )
        .map_err(StoreError::sqlite("note a release"))?;
    Ok(())
}

/// The stacks that did not come back, by the last message of each guest's controller.
pub(super) fn stacks_down(connection: &Connection) -> Result<Vec<StacksDown>, StoreError> {
    let rows: Vec<(String, String, i64)> = connection
        .prepare_cached(
            "SELECT guest, body, max(released_at) FROM quiesce_window WHERE released_at IS NOT NULL
             GROUP BY guest ORDER BY guest",
        )
        .and_then(|mut select| {
            select.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?.collect()
        })
        .map_err(StoreError::sqlite("read the last releases"))?;
    let mut all = Vec::new();
    for (guest, body, at) in rows {
        let window: Window = from_json("a quiesce window", &body)?;
        if !window.down().is_empty() {
            let down = window.down().to_vec();
            all.push(StacksDown { guest: parsed("a guest", &guest)?, down, at: time(at)? });
        }
    }
    Ok(all)
}

impl Store {
    /// A window that was granted.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn window(&self, id: OperationId) -> Result<Option<Window>, StoreError> {
        let kept = self.read(move |connection| find(connection, id)).await?;
        Ok(kept.map(|window| with(window, &self.unwritten.of(id))))
    }

    /// Takes an event of a window. It is on disk when this returns. Where nothing can be written, a release or a
    /// cancellation is kept in memory.
    ///
    /// # Errors
    /// [`SayError`]; nothing was changed then.
    pub async fn say_of_window(
        &self,
        id: OperationId,
        said: WindowEvent,
        moment: Moment,
    ) -> Result<Window, SayError> {
        let unwritten = self.unwritten.of(id);
        let count = unwritten.len();
        let (heard, when) = (said.clone(), moment.clone());
        let written = self
            .write(Part::Windows, "write a quiesce window", move |transaction| {
                say(transaction, id, &heard, &when, &unwritten)
            })
            .await;
        match written {
            Ok(window) => {
                self.forget_unwritten(id, count);
                Ok(window)
            }
            Err(SayError::Store(refusing)) if self.refusal().is_some() => {
                self.hear_unwritten(id, said, moment, refusing).await
            }
            Err(error) => Err(error),
        }
    }

    fn forget_unwritten(&self, id: OperationId, count: usize) {
        let mut all = self.unwritten.all();
        if let Some(left) = all.get_mut(&id) {
            left.drain(..count.min(left.len()));
            if left.is_empty() {
                all.remove(&id);
            }
        }
    }

    /// A controller's message that programs run again is accepted even when the disk takes no writes.
    async fn hear_unwritten(
        &self,
        id: OperationId,
        said: WindowEvent,
        moment: Moment,
        refusing: StoreError,
    ) -> Result<Window, SayError> {
        if !matches!(said, WindowEvent::Released(_) | WindowEvent::Cancelled) {
            return Err(refusing.into());
        }
        let window = self.window(id).await?.ok_or(SayError::Unknown)?;
        let after = window.apply(&said, &moment.boot)?;
        if after != window {
            let mut all = self.unwritten.all();
            let heard = all.entry(id).or_default();
            // The last message of each kind counts, so a controller that repeats itself fills no memory.
            heard.retain(|(earlier, _)| std::mem::discriminant(earlier) != std::mem::discriminant(&said));
            heard.push((said, moment));
            drop(all);
            self.report(Part::Windows);
        }
        Ok(after)
    }
}

#[cfg(test)]
mod tests;
