//! Signals out of check-ins and of silence.

use alerts::Signal;
use alerts::incident::Scope;
use alerts::label::Labels;
use alerts::signal::HostState;
use holdfast_protocol::condition::ConditionSet;
use holdfast_protocol::id::GuestUid;
use holdfast_protocol::job::{JobState, Verb};

use super::super::authenticated_host::AuthenticatedHost;
use super::super::columns::{Id, Text};
use super::super::sql::{self, Connection, OptionalExtension as _, params};
use super::super::writer::Tx;
use super::decide::{Moment, decide};
use super::rows::Json;
use crate::domain::alerting::AlertContext;
use crate::domain::alerting::observed::{GuestLabels, signal, state_of};
use crate::domain::deadman::Liveness;
use crate::domain::merge::Merge;
use crate::store::{Checkin, HostContact, LastContact};

/// What the host's last reports said of conditions.
#[derive(Default)]
pub(super) struct Stored {
    conditions: Option<ConditionSet>,
    pub(super) labels: GuestLabels,
}

/// What the document that the host holds says of a guest.
struct Documented {
    uid: GuestUid,
    labels: Labels,
}

/// The labels of guests by the document that the host holds. A report does not name the backup policy, and has no guest
/// that is not there yet.
fn documented(tx: &Connection, host: i64) -> sql::Result<Vec<Documented>> {
    let sql = "SELECT guest ->> 'uid', guest ->> 'policy', guest ->> 'customer', guest ->> 'name'
               FROM hosts JOIN desired ON desired.host = hosts.number AND desired.generation = hosts.held,
                   jsonb_path_query(stored_json(desired.document), '$.guests[*]') AS guest
               WHERE hosts.number = $1 AND guest ->> 'uid' IS NOT NULL";
    let statement = tx.prepare_cached(sql)?;
    let rows = statement.query_map([host], |row| {
        let labels = Labels {
            policy: row.get::<_, Option<Text<_>>>(1)?.map(|policy| policy.0),
            customer: row.get::<_, Option<Text<_>>>(2)?.map(|customer| customer.0),
            guest: row.get::<_, Option<Text<_>>>(3)?.map(|name| name.0),
        };
        Ok(Documented { uid: row.get::<_, Text<_>>(0)?.0, labels })
    })?;
    rows.collect()
}

/// Whether the labels of guests are others than those that are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Relabelled {
    Same,
    Changed,
}

/// Compares the labels of a check-in with the stored ones, before they are replaced.
pub(in super::super) fn relabelled(tx: &Tx<'_>, host: i64, checkin: &Checkin) -> sql::Result<Relabelled> {
    let Some(new) = &checkin.conditions.guests else { return Ok(Relabelled::Same) };
    let sql = "SELECT guest_labels FROM reports WHERE host = $1";
    let read = |row: &sql::Row<'_>| row.get::<_, Option<Json<GuestLabels>>>(0);
    let stored = tx.prepare_cached(sql)?.query_row([host], read).optional()?.flatten();
    Ok(if stored.is_some_and(|stored| stored.0 == *new) { Relabelled::Same } else { Relabelled::Changed })
}

pub(super) fn stored(tx: &Connection, host: i64) -> sql::Result<Stored> {
    let sql = "SELECT conditions, guest_labels FROM reports WHERE host = $1";
    let row = tx.prepare_cached(sql)?.query_row([host], |row| {
        let conditions: Option<Json<ConditionSet>> = row.get(0)?;
        let labels: Option<Json<GuestLabels>> = row.get(1)?;
        Ok(Stored {
            conditions: conditions.map(|set| set.0),
            labels: labels.map(|labels| labels.0).unwrap_or_default(),
        })
    });
    let mut stored = row.optional()?.unwrap_or_default();
    for Documented { uid, labels } in documented(tx, host)? {
        let known = stored.labels.entry(uid).or_default();
        known.policy = labels.policy;
        known.customer = known.customer.take().or(labels.customer);
        known.guest = known.guest.take().or(labels.guest);
    }
    Ok(stored)
}

/// A host that speaks again is online, and what it said of conditions holds again. Otherwise the engine is asked only
/// where the conditions changed, or who the guests belong to.
pub(in super::super) fn spoken(
    tx: &Tx<'_>,
    context: &AlertContext,
    checkin: &Checkin,
    host: &AuthenticatedHost,
    (merge, relabelled): (Merge, Relabelled),
) -> sql::Result<()> {
    let speaks_again = host.liveness != "online";
    let news = checkin.conditions.set.is_some() || relabelled == Relabelled::Changed;
    let changed = merge != Merge::Ignore && news;
    if !speaks_again && !changed {
        return Ok(());
    }
    let Stored { conditions, labels } = stored(tx, host.number)?;
    let state = conditions.as_ref().map_or(HostState::Online, state_of);
    let mut signals = vec![Signal::Host { state, since: checkin.at }];
    signals.extend(conditions.map(|set| signal(&set, &labels)));
    let scope = Scope::Host(checkin.presented.host);
    decide(tx, context, scope, &signals, Moment { at: checkin.at, correlation: checkin.correlation })
}

/// A host that got worse by its silence.
pub(in super::super) fn silent(
    tx: &Tx<'_>,
    context: &AlertContext,
    (contact, liveness): (&HostContact, Liveness),
    moment: Moment,
) -> sql::Result<()> {
    let state = match (liveness, contact.last) {
        (Liveness::Online, _) => return Ok(()),
        (Liveness::Late, _) => HostState::Late,
        (Liveness::Offline, LastContact::Never) => HostState::NeverSeen,
        (Liveness::Offline, LastContact::Checkin | LastContact::Farewell) => HostState::Offline,
    };
    let signal = Signal::Host { state, since: contact.since };
    decide(tx, context, Scope::Host(contact.host), &[signal], moment)
}

/// Guests that a check-in says were deleted by signed jobs, and that no earlier one did. Read before the check-in is
/// kept. Without that, each check-in would end what a guest has that was restored under the same id since.
pub(in super::super) fn newly_deleted(tx: &Tx<'_>, host: i64, checkin: &Checkin) -> sql::Result<Vec<Signal>> {
    let done = checkin
        .jobs
        .iter()
        .filter(|job| job.verb == Some(Verb::DestroyGuest) && job.state == JobState::Done)
        .filter_map(|job| Some((job.id, job.guest?)));
    let mut deleted = Vec::new();
    for (id, uid) in done {
        let sql =
            "SELECT EXISTS (SELECT 1 FROM reports, jsonb_path_query(stored_json(reports.jobs), '$[*]') AS job
                       WHERE reports.host = $1 AND job ->> 'id' = $2 AND job ->> 'state' = 'done')";
        let known: bool =
            tx.prepare_cached(sql)?.query_row(params![host, id.to_string()], |row| row.get(0))?;
        if known {
            continue;
        }
        let sql = "SELECT operator FROM jobs WHERE host = $1 AND id = $2";
        let read = |row: &sql::Row<'_>| row.get::<_, Text<_>>(0).map(|by| by.0);
        let by = tx.prepare_cached(sql)?.query_row(params![host, Id(id.uuid())], read).optional()?;
        deleted.push(Signal::GuestDeleted { uid, by });
    }
    Ok(deleted)
}

/// Ends the incidents of guests that were deleted.
pub(in super::super) fn deleted_guests(
    tx: &Tx<'_>,
    context: &AlertContext,
    checkin: &Checkin,
    signals: &[Signal],
) -> sql::Result<()> {
    if signals.is_empty() {
        return Ok(());
    }
    let moment = Moment { at: checkin.at, correlation: checkin.correlation };
    decide(tx, context, Scope::Host(checkin.presented.host), signals, moment)
}
