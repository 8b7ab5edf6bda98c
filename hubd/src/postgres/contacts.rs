//! Check-ins without news, written by one statement for many hosts.
//!
//! In: check-ins that have no section. Out: for each whether it was kept, after the commit. One is kept here when nothing
//! but its time and its number is new and nothing waits for the host; the server decides that with the host's row locked.
//! A wait for a row that another transaction holds is short, and ends with a second statement that passes over such rows. So
//! two hubs, or a writer, that hold rows in another order cost each other a moment and never an answer. A check-in that is
//! not kept here goes the long way.

use std::thread::JoinHandle;

use ::postgres::types::ToSql;
use holdfast_protocol::checkin::{Coverage, Need};
use holdfast_protocol::generation::Generation;
use holdfast_protocol::size::PollSeconds;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};
use uuid::Uuid;

use super::Postgres;
use super::server::Server;
use super::sql::{self, Connection};
use super::waiting::{nothing_waits, waits_for_host};
use super::writer::PLACE_WAIT;
use crate::domain::desired::Delivery;
use crate::store::{Checkin, CheckinReply};

/// Check-ins that share a statement.
const BATCH_MAX: usize = 512;

/// How long a batch waits for a row. Longer than most transactions last; shorter than the server takes to look for a deadlock,
/// so a writer that waits for a row of the batch is never the one that is ended.
const LOCK_WAIT: &str = "SET lock_timeout = '100ms'";

/// A check-in on its way, with who waits for the outcome.
pub(super) struct Contact {
    host: Uuid,
    generation: i64,
    held: i64,
    sequence: i64,
    /// In milliseconds.
    at: i64,
    reply: oneshot::Sender<Outcome>,
}

/// What became of a check-in.
enum Outcome {
    Kept {
        poll: PollSeconds,
        audit_seen: u64,
    },
    /// It has news, or something waits for the host, or the server did not answer.
    HasNews,
}

/// Check-ins by host, each with its place in the batch.
macro_rules! arrived {
    () => {
        "unnest($1::bytea[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[]) WITH ORDINALITY
            AS arrived (id, generation, held, sequence, at, place)"
    };
}

/// What a host's row says of a check-in that has no news. The certificate must be the one in use: another one is judged by
/// the rules.
macro_rules! has_no_news {
    () => {
        "hosts.id = arrived.id AND hosts.status = 'active' AND hosts.liveness = 'online' AND hosts.farewell_at IS NULL
            AND hosts.used_generation = arrived.generation AND hosts.issued_generation >= arrived.generation
            AND arrived.generation >= greatest(hosts.restored_from, hosts.readmitted_from)
            AND hosts.held = arrived.held AND hosts.wanted <= arrived.held AND hosts.sequence < arrived.sequence"
    };
}

/// One row with three lists is cheaper than a row for each host.
macro_rules! kept_lists {
    () => {
        ") SELECT array_agg(place), array_agg(poll_interval_s), array_agg(audit_seen) FROM kept"
    };
}

/// Keeps those without news, where nothing waits for any host. It may wait for a row that another transaction holds, for
/// [`LOCK_WAIT`].
const KEEP: &str = concat!(
    "WITH kept AS (UPDATE hosts SET seen_at = arrived.at, sequence = arrived.sequence FROM ",
    arrived!(),
    " WHERE ",
    has_no_news!(),
    " AND ",
    nothing_waits!(),
    " RETURNING arrived.place, hosts.poll_interval_s, hosts.audit_seen",
    kept_lists!()
);

/// Keeps those without news for which nothing waits, and passes over a row that another transaction holds.
const KEEP_EACH: &str = concat!(
    "WITH quiet AS (SELECT hosts.number, arrived.sequence, arrived.at, arrived.place FROM hosts, ",
    arrived!(),
    " WHERE ",
    has_no_news!(),
    " AND NOT (",
    waits_for_host!(),
    ") ORDER BY hosts.id FOR NO KEY UPDATE OF hosts SKIP LOCKED
    ), kept AS (UPDATE hosts SET seen_at = quiet.at, sequence = quiet.sequence FROM quiet WHERE hosts.number = quiet.number
    RETURNING quiet.place, hosts.poll_interval_s, hosts.audit_seen",
    kept_lists!()
);

impl Contact {
    /// The check-in, where it may have nothing new.
    fn of(checkin: &Checkin, reply: oneshot::Sender<Outcome>) -> Option<Self> {
        let arriving = &checkin.arriving;
        // A run is named by the agent's section alone.
        if arriving.coverage != Coverage::Changed || arriving.run.is_some() || !checkin.sections.is_empty() {
            return None;
        }
        if !checkin.orders.is_empty() || checkin.diagnostic.is_some() {
            return None;
        }
        Some(Self {
            host: checkin.presented.host.uuid(),
            generation: checkin.presented.generation.into(),
            held: number(checkin.held)?,
            sequence: i64::try_from(arriving.sequence).ok()?,
            at: checkin.at.as_millisecond(),
            reply,
        })
    }
}

fn number(generation: Generation) -> Option<i64> {
    i64::try_from(generation.number()).ok()
}

impl Postgres {
    /// The answer to a check-in that says nothing new, once it is kept.
    pub(super) async fn keep_quiet(&self, checkin: &Checkin) -> Option<CheckinReply> {
        let (reply, outcome) = oneshot::channel();
        let contact = Contact::of(checkin, reply)?;
        // A timer is only set where the queue is full.
        if let Err(TrySendError::Full(contact)) = self.contacts.try_send(contact) {
            tokio::time::timeout(PLACE_WAIT, self.contacts.send(contact)).await.ok()?.ok()?;
        }
        let Ok(Outcome::Kept { poll, audit_seen }) = outcome.await else { return None };
        Some(CheckinReply {
            acknowledged: checkin.arriving.sequence,
            need: Need::Changed,
            poll,
            delivery: Delivery::Nothing,
            desired: None,
            jobs: Vec::new(),
            orders: Vec::new(),
            audit_seen,
            maintenance_until: None,
        })
    }
}

/// It ends when the last [`Postgres`] is dropped and the queue is empty.
pub(super) fn start(server: Server, mut inbox: mpsc::Receiver<Contact>) -> std::io::Result<JoinHandle<()>> {
    let run = move || {
        let (mut session, mut batch) = (None, Vec::with_capacity(BATCH_MAX));
        while inbox.blocking_recv_many(&mut batch, BATCH_MAX) > 0 {
            let of_each_host = one_of_each_host(std::mem::take(&mut batch));
            match keep(&server, &mut session, of_each_host) {
                Ok(()) => {}
                Err(error) => {
                    // The writer's session tells the same to who asks.
                    tracing::warn!(action = "keep_contacts", result = "failed", error = %error.sentence());
                }
            }
        }
    };
    std::thread::Builder::new().name("store-contacts".to_owned()).spawn(run)
}

/// The session, or a new one where it has ended, that waits for a lock no longer than [`LOCK_WAIT`]. Blocks.
pub(super) fn impatient(server: &Server, session: Option<Connection>) -> sql::Result<Connection> {
    match session {
        Some(session) if !session.is_closed() => Ok(session),
        Some(_) | None => {
            let session = server.renewed(None)?;
            session.execute_batch(LOCK_WAIT)?;
            Ok(session)
        }
    }
}

/// Two check-ins of one host cannot share a statement: the first stays, and others go the long way.
fn one_of_each_host(mut batch: Vec<Contact>) -> Vec<Contact> {
    batch.sort_by_key(|one| (one.host, one.sequence));
    let mut before = None;
    batch.retain(|contact| before.replace(contact.host) != Some(contact.host));
    batch
}

/// Keeps a batch and answers. Those that are not answered are dropped, which sends them the long way.
fn keep(server: &Server, session: &mut Option<Connection>, batch: Vec<Contact>) -> sql::Result<()> {
    let connection = impatient(server, session.take())?;
    let ids: Vec<&[u8]> = batch.iter().map(|contact| contact.host.as_bytes().as_slice()).collect();
    let column = |of: fn(&Contact) -> i64| batch.iter().map(of).collect::<Vec<i64>>();
    let (generations, held) = (column(|one| one.generation), column(|one| one.held));
    let (sequences, times) = (column(|one| one.sequence), column(|one| one.at));
    let columns: [&(dyn ToSql + Sync); 5] = [&ids, &generations, &held, &sequences, &times];
    let kept = match kept(&connection, KEEP, &columns) {
        Ok(kept) if kept.is_empty() => kept_each(&connection, &columns)?,
        Err(error) if error.is_of_locks() => kept_each(&connection, &columns)?,
        Ok(kept) => kept,
        Err(error) => return Err(error),
    };
    *session = Some(connection);
    let mut outcomes: Vec<Outcome> = batch.iter().map(|_| Outcome::HasNews).collect();
    for (place, outcome) in kept {
        if let Some(kept) = outcomes.get_mut(place) {
            *kept = outcome;
        }
    }
    for (contact, outcome) in batch.into_iter().zip(outcomes) {
        // Who asked may be gone; what is kept stays kept.
        drop(contact.reply.send(outcome));
    }
    Ok(())
}

type Columns<'a> = [&'a (dyn ToSql + Sync); 5];

fn kept_each(connection: &Connection, columns: &Columns<'_>) -> sql::Result<Vec<(usize, Outcome)>> {
    kept(connection, KEEP_EACH, columns)
}

/// Those that were kept, by their place in the batch.
fn kept(connection: &Connection, sql: &str, columns: &Columns<'_>) -> sql::Result<Vec<(usize, Outcome)>> {
    let rows = connection.query_arrays(sql, columns)?;
    let row = rows.first().ok_or(sql::Error::NoRow)?;
    let list = |column: usize| -> sql::Result<Vec<i64>> {
        Ok(row.try_get::<_, Option<Vec<i64>>>(column)?.unwrap_or_default())
    };
    let (places, polls, audits) = (list(0)?, list(1)?, list(2)?);
    let outcome = |((place, poll), audit): ((i64, i64), i64)| {
        let poll = u32::try_from(poll).ok().and_then(|poll| PollSeconds::try_from(poll).ok());
        let (poll, audit_seen) = (poll.unwrap_or(PollSeconds::MAX), u64::try_from(audit).unwrap_or_default());
        // The server counts from 1.
        let place = usize::try_from(place.saturating_sub(1)).map_err(sql::Error::unreadable)?;
        Ok((place, Outcome::Kept { poll, audit_seen }))
    };
    places.into_iter().zip(polls).zip(audits).map(outcome).collect()
}
