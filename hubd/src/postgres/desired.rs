//! Desired documents: history and compare-and-set.

use async_trait::async_trait;
use holdfast_protocol::desired::Reason;
use holdfast_protocol::generation::{Generation, Offer};
use holdfast_protocol::id::OperatorName;
use holdfast_protocol::operator::{DesiredVersion, HostState};

use super::columns::{Number, Text, Time};
use super::events::emit;
use super::host_row::{find, report, sections};
use super::sql::{self, Connection, Error, FromColumn, OptionalExtension as _, Row, ValueRef, params};
use super::writer::Tx;
use super::{Failed, Postgres};
use crate::domain::desired::{PutError, judge_document};
use crate::domain::event::{EventKind, NewEvent};
use crate::domain::host::HostRef;
use crate::store::{By, DesiredDocuments, Put, PutDone, StoreError, WriteError};

struct ReasonColumn(Reason);

impl FromColumn for ReasonColumn {
    fn column(value: ValueRef<'_>) -> sql::Result<Self> {
        let reason = Reason::try_from(value.as_str()?.to_owned());
        reason.map(Self).map_err(|error| Error::Unreadable(error.into()))
    }
}

fn read(row: &Row<'_>) -> sql::Result<DesiredVersion> {
    Ok(DesiredVersion {
        generation: row.get::<_, Number>("generation")?.0,
        content: row.get("content")?,
        author: row.get::<_, Text<OperatorName>>("author")?.0,
        reason: row.get::<_, ReasonColumn>("reason")?.0,
        put_at: row.get::<_, Time>("put_at")?.0,
        document: row.get("document")?,
    })
}

const COLUMNS: &str = "generation, content, author, reason, put_at, document";

pub(super) fn newest(connection: &Connection, host: i64) -> sql::Result<Option<DesiredVersion>> {
    let sql = format!("SELECT {COLUMNS} FROM desired WHERE host = $1 ORDER BY generation DESC LIMIT 1");
    connection.prepare_cached(&sql)?.query_row([host], read).optional()
}

#[async_trait]
impl DesiredDocuments for Postgres {
    async fn desired(&self, host: HostRef) -> Result<Option<Option<DesiredVersion>>, StoreError> {
        self.read("read a desired document", move |connection| {
            let Some(record) = find(connection, &host)? else { return Ok(None) };
            Ok(Some(newest(connection, record.number)?))
        })
        .await
    }

    async fn desired_history(
        &self,
        host: HostRef,
        before: Option<Generation>,
        limit: u32,
    ) -> Result<Option<Vec<DesiredVersion>>, StoreError> {
        self.read("read the history of a desired document", move |connection| {
            let Some(record) = find(connection, &host)? else { return Ok(None) };
            let sql = format!(
                "SELECT {COLUMNS} FROM desired WHERE host = $1 AND generation < $2
                 ORDER BY generation DESC LIMIT $3"
            );
            let before = before.map_or(i64::MAX, |before| i64::try_from(before.number()).unwrap_or(i64::MAX));
            let rows: sql::Result<_> = connection
                .prepare_cached(&sql)?
                .query_map(params![record.number, before, limit], read)?
                .collect();
            rows.map(Some)
        })
        .await
    }

    async fn put_desired(&self, by: By, put: Put) -> Result<Option<PutDone>, WriteError<PutError>> {
        self.mutate("put a desired document", by, move |tx, by| put_document(tx, by, &put)).await
    }
}

/// Puts a document. The checks are the same whoever asks for it.
pub(super) fn put_document(tx: &Tx<'_>, by: &By, put: &Put) -> Result<Option<PutDone>, Failed<PutError>> {
    let Some(record) = find(tx, &put.host)? else { return Ok(None) };
    if record.view.state == HostState::Revoked {
        return Ok(None);
    }
    let current = newest(tx, record.number)?;
    let held = record.view.held;
    let delivered = sections(report(tx, record.number)?)?;
    match judge_document(current.as_ref(), held, (put.seen, &put.desired), &delivered) {
        Err(error) => return Err(Failed::Refused(error)),
        Ok(Offer::Held) => {
            return Ok(current.map(|version| PutDone { host: record.view.id, version }));
        }
        Ok(Offer::Newer) => {}
    }
    let version = version(by, put);
    insert(tx, record.number, &version, put)?;
    let event = NewEvent {
        at: by.at,
        kind: EventKind::DesiredChanged,
        host: Some(record.view.id),
        actor: Some(by.operator.clone()),
        correlation: by.correlation,
        message: format!(
            "{} is wanted as generation {}: {}",
            record.view.name,
            version.generation,
            put.reason.as_str()
        ),
    };
    emit(tx, &event)?;
    Ok(Some(PutDone { host: record.view.id, version }))
}

fn version(by: &By, put: &Put) -> DesiredVersion {
    let numbered = put.desired.numbered();
    DesiredVersion {
        generation: numbered.generation,
        content: numbered.content.to_string(),
        author: by.operator.clone(),
        reason: put.reason.clone(),
        put_at: by.at,
        document: put.text.clone(),
    }
}

fn insert(tx: &Tx<'_>, host: i64, version: &DesiredVersion, put: &Put) -> sql::Result<()> {
    let sql = "INSERT INTO desired (host, generation, content, author, reason, put_at, document)
               VALUES ($1, $2, $3, $4, $5, $6, $7)";
    tx.prepare_cached(sql)?.execute(params![
        host,
        Number(version.generation),
        version.content,
        version.author.as_str(),
        version.reason.as_str(),
        Time(version.put_at),
        version.document
    ])?;
    let sql = "UPDATE hosts SET wanted = $2, poll_interval_s = $3, alarm_after_s = $4 WHERE number = $1";
    let document = put.desired.document();
    let (poll, alarm) = (document.poll_interval_s.get(), document.alarm_after_s.map(|alarm| alarm.get()));
    tx.prepare_cached(sql)?.execute(params![host, Number(version.generation), poll, alarm])?;
    Ok(())
}
