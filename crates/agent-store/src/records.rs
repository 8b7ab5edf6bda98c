//! All records, in the form that the plan takes.

use std::collections::BTreeMap;
use std::sync::Arc;

use holdfast_protocol::generation::Generation;
use holdfast_protocol::id::GuestUid;
use holdfast_protocol::operation::OperationKind;
use jiff::Timestamp;
use rusqlite::Connection;

use super::answer_cache::time_step;
use super::columns::{from_json, micros, parsed, time};
use super::{
    Store, StoreError, controller, copies, escrow, growth, guest, inherited, kinds, protection, quota,
    release, request, restore_test, roster, snapshot, storage, tier, window,
};
use agent_core::model::policy::BrakeRule;
use agent_core::model::records::{
    Attempts, GuestRecord, OpenOperation, ParkedOperation, PassedBy, Records, Renumbered, RenumberedBy,
    Touched,
};
use agent_core::operation::{ChangeLimit, Operation};

fn guests(connection: &Connection) -> Result<Vec<GuestRecord>, StoreError> {
    // Uids are written in one form, so their text sorts as they do.
    let rows: Vec<guest::RawGuest> = connection
        .prepare_cached(&format!("SELECT {} FROM guest ORDER BY uid", guest::COLUMNS))
        .and_then(|mut select| select.query_map([], guest::raw)?.collect())
        .map_err(StoreError::sqlite("read the guests"))?;
    rows.into_iter().map(guest::RawGuest::record).collect()
}

fn kind(text: &str) -> Result<OperationKind, StoreError> {
    from_json("an operation's kind", &format!("\"{text}\""))
}

fn open(connection: &Connection) -> Result<Vec<OpenOperation>, StoreError> {
    let rows: Vec<[String; 3]> = connection
        .prepare_cached(
            "SELECT id, kind, h.guest FROM operation JOIN operation_hold AS h ON h.operation = serial
             WHERE ended_at IS NULL ORDER BY serial, h.guest",
        )
        .and_then(|mut select| {
            select.query_map([], |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?]))?.collect()
        })
        .map_err(StoreError::sqlite("read the open operations"))?;
    rows.into_iter()
        .map(|[id, kind_text, guest]| {
            Ok(OpenOperation {
                id: parsed("an operation", &id)?,
                kind: kind(&kind_text)?,
                guest: parsed("a guest", &guest)?,
            })
        })
        .collect()
}

fn parked(connection: &Connection) -> Result<Vec<ParkedOperation>, StoreError> {
    let rows: Vec<([String; 4], Option<String>)> = connection
        .prepare_cached(
            "SELECT id, kind, h.guest, operation.guest, message FROM operation JOIN operation_hold AS h ON h.operation = serial
             WHERE outcome = 'parked' AND serial NOT IN (SELECT operation FROM forgotten) ORDER BY serial, h.guest",
        )
        .and_then(|mut select| {
            select.query_map([], |row| Ok(([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?], row.get(4)?)))?.collect()
        })
        .map_err(StoreError::sqlite("read the parked operations"))?;
    rows.into_iter()
        .map(|([id, kind_text, guest, about], message)| {
            Ok(ParkedOperation {
                id: parsed("an operation", &id)?,
                kind: kind(&kind_text)?,
                guest: parsed("a guest", &guest)?,
                about: parsed("a guest", &about)?,
                message: message.unwrap_or_default(),
            })
        })
        .collect()
}

/// Failures since the last success of the same kind, under the same document: a new document allows new attempts.
/// Successful starts count too, and under any document: a guest that starts and stops again has failed to stay up.
/// Their count ends when it was seen healthy, when a person forgave it, and when we stopped it on purpose.
fn attempts(connection: &Connection, generation: Generation) -> Result<Vec<Attempts>, StoreError> {
    let generation = i64::try_from(generation.number()).map_err(StoreError::unreadable("a generation"))?;
    let rows: Vec<(String, String, u32, i64, Option<String>)> = connection
        .prepare_cached(
            "SELECT guest, kind, count(*), max(ended_at), message FROM operation AS o
             WHERE (kind = 'start' AND outcome IN ('done', 'undone')
                 AND ended_at > coalesce((SELECT at FROM starts_forgiven AS f WHERE f.guest = o.guest), 0)
                 AND serial > coalesce((SELECT max(serial) FROM operation AS d
                     WHERE d.guest = o.guest AND d.kind = 'stop' AND d.outcome = 'done'), 0))
             OR (kind <> 'start' AND generation = ?1 AND outcome = 'undone'
                 AND serial > coalesce((SELECT max(serial) FROM operation AS d
                     WHERE d.guest = o.guest AND d.kind = o.kind AND d.outcome = 'done'), 0))
             GROUP BY guest, kind ORDER BY guest, kind",
        )
        .and_then(|mut select| {
            select
                .query_map([generation], |row| {
                    Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?))
                })?
                .collect()
        })
        .map_err(StoreError::sqlite("read the failed operations"))?;
    rows.into_iter()
        .map(|(guest, kind_text, failed, last, message)| {
            Ok(Attempts {
                guest: parsed("a guest", &guest)?,
                kind: kind(&kind_text)?,
                failed,
                last: time(last)?,
                message: message.unwrap_or_default(),
            })
        })
        .collect()
}

/// Guests that were stopped, restarted or resized for a document within the longest window of the brake.
fn touched(connection: &Connection, now: Timestamp) -> Result<Vec<Touched>, StoreError> {
    let window_micros = i64::from(BrakeRule::WINDOW_MAX_H) * 3_600_000_000;
    let since = micros(now).saturating_sub(window_micros);
    let rows: Vec<(String, i64, Option<String>)> = connection
        .prepare_cached(&format!(
            "SELECT spec, opened_at, job FROM operation LEFT JOIN brake_release_use ON brake_release_use.operation = id
             WHERE operation.kind IN ({}) AND opened_at > ?1",
            kinds::counted()
        ))
        .and_then(|mut select| {
            select.query_map([since], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?.collect()
        })
        .map_err(StoreError::sqlite("read what the brake counts"))?;
    let mut touched = Vec::new();
    for (spec, opened_at, job) in rows {
        let operation: Operation = from_json("an operation", &spec)?;
        if operation.change_limit() == ChangeLimit::Counts {
            let by = if job.is_some() { PassedBy::Release } else { PassedBy::Brake };
            touched.push(Touched { guest: operation.uid(), at: time(opened_at)?, by });
        }
    }
    Ok(touched)
}

/// The messages of guests that were made again and sent no hello then, and none since.
fn silent(connection: &Connection) -> Result<BTreeMap<GuestUid, String>, StoreError> {
    let rows: Vec<(String, String)> = connection
        .prepare_cached(
            "SELECT uid, message FROM guest JOIN operation ON id = made_by
             WHERE place = 'made' AND kind = 'provision' AND outcome = 'done' AND message IS NOT NULL
             AND (hello_at IS NULL OR hello_at < opened_at)",
        )
        .and_then(|mut select| select.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect())
        .map_err(StoreError::sqlite("read who came back silent"))?;
    rows.into_iter().map(|(uid, message)| Ok((parsed("a guest", &uid)?, message))).collect()
}

/// How guests got their VMIDs that were restored after a loss, or replaced by a copy or on a newer image; of all, or of one.
pub(super) fn renumbered(
    connection: &Connection,
    guest: Option<GuestUid>,
) -> Result<BTreeMap<GuestUid, Renumbered>, StoreError> {
    let rows: Vec<(String, String, i64, i64)> = connection
        .prepare_cached(
            "SELECT uid, kind, opened_at, ended_at FROM guest JOIN operation ON id = made_by
             WHERE place = 'made' AND outcome = 'done' AND uid = coalesce(?1, uid)
             AND (kind IN ('swap_guest', 'rebase_guest')
                  OR kind = 'provision' AND json_extract(spec, '$.provision.source.backup') IS NOT NULL)",
        )
        .and_then(|mut select| {
            let guest = guest.map(|guest| guest.to_string());
            select
                .query_map([guest], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?
                .collect()
        })
        .map_err(StoreError::sqlite("read how guests came to their VMIDs"))?;
    rows.into_iter()
        .map(|(uid, kind, opened, ended)| {
            let at = time(ended)?;
            let (by, began_at) = match kind.as_str() {
                // Within a swap the guest's own first backup is taken; within a return none is.
                "swap_guest" => (RenumberedBy::Swap, time(opened)?),
                // Its first one is of the guest as it was before.
                "rebase_guest" => (RenumberedBy::Swap, at),
                _ => (RenumberedBy::Return, at),
            };
            Ok((parsed("a guest", &uid)?, Renumbered { by, began_at, at }))
        })
        .collect()
}

impl Store {
    /// Everything the plan needs to know of the past, as of one moment. Where the time decides what belongs to it, the
    /// moment may be a minute ago.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn records(&self, generation: Generation, now: Timestamp) -> Result<Records, StoreError> {
        let (kept, applied) = (Arc::clone(&self.kept), Arc::clone(&self.applied));
        let records = self
            .read_cached(&self.answers.records, (generation, time_step(now)), move |connection| {
                let protections = protection::all(connection)?;
                Ok(Arc::new(Records {
                    guests: guests(connection)?,
                    open: open(connection)?,
                    parked: parked(connection)?,
                    attempts: attempts(connection, generation)?,
                    touched: touched(connection, now)?,
                    snapshots: snapshot::all(connection)?,
                    stacks_down: window::stacks_down(connection)?,
                    silent: silent(connection)?,
                    heard: BTreeMap::new(),
                    copies: copies::all(connection)?,
                    used_vmids: guest::used_vmids(connection)?,
                    releases: release::all(connection)?,
                    controller_verdicts: controller::verdicts(connection)?,
                    controller_trials: controller::trials(connection, now)?,
                    requests: request::queued(connection)?,
                    backups: kept.all(connection)?,
                    tiers: tier::all(connection)?,
                    renumbered: renumbered(connection, None)?,
                    proofs: restore_test::proofs(connection, now)?,
                    protections,
                    storage: storage::all(connection)?,
                    codes: escrow::codes(connection)?,
                    left: inherited::find(connection)?,
                    tests: restore_test::last(connection, now)?,
                    asked_backups: quota::asked_backups(connection, now)?,
                    last_request: request::last_serial(connection)?,
                    stood_still: window::stood_still(connection, None, now)?,
                    backup_limits: roster::backup_limits(connection)?,
                    growth: growth::all(connection, now)?,
                    applied: applied.all(connection)?,
                }))
            })
            .await?;
        let mut records = Arc::unwrap_or_clone(records);
        self.answered.keep_open(&mut records.controller_trials);
        for record in &mut records.guests {
            if record.hello.is_some() {
                let since = self.would_hear_since(record.uid);
                let last = self.heard.last(record.uid).map_or(since, |hello| hello.at);
                records.heard.insert(record.uid, last.max(since));
            }
            self.heard.freshen(record);
        }
        Ok(records)
    }
}
