//! Check-ins without news, written by one statement for many hosts.
//!
//! In: check-ins that have no section. Out: for each whether it was kept, after the commit. One is kept here when nothing
//! but its time and its number is new and nothing waits for the host; the server decides that with the host's row locked.
//! The rows are locked in the order of their ids, and a row that another transaction holds is passed over, so this never
//! waits for a lock while it holds one. A check-in that is not kept here goes the long way.

use std::thread::JoinHandle;

use holdfast_protocol::checkin::{Coverage, Need};
use holdfast_protocol::generation::Generation;
use holdfast_protocol::size::PollSeconds;
use tokio::sync::{mpsc, oneshot};
use uuid::Uuid;

use super::Postgres;
use super::columns::Id;
use super::server::Server;
use super::sql::{self, Connection, FromColumn as _, Row};
use super::writer::PLACE_WAIT;
use crate::domain::desired::Delivery;
use crate::store::{Checkin, CheckinReply};

/// Check-ins that share a statement.
const BATCH_MAX: usize = 512;

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

/// Nothing waits for the host where the document is held, no job is queued, no work order waits, and no maintenance is
/// announced. The certificate must be the one in use: another one is judged by the rules.
const KEEP: &str = "
    WITH arrived AS (
        SELECT * FROM unnest($1::bytea[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[])
            AS arrived (id, generation, held, sequence, at)
    ), quiet AS (
        SELECT hosts.number, arrived.sequence, arrived.at
        FROM hosts JOIN arrived ON arrived.id = hosts.id
        WHERE hosts.status = 'active' AND hosts.liveness = 'online' AND hosts.farewell_at IS NULL
            AND hosts.used_generation = arrived.generation AND hosts.issued_generation >= arrived.generation
            AND arrived.generation >= greatest(hosts.restored_from, hosts.readmitted_from)
            AND hosts.held = arrived.held AND hosts.wanted <= arrived.held
            AND hosts.sequence < arrived.sequence
            AND NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.host = hosts.number AND jobs.queue_state = 'queued')
            AND NOT EXISTS (SELECT 1 FROM work_orders WHERE work_orders.host = hosts.number AND work_orders.waits = 1)
            AND NOT EXISTS (
                SELECT 1 FROM alert_scopes WHERE alert_scopes.scope = encode(hosts.id, 'hex')::uuid::text
                    AND jsonb_array_length(stored_json(alert_scopes.body) -> 'maintenance') > 0)
        ORDER BY hosts.id FOR NO KEY UPDATE OF hosts SKIP LOCKED
    )
    UPDATE hosts SET seen_at = quiet.at, sequence = quiet.sequence FROM quiet WHERE hosts.number = quiet.number
    RETURNING hosts.id, hosts.poll_interval_s, hosts.audit_seen";

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
        tokio::time::timeout(PLACE_WAIT, self.contacts.send(contact)).await.ok()?.ok()?;
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

/// Two check-ins of one host cannot share a statement: the first stays, and others go the long way.
fn one_of_each_host(mut batch: Vec<Contact>) -> Vec<Contact> {
    batch.sort_by_key(|one| (one.host, one.sequence));
    let mut before = None;
    batch.retain(|contact| before.replace(contact.host) != Some(contact.host));
    batch
}

/// Keeps a batch and answers. Those that are not answered are dropped, which sends them the long way.
fn keep(server: &Server, session: &mut Option<Connection>, batch: Vec<Contact>) -> sql::Result<()> {
    let connection = server.renewed(session.take())?;
    let ids: Vec<&[u8]> = batch.iter().map(|contact| contact.host.as_bytes().as_slice()).collect();
    let column = |of: fn(&Contact) -> i64| batch.iter().map(of).collect::<Vec<i64>>();
    let (generations, held) = (column(|one| one.generation), column(|one| one.held));
    let (sequences, times) = (column(|one| one.sequence), column(|one| one.at));
    let rows = connection.query_arrays(KEEP, &[&ids, &generations, &held, &sequences, &times])?;
    let mut kept = std::collections::HashMap::with_capacity(rows.len());
    for row in &rows {
        let row = Row(row);
        let poll = PollSeconds::try_from(row.get::<_, u32>(1)?).unwrap_or(PollSeconds::MAX);
        let audit_seen = u64::try_from(i64::column(row.get_ref(2)?)?).unwrap_or_default();
        kept.insert(row.get::<_, Id>(0)?.0, (poll, audit_seen));
    }
    *session = Some(connection);
    for contact in batch {
        let outcome = match kept.get(&contact.host) {
            Some(&(poll, audit_seen)) => Outcome::Kept { poll, audit_seen },
            None => Outcome::HasNews,
        };
        // Who asked may be gone; what is kept stays kept.
        drop(contact.reply.send(outcome));
    }
    Ok(())
}
