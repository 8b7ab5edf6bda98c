//! Kept use of hosts and guests.

use async_trait::async_trait;
use holdfast_protocol::id::HostId;
use holdfast_protocol::usage::{UsageSample, UsageSeries, UsageSpan};
use jiff::{SignedDuration, Timestamp};

use super::columns::Id;
use super::host_row::find;
use super::sql::{self, Connection, Error, OptionalExtension as _, Row, params};
use super::writer::Tx;
use super::{Failed, Postgres};
use crate::domain::usage::{RowError, StepRow, UsageRow, accept, rolled_up, series};
use crate::store::{SAMPLE_OLD, StoreError, THINNED_S, Term, Thinned, Usage, UsageQuery, duty};

const fn number(span: UsageSpan) -> u8 {
    match span {
        UsageSpan::Hours2 => 0,
        UsageSpan::Days7 => 1,
        UsageSpan::Days400 => 2,
    }
}

/// The second before which rows of a span are not kept.
fn horizon(span: UsageSpan, now: Timestamp) -> i64 {
    let kept = SignedDuration::from_secs(span.kept_s().into());
    now.checked_sub(kept).unwrap_or(Timestamp::MIN).as_second()
}

fn read(row: &Row<'_>) -> sql::Result<(Timestamp, UsageRow)> {
    let at = Timestamp::from_second(row.get(0)?).map_err(Error::unreadable)?;
    let bytes: Vec<u8> = row.get(1)?;
    Ok((at, UsageRow::from_bytes(&bytes).map_err(Error::unreadable)?))
}

fn rows(
    connection: &Connection,
    host: i64,
    span: UsageSpan,
    (from, before): (i64, i64),
) -> sql::Result<Vec<(Timestamp, UsageRow)>> {
    let sql = "SELECT at, row FROM usage WHERE host = $1 AND span = $2 AND at >= $3 AND at < $4 ORDER BY at";
    connection.prepare_cached(sql)?.query_map(params![host, number(span), from, before], read)?.collect()
}

fn write(tx: &Tx<'_>, host: i64, span: UsageSpan, at: Timestamp, row: &UsageRow) -> sql::Result<()> {
    let bytes = row.to_bytes().map_err(|error: RowError| Error::unwritable(error))?;
    let sql = "INSERT INTO usage (host, span, at, row) VALUES ($1, $2, $3, $4)
               ON CONFLICT (host, span, at) DO UPDATE SET row = excluded.row";
    tx.prepare_cached(sql)?.execute(params![host, number(span), at.as_second(), bytes])?;
    Ok(())
}

/// Makes one row of finer ones, and removes what is past its time.
fn roll_up(tx: &Tx<'_>, host: i64, step: StepRow, now: Timestamp) -> sql::Result<()> {
    let finer = rows(tx, host, step.from, (step.begin.as_second(), step.end.as_second()))?;
    let finer: Vec<UsageRow> = finer.into_iter().map(|(_, row)| row).collect();
    if let Some(row) = step.made_of(&finer) {
        write(tx, host, step.span, step.begin, &row)?;
    }
    for span in [step.from, step.span] {
        let sql = "DELETE FROM usage WHERE host = $1 AND span = $2 AND at < $3";
        tx.prepare_cached(sql)?.execute(params![host, number(span), horizon(span, now)])?;
    }
    Ok(())
}

fn keep(tx: &Tx<'_>, host: HostId, samples: &[UsageSample], now: Timestamp) -> sql::Result<()> {
    let sql = "SELECT number FROM hosts WHERE id = $1";
    let known: Option<i64> =
        tx.prepare_cached(sql)?.query_row([Id(host.uuid())], |row| row.get(0)).optional()?;
    let Some(host) = known else { return Ok(()) };
    let sql = "SELECT max(at) FROM usage WHERE host = $1 AND span = 0";
    let newest: Option<i64> = tx.prepare_cached(sql)?.query_row([host], |row| row.get(0))?;
    let mut newest = newest.and_then(|second| Timestamp::from_second(second).ok());
    for sample in accept(samples, newest, now).0 {
        for step in newest.iter().flat_map(|before| rolled_up(*before, sample.at)) {
            roll_up(tx, host, step, now)?;
        }
        write(tx, host, UsageSpan::Hours2, sample.at, &UsageRow::of(sample))?;
        newest = Some(sample.at);
    }
    Ok(())
}

/// Removes what is past its time of hosts that send nothing any more.
pub(super) fn prune(tx: &Tx<'_>, now: Timestamp) -> sql::Result<()> {
    for span in UsageSpan::ALL {
        let sql = "DELETE FROM usage WHERE span = $1 AND at < $2";
        tx.execute(sql, params![number(span), horizon(span, now)])?;
    }
    Ok(())
}

fn size(connection: &Connection) -> sql::Result<u64> {
    let bytes: i64 =
        connection.prepare_cached("SELECT bytes FROM usage_size")?.query_row([], |row| row.get(0))?;
    Ok(u64::try_from(bytes).unwrap_or_default())
}

/// Removes the oldest hour of hour rows of all hosts; of five-minute rows, where there is no hour row left.
fn thin(tx: &Tx<'_>) -> sql::Result<Thinned> {
    for span in [UsageSpan::Days400, UsageSpan::Days7] {
        let sql =
            "SELECT min((SELECT min(at) FROM usage WHERE host = hosts.number AND span = $1)) FROM hosts";
        let oldest: Option<i64> = tx.prepare_cached(sql)?.query_row([number(span)], |row| row.get(0))?;
        let Some(oldest) = oldest else { continue };
        // By host, so that the key is used.
        let sql = "DELETE FROM usage WHERE host IN (SELECT number FROM hosts) AND span = $1 AND at < $2";
        let before = oldest.saturating_add(THINNED_S);
        tx.prepare_cached(sql)?.execute(params![number(span), before])?;
        return Ok(Thinned::Hour);
    }
    Ok(Thinned::Nothing)
}

#[async_trait]
impl Usage for Postgres {
    async fn usage_bytes(&self) -> Result<u64, StoreError> {
        self.read("read the size of kept use", size).await
    }

    async fn thin_usage(&self, term: &Term<duty::Upkeep>, bytes_max: u64) -> Result<Thinned, StoreError> {
        let thinned = self.write_fenced(term.fence(), "thin kept use", move |tx| {
            let thinned = if size(tx)? > bytes_max { thin(tx)? } else { Thinned::Nothing };
            Ok::<_, Failed<std::convert::Infallible>>(thinned)
        });
        thinned.await.map_err(StoreError::from)
    }

    async fn keep_usage(
        &self,
        samples: Vec<(HostId, Vec<UsageSample>)>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let kept = self.write("keep samples of use", move |tx| {
            for (host, samples) in &samples {
                keep(tx, *host, samples, now)?;
            }
            Ok::<_, Failed<std::convert::Infallible>>(())
        });
        kept.await.map_err(StoreError::from)
    }

    async fn newest_sample(&self, host: HostId, now: Timestamp) -> Result<Option<UsageSample>, StoreError> {
        self.read("read the newest sample of use", move |connection| {
            let since = now.checked_sub(SAMPLE_OLD).unwrap_or(Timestamp::MIN).as_second();
            let sql = "SELECT at, row FROM usage WHERE span = 0 AND at >= $2
                           AND host = (SELECT number FROM hosts WHERE id = $1) ORDER BY at DESC LIMIT 1";
            let newest = connection
                .prepare_cached(sql)?
                .query_row(params![Id(host.uuid()), since], read)
                .optional()?;
            Ok(newest.map(|(at, row)| row.sample(at)))
        })
        .await
    }

    async fn usage(&self, query: UsageQuery, now: Timestamp) -> Result<Option<UsageSeries>, StoreError> {
        self.read("read kept use", move |connection| {
            let Some(record) = find(connection, &query.host)? else { return Ok(None) };
            let kept = rows(connection, record.number, query.span, (horizon(query.span, now), i64::MAX))?;
            Ok(Some(series(query.span, query.guest, &kept)))
        })
        .await
    }
}
