//! Check-ins with news, written by a few statements for many hosts.
//!
//! In: check-ins whose news concern their host's own rows. Out: for each its answer after the commit, or the check-in itself,
//! which then goes the writer's way. One or two queries read what is stored of all hosts ([`read`]), [`decide`] judges each by
//! the rules of every engine, and two or three statements write what was decided ([`write`]). Nothing of this can fail for one
//! report alone; where it fails, all go the writer's way, and each has a transaction of its own there or is undone alone.
//!
//! Writers of events take turns by a lock; these check-ins write none and do not take it. A row that changed since it was
//! read is left out: no transaction here holds a row while it decides. Deliberately absent: effects beyond the host's own
//! rows, such as events, alerts, and answers that carry something.

mod decide;
mod read;
mod write;

use std::thread::JoinHandle;

use holdfast_protocol::checkin::Coverage;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};

use self::decide::decide;
use self::read::Locking;
use super::Postgres;
use super::contacts::impatient;
use super::server::Server;
use super::sql::{self, Connection};
use super::writer::PLACE_WAIT;
use crate::store::{Checkin, CheckinReply, StoreError};

/// Check-ins that share a transaction.
const BATCH_MAX: usize = 512;

/// Bytes of sections that share a transaction. One report may be longer and is alone then.
const BATCH_BYTES_MAX: usize = 4 << 20;

/// A check-in on its way, with who waits for the outcome.
pub(super) struct Report {
    checkin: Checkin,
    reply: oneshot::Sender<ReportOutcome>,
}

/// What became of a check-in.
pub(super) enum ReportOutcome {
    Answered(Box<CheckinReply>),
    ForWriter(Box<Checkin>),
}

/// Whether all that a check-in says is of its host's own rows, as far as the check-in shows it.
fn is_of_own_rows(checkin: &Checkin) -> bool {
    !checkin.sections.is_empty()
        && checkin.arriving.coverage != Coverage::Farewell
        && checkin.conditions.set.is_none()
        && checkin.jobs.is_empty()
        && checkin.orders.is_empty()
        && checkin.diagnostic.is_none()
}

impl Postgres {
    /// The answer to a check-in whose news concern its host's own rows, once it is kept.
    pub(super) async fn keep_report(&self, checkin: Checkin) -> Result<ReportOutcome, StoreError> {
        if !is_of_own_rows(&checkin) {
            return Ok(ReportOutcome::ForWriter(Box::new(checkin)));
        }
        let (reply, outcome) = oneshot::channel();
        // A timer is only set where the queue is full.
        match self.reports.try_send(Report { checkin, reply }) {
            Ok(()) => {}
            Err(TrySendError::Closed(_)) => return Err(StoreError::Stopped),
            Err(TrySendError::Full(report)) => {
                match tokio::time::timeout(PLACE_WAIT, self.reports.send(report)).await {
                    Err(_) => return Err(StoreError::Busy),
                    Ok(Err(_)) => return Err(StoreError::Stopped),
                    Ok(Ok(())) => {}
                }
            }
        }
        outcome.await.map_err(|_| StoreError::Stopped)
    }
}

/// It ends when the last [`Postgres`] is dropped and the queue is empty.
pub(super) fn start(server: Server, mut inbox: mpsc::Receiver<Report>) -> std::io::Result<JoinHandle<()>> {
    let run = move || {
        let (mut session, mut batch) = (None, Vec::with_capacity(BATCH_MAX));
        while inbox.blocking_recv_many(&mut batch, BATCH_MAX) > 0 {
            for part in parts(std::mem::take(&mut batch)) {
                keep(&server, &mut session, part);
            }
        }
    };
    std::thread::Builder::new().name("store-reports".to_owned()).spawn(run)
}

/// Batches by the order of ids, each bounded in bytes, with one check-in of a host at most.
fn parts(mut batch: Vec<Report>) -> Vec<Vec<Report>> {
    batch.sort_by_key(|report| (report.checkin.presented.host, report.checkin.arriving.sequence));
    let (mut parts, mut part, mut bytes) = (Vec::new(), Vec::<Report>::new(), 0_usize);
    for report in batch {
        let is_of_last =
            part.last().is_some_and(|last| last.checkin.presented.host == report.checkin.presented.host);
        let own = report.checkin.sections.bytes();
        if !part.is_empty() && (is_of_last || bytes.saturating_add(own) > BATCH_BYTES_MAX) {
            parts.push(std::mem::take(&mut part));
            bytes = 0;
        }
        bytes = bytes.saturating_add(own);
        part.push(report);
    }
    parts.push(part);
    parts
}

/// Keeps a batch, and answers all of it.
fn keep(server: &Server, session: &mut Option<Connection>, batch: Vec<Report>) {
    let kept = match in_transaction(server, session, &batch, Locking::No) {
        Err(error) if error.is_of_locks() => in_transaction(server, session, &batch, Locking::InOrder),
        done => done,
    };
    let kept = kept.unwrap_or_else(|error| {
        // The writer's session tells the same to who asks.
        tracing::warn!(action = "keep_reports", result = "failed", error = %error.sentence());
        Vec::new()
    });
    let mut answers: Vec<Option<CheckinReply>> = batch.iter().map(|_| None).collect();
    for (place, answer) in kept {
        if let Some(kept) = answers.get_mut(place) {
            *kept = Some(answer);
        }
    }
    for (Report { checkin, reply }, answer) in batch.into_iter().zip(answers) {
        let outcome = match answer {
            Some(answer) => ReportOutcome::Answered(Box::new(answer)),
            None => ReportOutcome::ForWriter(Box::new(checkin)),
        };
        // Who asked may be gone; what is kept stays kept.
        drop(reply.send(outcome));
    }
}

type Answers = Vec<(usize, CheckinReply)>;

/// The answers, after the commit. A session that cannot roll back is given up.
fn in_transaction(
    server: &Server,
    session: &mut Option<Connection>,
    batch: &[Report],
    locking: Locking,
) -> sql::Result<Answers> {
    let connection = impatient(server, session.take())?;
    let done = kept(&connection, batch, locking);
    if done.is_ok() || connection.execute_batch("ROLLBACK").is_ok() {
        *session = Some(connection);
    }
    done
}

fn kept(connection: &Connection, batch: &[Report], locking: Locking) -> sql::Result<Answers> {
    connection.execute_batch("BEGIN ISOLATION LEVEL READ COMMITTED")?;
    let stored = read::stored(connection, batch, locking)?;
    let decided = stored.into_iter().filter_map(|stored| {
        let report = batch.get(stored.place)?;
        decide(&report.checkin, stored)
    });
    let mut decided: Vec<_> = decided.collect();
    if !decided.is_empty() {
        let written = write::hosts(connection, &decided)?;
        decided.retain(|one| written.contains(&one.place));
        write::audit_heads(connection, &decided)?;
        write::reports(connection, &decided)?;
    }
    connection.execute_batch("COMMIT")?;
    Ok(decided.into_iter().map(|one| (one.place, one.answer)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::SectionTexts;

    fn report(host: u128, sequence: u64, bytes: usize) -> Report {
        let mut checkin = decide::tests::checkin(host, sequence);
        checkin.sections = SectionTexts { guests: Some("x".repeat(bytes)), ..SectionTexts::default() };
        Report { checkin, reply: oneshot::channel().0 }
    }

    #[test]
    fn a_batch_has_one_check_in_of_a_host_and_a_bound() {
        let batch = vec![
            report(3, 1, 1),
            report(1, 2, BATCH_BYTES_MAX),
            report(1, 1, 1),
            report(2, 1, BATCH_BYTES_MAX + 1),
            report(4, 1, 1),
        ];
        let hosts = |part: &Vec<Report>| -> Vec<(u128, u64)> {
            let key =
                |one: &Report| (one.checkin.presented.host.uuid().as_u128(), one.checkin.arriving.sequence);
            part.iter().map(key).collect()
        };
        let parts: Vec<_> = parts(batch).iter().map(hosts).collect();
        assert_eq!(parts, [vec![(1, 1)], vec![(1, 2)], vec![(2, 1)], vec![(3, 1), (4, 1)]]);
    }

    #[test]
    fn what_is_of_others_is_for_the_writer() {
        let plain = report(1, 1, 1).checkin;
        assert!(is_of_own_rows(&plain));
        let mut farewell = plain.clone();
        farewell.arriving.coverage = Coverage::Farewell;
        let mut unwell = plain.clone();
        unwell.conditions.set = Some(holdfast_protocol::condition::ConditionSet::collect([]));
        let empty = Checkin { sections: SectionTexts::default(), ..plain };
        assert!([farewell, unwell, empty].iter().all(|other| !is_of_own_rows(other)));
    }
}
