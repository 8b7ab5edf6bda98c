//! Last contact of hosts, and their recorded liveness.

use async_trait::async_trait;
use holdfast_protocol::id::{CorrelationId, HostId};
use holdfast_protocol::size::{AlarmSeconds, PollSeconds};
use jiff::Timestamp;
use rusqlite::params;

use super::alerts::{self, Moment};
use super::columns::{Id, Text, Time};
use super::events::emit;
use super::settled::Scope;
use super::writer::Shape;
use super::{Failed, Sqlite};
use crate::domain::deadman::Liveness;
use crate::domain::event::{EventKind, NewEvent};
use crate::store::{Contacts, HostContact, LastContact, StoreError, Term, duty::DeadMansSwitch};

#[async_trait]
impl Contacts for Sqlite {
    async fn listened_to(&self) -> Result<Vec<HostContact>, StoreError> {
        let settled = self.settled.clone();
        let saved = self.write_within("keep last contacts", Shape::Single, Scope::NoHost, move |tx| {
            Ok::<_, Failed<std::convert::Infallible>>(settled.save(tx)?)
        });
        saved.await.map_err(StoreError::from)?;
        self.read("look who is silent", |connection| {
            let sql = "SELECT id, name, coalesce(seen_at, enrolled_at), seen_at IS NULL,
                           farewell_at IS NOT NULL, poll_interval_s, liveness = 'late', alarm_after_s
                       FROM hosts
                       WHERE status = 'active' AND liveness IN ('new', 'online', 'late')";
            let mut statement = connection.prepare_cached(sql)?;
            let rows = statement.query_map([], |row| {
                Ok(HostContact {
                    host: HostId::new(row.get::<_, Id>(0)?.0),
                    name: row.get::<_, Text<_>>(1)?.0,
                    since: row.get::<_, Time>(2)?.0,
                    last: match (row.get(3)?, row.get(4)?) {
                        (true, _) => LastContact::Never,
                        (false, true) => LastContact::Farewell,
                        (false, false) => LastContact::Checkin,
                    },
                    poll: PollSeconds::try_from(row.get::<_, u32>(5)?).unwrap_or(PollSeconds::MAX),
                    alarm_after: row
                        .get::<_, Option<u32>>(7)?
                        .and_then(|seconds| AlarmSeconds::try_from(seconds).ok()),
                    // A host that never reported cannot become late, only offline.
                    written: if row.get(3)? || row.get(6)? { Liveness::Late } else { Liveness::Online },
                })
            })?;
            rows.collect()
        })
        .await
    }

    async fn write_down(
        &self,
        term: &Term<DeadMansSwitch>,
        worse: Vec<(HostContact, Liveness)>,
        at: Timestamp,
        correlation: CorrelationId,
    ) -> Result<(), StoreError> {
        let scope = Scope::Hosts(worse.iter().map(|(silence, _)| silence.host).collect());
        let context = self.alerts.clone();
        let written =
            self.write_fenced(term.fence(), "write down who is silent", Shape::Single, scope, move |tx| {
                for (silence, liveness) in &worse {
                    let word = match liveness {
                        Liveness::Online => "online",
                        Liveness::Late => "late",
                        Liveness::Offline => "offline",
                    };
                    let sql =
                        "UPDATE hosts SET liveness = ?2 WHERE id = ?1 AND coalesce(seen_at, enrolled_at) = ?3
                               AND status = 'active' AND liveness IN ('new', 'online', 'late')";
                    let unmoved = params![Id(silence.host.uuid()), word, Time(silence.since)];
                    let changed = tx.prepare_cached(sql)?.execute(unmoved)?;
                    if changed == 1 {
                        alerts::silent(tx, &context, (silence, *liveness), Moment { at, correlation })?;
                    }
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
