//! Changes of all hubs on one database, looked for once a second.
//!
//! In: the numbers of changes and of events that are committed. Out: hosts for which something waits, a count that tasks
//! watch, and since when a hub has been listening. A notice of another hub makes the look come earlier; nothing depends on
//! it, so a session that was lost means one look later and nothing else. Numbers are committed in their order, since all
//! writers take turns; so what came after the last look is all that is new.

use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use holdfast_protocol::id::HostId;
use tokio::sync::{mpsc, watch};

use super::announce::CHANNEL;
use super::columns::{Id, Time};
use super::server::Server;
use super::sql::{self, Connection};
use crate::domain::alerting::AlertContext;
use crate::domain::deadman::ABSENCE;

/// How long a change of another hub may stay unseen where its notice is lost.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The follower sees so soon that the hub ends.
const SLICE: Duration = Duration::from_millis(250);

const SLICES: u32 = 4;

const POSITION: &str = "SELECT (SELECT seq FROM change_seq), (SELECT coalesce(max(number), 0) FROM events),
    (SELECT since FROM hub_presence WHERE at > database_ms() - $1::bigint)";

/// A hub that heard hosts longer ago than a gap hears them no more.
const FRESH_MS: i64 = ABSENCE.as_secs() * 1_000;

/// The newest change and the newest event that are committed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Position {
    change: u64,
    event: u64,
}

/// What the follower tells.
pub(super) struct FollowerOutputs {
    pub changed: mpsc::Sender<Vec<HostId>>,
    pub events: Arc<watch::Sender<u64>>,
    pub alerts: AlertContext,
}

/// Where everything stands. What was committed before, a check-in that comes later sees by itself.
pub(super) fn position(connection: &Connection, alerts: &AlertContext) -> sql::Result<Position> {
    let read = |row: &sql::Row<'_>| {
        let position = Position { change: row.get(0)?, event: row.get(1)? };
        Ok((position, row.get::<_, Option<Time>>(2)?))
    };
    let (position, since) = connection.prepare_cached(POSITION)?.query_row([FRESH_MS], read)?;
    if let Some(Time(since)) = since {
        alerts.listens_since(since);
    }
    Ok(position)
}

/// It ends when the store is dropped, which `wanted` shows.
pub(super) fn start(
    server: Server,
    seen: Position,
    outputs: FollowerOutputs,
    wanted: Weak<()>,
) -> std::io::Result<JoinHandle<()>> {
    let follower = Follower { server, session: None, seen, outputs, wanted };
    std::thread::Builder::new().name("store-follower".to_owned()).spawn(move || follower.run())
}

struct Follower {
    server: Server,
    session: Option<Connection>,
    seen: Position,
    outputs: FollowerOutputs,
    wanted: Weak<()>,
}

impl Follower {
    fn run(mut self) {
        while self.wanted.strong_count() > 0 {
            if let Err(error) = self.look() {
                self.session = None;
                tracing::warn!(action = "follow_changes", result = "failed", error = %error.sentence());
            }
            self.rest();
        }
    }

    fn look(&mut self) -> sql::Result<()> {
        let session = match self.session.take() {
            Some(session) => session,
            None => {
                let session = self.server.renewed(None)?;
                session.execute_batch(&format!("LISTEN {CHANNEL}"))?;
                session
            }
        };
        let now = position(&session, &self.outputs.alerts)?;
        if now.change > self.seen.change {
            let sql = "SELECT host FROM host_changes WHERE seq > $1";
            let read = |row: &sql::Row<'_>| Ok(HostId::new(row.get::<_, Id>(0)?.0));
            let rows = session.prepare_cached(sql)?.query_map([self.seen.change], read)?;
            let hosts = rows.collect::<sql::Result<Vec<HostId>>>()?;
            // Where the task that wakes is behind, the next look gives all of them again.
            if self.outputs.changed.try_send(hosts).is_ok() {
                self.seen.change = now.change;
            }
        }
        if now.event > self.seen.event {
            self.seen.event = now.event;
            self.outputs.events.send_modify(|count| *count += 1);
        }
        self.session = Some(session);
        Ok(())
    }

    /// Until a notice comes, or the time of the next look.
    fn rest(&mut self) {
        for _ in 0..SLICES {
            if self.wanted.strong_count() == 0 {
                return;
            }
            match self.session.as_ref().map(|session| session.notified(SLICE)) {
                Some(Ok(true)) => return,
                Some(Ok(false)) => {
                    // Of a session that has ended nothing is waited for.
                    if self.session.as_ref().is_some_and(Connection::is_closed) {
                        self.session = None;
                    }
                }
                Some(Err(_)) => self.session = None,
                None => std::thread::sleep(SLICE),
            }
        }
    }
}

// The slices make up the look.
const _: () = assert!(SLICE.as_millis() * SLICES as u128 == LOOK_EVERY.as_millis());
