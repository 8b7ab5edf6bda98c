//! Settled hosts in memory, for check-ins that change nothing.
//!
//! A host is settled when its last check-in was committed and nothing waits for it: no document, no job, no work
//! order, no report in full. Its next check-in is answered from here when it says nothing new. Of such a check-in only the time and the
//! sequence number are new. They are kept here until the next write of that host, the next tick of the dead-man's
//! switch, or the stop of the hub, whichever is first (`docs/adr/0090`).
//!
//! The writer takes a host out of here before it runs a job that may touch the host's row, and writes its last contact
//! first. It puts the host back after the commit. So no check-in is answered from here while such a job runs, and none
//! by what the job made old.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use holdfast_protocol::checkin::{Coverage, Need};
use holdfast_protocol::generation::Generation;
use holdfast_protocol::id::HostId;
use holdfast_protocol::size::PollSeconds;
use jiff::Timestamp;
use rusqlite::{Connection, params};

use super::columns::Time;
use crate::domain::desired::Delivery;
use crate::store::{Checkin, CheckinReply};

/// The settled hosts, shared by requests and the writer.
#[derive(Clone, Default)]
pub(super) struct SettledHosts(Arc<Mutex<HashMap<HostId, Settled>>>);

/// One of them, as its last check-in left it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settled {
    /// Its row.
    pub number: i64,
    /// The certificate in use.
    pub generation: u32,
    /// What it holds.
    pub held: Generation,
    pub poll: PollSeconds,
    pub audit_seen: u64,
    pub contact: Contact,
    pub saved: Saved,
}

/// The newest that was heard of a host.
#[derive(Clone, Copy, Debug)]
pub(super) struct Contact {
    pub sequence: u64,
    pub at: Timestamp,
}

/// Whether a contact is in the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Saved {
    Yes,
    NotYet,
}

/// Which hosts a job of the writer may touch.
#[derive(Clone, Debug)]
pub(super) enum Scope {
    /// No row of a host, and nothing that waits for one.
    NoHost,
    Hosts(Vec<HostId>),
    AnyHost,
}

impl SettledHosts {
    /// The answer to a check-in that says nothing new; its contact is kept.
    pub(super) fn answer(&self, checkin: &Checkin) -> Option<CheckinReply> {
        let arriving = &checkin.arriving;
        // A run is named by the agent's section alone.
        if arriving.coverage != Coverage::Changed || arriving.run.is_some() || !checkin.sections.is_empty() {
            return None;
        }
        if !checkin.orders.is_empty() || checkin.diagnostic.is_some() {
            return None;
        }
        let mut hosts = self.lock();
        let host = hosts.get_mut(&checkin.presented.host)?;
        let is_known = host.generation == checkin.presented.generation && host.held == checkin.held;
        if !is_known || arriving.sequence <= host.contact.sequence {
            return None;
        }
        host.contact = Contact { sequence: arriving.sequence, at: checkin.at };
        host.saved = Saved::NotYet;
        Some(CheckinReply {
            acknowledged: arriving.sequence,
            need: Need::Changed,
            poll: host.poll,
            delivery: Delivery::Nothing,
            desired: None,
            jobs: Vec::new(),
            orders: Vec::new(),
            audit_seen: host.audit_seen,
            // A host in maintenance is not settled.
            maintenance_until: None,
        })
    }

    /// When a host was last heard of, where that is newer than in the database.
    pub(super) fn seen_at(&self, host: HostId) -> Option<Timestamp> {
        self.lock().get(&host).map(|settled| settled.contact.at)
    }

    /// Takes out the hosts that a job may touch, and writes their last contact.
    pub(super) fn take(&self, scope: &Scope, connection: &Connection) -> rusqlite::Result<()> {
        let taken: Vec<Settled> = match scope {
            Scope::NoHost => return Ok(()),
            Scope::Hosts(touched) => {
                let mut hosts = self.lock();
                touched.iter().filter_map(|host| hosts.remove(host)).collect()
            }
            Scope::AnyHost => std::mem::take(&mut *self.lock()).into_values().collect(),
        };
        write(taken, connection)
    }

    /// Writes all contacts that are not in the database yet. A commit that fails loses them, as it loses all check-ins
    /// that it holds; the hosts speak again within a poll.
    pub(super) fn save(&self, connection: &Connection) -> rusqlite::Result<()> {
        let unsaved: Vec<Settled> = {
            let mut hosts = self.lock();
            let of_all = hosts.values_mut().filter(|host| host.saved == Saved::NotYet);
            of_all.map(|host| std::mem::replace(host, Settled { saved: Saved::Yes, ..*host })).collect()
        };
        write(unsaved, connection)
    }

    /// Puts hosts in: at the start, and after the commit of their check-ins.
    pub(super) fn put(&self, settled: impl IntoIterator<Item = (HostId, Settled)>) {
        self.lock().extend(settled);
    }

    /// No method stops half-way, so what is behind a poisoned lock is whole.
    fn lock(&self) -> MutexGuard<'_, HashMap<HostId, Settled>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn write(hosts: Vec<Settled>, connection: &Connection) -> rusqlite::Result<()> {
    let unsaved = hosts.into_iter().filter(|host| host.saved == Saved::NotYet);
    let sql = "UPDATE hosts SET seen_at = ?2, sequence = ?3 WHERE number = ?1";
    let mut statement = connection.prepare_cached(sql)?;
    for host in unsaved {
        let sequence = i64::try_from(host.contact.sequence).unwrap_or(i64::MAX);
        statement.execute(params![host.number, Time(host.contact.at), sequence])?;
    }
    Ok(())
}
