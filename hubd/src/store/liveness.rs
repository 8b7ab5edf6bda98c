//! Last contact of hosts, and their recorded liveness.

use holdfast_protocol::id::{CorrelationId, HostId, HostName};
use holdfast_protocol::size::PollSeconds;
use jiff::Timestamp;
use rusqlite::params;

use super::columns::{Id, Text, Time};
use super::events::emit;
use super::writer::Shape;
use super::{Failed, Store, StoreError};
use crate::domain::deadman::Liveness;
use crate::domain::event::{EventKind, NewEvent};

/// A host that should be heard of, and when it last was.
#[derive(Clone, Debug)]
pub struct HostContact {
    number: i64,
    pub host: HostId,
    pub name: HostName,
    /// When it was last heard of, or enrolled where it never was.
    pub since: Timestamp,
    /// How it went silent.
    pub last: LastContact,
    /// How often it should ask.
    pub poll: PollSeconds,
    /// How it is written down.
    pub written: Liveness,
}

/// The last that was heard of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastContact {
    /// Nothing since it was enrolled.
    Never,
    Checkin,
    /// That its agent stops.
    Farewell,
}

impl Store {
    /// Every host that may yet get worse.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn listened_to(&self) -> Result<Vec<HostContact>, StoreError> {
        self.read("look who is silent", |connection| {
            let sql = "SELECT number, id, name, coalesce(seen_at, enrolled_at), seen_at IS NULL,
                           farewell_at IS NOT NULL, poll_interval_s, liveness = 'late'
                       FROM hosts
                       WHERE status = 'active' AND liveness IN ('new', 'online', 'late')";
            let mut statement = connection.prepare_cached(sql)?;
            let rows = statement.query_map([], |row| {
                Ok(HostContact {
                    number: row.get(0)?,
                    host: HostId::new(row.get::<_, Id>(1)?.0),
                    name: row.get::<_, Text<_>>(2)?.0,
                    since: row.get::<_, Time>(3)?.0,
                    last: match (row.get(4)?, row.get(5)?) {
                        (true, _) => LastContact::Never,
                        (false, true) => LastContact::Farewell,
                        (false, false) => LastContact::Checkin,
                    },
                    poll: PollSeconds::try_from(row.get::<_, u32>(6)?).unwrap_or(PollSeconds::MAX),
                    // Whoever has never spoken is late for nothing, until it is missed.
                    written: if row.get(4)? || row.get(7)? { Liveness::Late } else { Liveness::Online },
                })
            })?;
            rows.collect()
        })
        .await
    }

    /// Writes down who got worse, unless they spoke in the meantime. Each alarm is an event, raised once.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn write_down(
        &self,
        worse: Vec<(HostContact, Liveness)>,
        at: Timestamp,
        correlation: CorrelationId,
    ) -> Result<(), StoreError> {
        let written = self.write("write down who is silent", Shape::Single, move |tx| {
            for (silence, liveness) in &worse {
                let word = match liveness {
                    Liveness::Online => "online",
                    Liveness::Late => "late",
                    Liveness::Offline => "offline",
                };
                let sql =
                    "UPDATE hosts SET liveness = ?2 WHERE number = ?1 AND coalesce(seen_at, enrolled_at) = ?3
                               AND status = 'active' AND liveness IN ('new', 'online', 'late')";
                let unmoved = params![silence.number, word, Time(silence.since)];
                let changed = tx.prepare_cached(sql)?.execute(unmoved)?;
                if changed == 1 && *liveness == Liveness::Offline {
                    emit(
                        tx,
                        &NewEvent {
                            at,
                            kind: EventKind::HeartbeatMissed,
                            host: Some(silence.host),
                            actor: None,
                            correlation,
                            message: alarm(silence),
                        },
                    )?;
                }
            }
            Ok::<_, Failed<std::convert::Infallible>>(())
        });
        written.await.map_err(StoreError::from)
    }
}

fn alarm(silence: &HostContact) -> String {
    let last = match silence.last {
        LastContact::Never => "has never spoken since it was enrolled",
        LastContact::Checkin => "was last heard of",
        LastContact::Farewell => "said farewell",
    };
    format!(
        "{} is silent: it {last} at {} and should ask every {}",
        silence.name, silence.since, silence.poll
    )
}
