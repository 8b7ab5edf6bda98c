//! The state of hosts, and the snapshots of it that are kept.

use std::sync::Arc;

use async_trait::async_trait;
use holdfast_protocol::id::HostName;
use holdfast_protocol::state::StateSnapshotView;
use jiff::Timestamp;
use jiff::civil::Date;
use rusqlite::{OptionalExtension as _, Row, params};

use super::columns::{Text, Time, digest};
use super::desired::newest;
use super::host_row::{COLUMNS, read as read_host, report, sections};
use super::hosts::complete;
use super::settled::Scope;
use super::writer::{Shape, Tx};
use super::{Failed, Sqlite};
use crate::domain::state_retention::{KeptSnapshot, expired};
use crate::domain::state_snapshot::StateSource;
use crate::store::{KeepOutcome, NewStateSnapshot, StateSnapshots, StoreError};

const VIEW: &str =
    "number, day, taken_at, hosts, guests, content, document, bytes, length(body) AS stored_bytes";

fn read(row: &Row<'_>) -> rusqlite::Result<StateSnapshotView> {
    let count = |name: &str| Ok::<_, rusqlite::Error>(u64::try_from(row.get::<_, i64>(name)?).unwrap_or(0));
    Ok(StateSnapshotView {
        number: count("number")?,
        day: row.get::<_, Text<Date>>("day")?.0,
        taken_at: row.get::<_, Time>("taken_at")?.0,
        hosts: row.get("hosts")?,
        guests: row.get("guests")?,
        content: digest(row, "content")?,
        document: digest(row, "document")?,
        bytes: count("bytes")?,
        stored_bytes: count("stored_bytes")?,
    })
}

fn keep(tx: &Tx<'_>, new: &NewStateSnapshot) -> rusqlite::Result<KeepOutcome> {
    let sql = "INSERT INTO state_snapshots (day, taken_at, hosts, guests, content, document, bytes, body)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT (day) DO NOTHING";
    let kept = tx.prepare_cached(sql)?.execute(params![
        new.day.to_string(),
        Time(new.taken_at),
        new.tail.hosts,
        new.tail.guests,
        new.tail.content.as_str(),
        new.tail.document.as_str(),
        i64::try_from(new.bytes).unwrap_or(i64::MAX),
        new.body,
    ])?;
    thin(tx, new.bytes_max)?;
    Ok(if kept == 0 { KeepOutcome::Known } else { KeepOutcome::Kept })
}

fn thin(tx: &Tx<'_>, bytes_max: u64) -> rusqlite::Result<()> {
    let sql = "SELECT number, day, length(body) FROM state_snapshots";
    let read = |row: &Row<'_>| {
        Ok(KeptSnapshot {
            number: row.get(0)?,
            day: row.get::<_, Text<Date>>(1)?.0,
            stored_bytes: u64::try_from(row.get::<_, i64>(2)?).unwrap_or(0),
        })
    };
    let kept: Vec<KeptSnapshot> =
        tx.prepare_cached(sql)?.query_map([], read)?.collect::<rusqlite::Result<_>>()?;
    for number in expired(&kept, bytes_max) {
        tx.prepare_cached("DELETE FROM state_snapshots WHERE number = ?1")?.execute([number])?;
    }
    Ok(())
}

#[async_trait]
impl StateSnapshots for Sqlite {
    async fn state_sources(
        &self,
        after: Option<(HostName, i64)>,
        limit: u32,
        now: Timestamp,
    ) -> Result<Vec<StateSource>, StoreError> {
        let action = "read the state of hosts";
        let settled = self.settled.clone();
        let rows = self
            .read(action, move |connection| {
                let sql = format!(
                    "SELECT {COLUMNS} FROM hosts WHERE (name, number) > (?1, ?2) AND status <> 'revoked'
                     ORDER BY name, number LIMIT ?3"
                );
                let (name, number) =
                    after.as_ref().map_or(("", 0), |(name, number)| (name.as_str(), *number));
                // All that is read sees one commit.
                let tx = connection.unchecked_transaction()?;
                let mut statement = tx.prepare_cached(&sql)?;
                let records = statement.query_map(params![name, number, limit], read_host)?;
                let rows = records.map(|record| {
                    let record = complete(&tx, &settled, record?, now)?;
                    let number = record.number;
                    Ok((record, report(&tx, number)?, newest(&tx, number)?))
                });
                rows.collect::<rusqlite::Result<Vec<_>>>()
            })
            .await?;
        let sources = rows.into_iter().map(|(record, texts, desired)| {
            let sections = sections(texts)?;
            Ok(StateSource { view: record.view, number: record.number, sections, desired })
        });
        let sources: Result<Vec<_>, serde_json::Error> = sources.collect();
        sources.map_err(|source| StoreError::Damaged { action, source: Arc::new(source) })
    }

    async fn keep_state_snapshot(&self, new: NewStateSnapshot) -> Result<KeepOutcome, StoreError> {
        let kept = self.write_within("keep a snapshot of state", Shape::Single, Scope::NoHost, move |tx| {
            Ok::<_, Failed<std::convert::Infallible>>(keep(tx, &new)?)
        });
        kept.await.map_err(StoreError::from)
    }

    async fn has_state_snapshot(&self, day: Date) -> Result<bool, StoreError> {
        self.read("look for a snapshot of state", move |connection| {
            connection
                .prepare_cached("SELECT 1 FROM state_snapshots WHERE day = ?1")?
                .exists([day.to_string()])
        })
        .await
    }

    async fn state_snapshots(
        &self,
        before: Option<i64>,
        limit: u32,
    ) -> Result<Vec<StateSnapshotView>, StoreError> {
        self.read("list snapshots of state", move |connection| {
            let sql =
                format!("SELECT {VIEW} FROM state_snapshots WHERE number < ?1 ORDER BY number DESC LIMIT ?2");
            let before = before.unwrap_or(i64::MAX);
            connection.prepare_cached(&sql)?.query_map(params![before, limit], read)?.collect()
        })
        .await
    }

    async fn state_snapshot(&self, number: i64) -> Result<Option<Vec<u8>>, StoreError> {
        self.read("read a snapshot of state", move |connection| {
            let sql = "SELECT body FROM state_snapshots WHERE number = ?1";
            connection.prepare_cached(sql)?.query_row([number], |row| row.get(0)).optional()
        })
        .await
    }
}
