//! The queue of notices: insertion, cancellation, combination.

use std::collections::BTreeMap;

use alerts::digest;
use alerts::notice::{DedupeKey, Notice};
use alerts::outbox::reconcile;
use holdfast_protocol::alert::DeliveryOutcome;
use holdfast_protocol::id::ReceiverName;
use jiff::Timestamp;

use super::super::columns::Time;
use super::super::sql::{self, Row, params};
use super::super::writer::Tx;
use super::rows::{Json, column, json, scope_text};
use crate::domain::alerting::notice_text::title;
use crate::store::NOTICES_WAITING_MAX;

/// Puts a notice into the outbox.
pub(super) fn queue(tx: &Tx<'_>, notice: Notice) -> sql::Result<()> {
    let waiting = concerned(tx, &notice)?;
    let reconciled = reconcile(&waiting.values().cloned().collect::<Vec<_>>(), notice);
    let number_of =
        |key: &DedupeKey| waiting.iter().find(|(_, waiting)| waiting.key == *key).map(|(number, _)| *number);
    for less in &reconciled.replace {
        if let Some(number) = number_of(&less.key) {
            tx.prepare_cached("UPDATE alert_outbox SET body = $2 WHERE number = $1")?
                .execute(params![number, json(less)?])?;
            index(tx, number, less)?;
        }
    }
    for key in &reconciled.cancel {
        if let Some((number, notice)) = waiting.iter().find(|(_, waiting)| waiting.key == *key) {
            end(tx, *number, notice, (DeliveryOutcome::Cancelled, None, 0), notice.made_at)?;
        }
    }
    if let Some(notice) = reconciled.queue {
        insert(tx, &notice)?;
        combine_many(tx, &notice.receiver, notice.made_at)?;
    }
    Ok(())
}

/// The waiting notices of the same receiver that are about one of the same incidents, the oldest first.
fn concerned(tx: &Tx<'_>, notice: &Notice) -> sql::Result<BTreeMap<i64, Notice>> {
    let sql = "SELECT o.number, o.body FROM alert_outbox_incidents AS i
               JOIN alert_outbox AS o ON o.number = i.outbox
               WHERE i.scope = $1 AND i.incident = $2 AND o.receiver = $3 AND o.state = 'waiting'";
    let mut found = BTreeMap::new();
    for incident in &notice.incidents {
        let key =
            params![scope_text(incident.id.scope), column(incident.id.number), notice.receiver.as_str()];
        let statement = tx.prepare_cached(sql)?;
        let rows = statement.query_map(key, read)?;
        for row in rows {
            let (number, notice) = row?;
            found.insert(number, notice);
        }
    }
    Ok(found)
}

fn read(row: &Row<'_>) -> sql::Result<(i64, Notice)> {
    Ok((row.get(0)?, row.get::<_, Json<Notice>>(1)?.0))
}

/// Puts a notice in as it is.
pub(super) fn insert(tx: &Tx<'_>, notice: &Notice) -> sql::Result<()> {
    let sql = "INSERT INTO alert_outbox (key, receiver, made_at, next_at, state, body)
               VALUES ($1, $2, $3, $4, 'waiting', $5) RETURNING number";
    let row = params![
        notice.key.as_str(),
        notice.receiver.as_str(),
        Time(notice.made_at),
        Time(notice.not_before),
        json(notice)?
    ];
    let number = tx.prepare_cached(sql)?.query_row(row, |row| row.get(0))?;
    index(tx, number, notice)?;
    tx.mark_emitted();
    Ok(())
}

/// Notes which incidents a waiting notice is about.
fn index(tx: &Tx<'_>, number: i64, notice: &Notice) -> sql::Result<()> {
    tx.prepare_cached("DELETE FROM alert_outbox_incidents WHERE outbox = $1")?.execute([number])?;
    for incident in &notice.incidents {
        let sql = "INSERT INTO alert_outbox_incidents (scope, incident, outbox) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";
        let scope = scope_text(incident.id.scope);
        tx.prepare_cached(sql)?.execute(params![scope, column(incident.id.number), number])?;
    }
    Ok(())
}

/// Combines what waits for a receiver, where that is too much.
fn combine_many(tx: &Tx<'_>, receiver: &ReceiverName, now: Timestamp) -> sql::Result<()> {
    let sql = "SELECT count(*) FROM alert_outbox WHERE receiver = $1 AND state = 'waiting'";
    let waiting: u32 = tx.prepare_cached(sql)?.query_row([receiver.as_str()], |row| row.get(0))?;
    if waiting <= NOTICES_WAITING_MAX {
        return Ok(());
    }
    let sql =
        "SELECT number, body FROM alert_outbox WHERE receiver = $1 AND state = 'waiting' ORDER BY number";
    let waiting: Vec<(i64, Notice)> =
        tx.prepare_cached(sql)?.query_map([receiver.as_str()], read)?.collect::<sql::Result<_>>()?;
    let combined = digest::combine(waiting.iter().map(|(_, notice)| notice.clone()));
    for (number, notice) in &waiting {
        if combined.replaced.contains(&notice.key) {
            end(tx, *number, notice, (DeliveryOutcome::Combined, None, 0), now)?;
        }
    }
    for notice in &combined.notices {
        insert(tx, notice)?;
    }
    Ok(())
}

/// Takes a notice out of the outbox, and writes down what became of it.
pub(super) fn end(
    tx: &Tx<'_>,
    number: i64,
    notice: &Notice,
    (outcome, remark, tries): (DeliveryOutcome, Option<&str>, u32),
    at: Timestamp,
) -> sql::Result<()> {
    tx.prepare_cached("DELETE FROM alert_outbox WHERE number = $1")?.execute([number])?;
    let sql = "INSERT INTO alert_deliveries (at, receiver, key, made_at, tries, outcome, remark, title)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
    tx.prepare_cached(sql)?.execute(params![
        Time(at),
        notice.receiver.as_str(),
        notice.key.as_str(),
        Time(notice.made_at),
        tries,
        outcome.as_str(),
        remark,
        title(notice, notice.severity())
    ])?;
    Ok(())
}
