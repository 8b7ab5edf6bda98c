//! The operations that a cycle opens.
//!
//! In: a plan, and the records it was made from. Out: the operations that may begin now, in order, and the requests
//! that end because something has priority over them. It remembers when each request of the document was first seen, so
//! that repeated requests never push one back. After a restart a request counts as seen anew, behind at most one full
//! lane. Deliberately absent: the rules (`operation::lane`), and opening anything.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_protocol::id::{GuestUid, OperationId};
use holdfast_protocol::operation::OperationKind;

use crate::model::records::{OpenOperation, Records};
use crate::model::request::QueuedRequest;
use crate::operation::lane::turn::{Arrival, Claim, Waiting, turns};
use crate::operation::lane::{Admission, Entry, Incoming, Lane, Subject, admit};
use crate::plan::Action;
use crate::plan::guest_requests::{Answer, RequestDecision};

/// When each request of the document was first seen.
#[derive(Debug, Default)]
pub(super) struct Arrivals(BTreeMap<(GuestUid, OperationKind), Arrival>);

/// An operation that may begin now.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Begin {
    pub action: Action,
    pub origin: Origin,
}

/// What requests it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    Document,
    /// A guest, by this request.
    Request(OperationId),
    /// Operators, by this job.
    Job(OperationId),
}

/// What a cycle does.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Turns {
    /// Opens these, in order.
    pub begin: Vec<Begin>,
    /// Ends these requests for an operation of this name.
    pub preempted: Vec<(OperationId, &'static str)>,
}

impl Arrivals {
    pub fn choose(&mut self, wanted: Vec<Action>, asked: &[RequestDecision], records: &Records) -> Turns {
        self.forget(&wanted, records);
        let mut preempted: Vec<(OperationId, &'static str)> = Vec::new();
        let mut candidates: Vec<(Begin, Arrival)> = Vec::new();
        for action in wanted {
            let (uid, kind) = (action.operation.lane(), action.operation.kind());
            let arrival = *self.0.entry((uid, kind)).or_insert(Arrival::after_request(records.last_request));
            match admit(&lane(records, uid), Incoming::Work(kind), &action.operation.subject()) {
                // A waiting request does the same, or the new request may not follow what waits: it is planned anew.
                Admission::Joins(_) | Admission::Refused(_) => continue,
                Admission::Preempts { ended, .. } => {
                    preempted.extend(ended.into_iter().map(|id| (id, kind.as_str())));
                }
                // A full queue of requests blocks no operator: a request of the document is not kept in it.
                Admission::Admitted { .. } | Admission::Busy { .. } => {}
            }
            candidates.push((Begin { action, origin: Origin::Document }, arrival));
        }
        let gone: BTreeSet<OperationId> = preempted.iter().map(|(id, _)| *id).collect();
        for asked in asked.iter().filter(|asked| !gone.contains(&asked.request)) {
            let begins = (&asked.answer, serial(records, asked.request));
            let (Answer::Begin(action), Some(serial)) = begins else { continue };
            let begin = Begin { action: action.as_ref().clone(), origin: Origin::Request(asked.request) };
            candidates.push((begin, Arrival::of_request(serial)));
        }
        Turns { begin: take_turns(candidates, records), preempted }
    }

    /// A request that is no longer wanted loses its place. While its guest is busy this is not known, and the request
    /// keeps it.
    fn forget(&mut self, wanted: &[Action], records: &Records) {
        let busy: BTreeSet<GuestUid> = records.open.iter().map(|open| open.guest).collect();
        let wanted: BTreeSet<_> =
            wanted.iter().map(|action| (action.operation.lane(), action.operation.kind())).collect();
        self.0.retain(|key, _| busy.contains(&key.0) || wanted.contains(key));
    }
}

fn serial(records: &Records, id: OperationId) -> Option<u64> {
    records.requests.iter().find(|request| request.id == id).map(|request| request.serial)
}

/// The requests that wait on a guest. A request of the document is only there when no operation holds the lane.
fn lane(records: &Records, uid: GuestUid) -> Lane {
    let entry = |request: &QueuedRequest| Entry {
        id: request.id,
        work: request.ask.kind(),
        subject: Subject::of_ask(&request.ask),
    };
    let waits = records.requests.iter().filter(|request| request.guest == uid).map(entry).collect();
    Lane { holds: None, waits, host_waits: records.requests.len() }
}

fn take_turns(candidates: Vec<(Begin, Arrival)>, records: &Records) -> Vec<Begin> {
    let goal = |(begin, arrival): &(Begin, Arrival)| {
        let operation = &begin.action.operation;
        let guests = std::iter::once(operation.lane()).chain(operation.other()).collect();
        Waiting { claim: Claim { guests, work: operation.kind() }, arrival: *arrival }
    };
    let goals: Vec<Waiting> = candidates.iter().map(goal).collect();
    let mut candidates: Vec<Option<Begin>> = candidates.into_iter().map(|(begin, _)| Some(begin)).collect();
    let order = turns(&under_way(records), &goals);
    order.into_iter().filter_map(|place| candidates.get_mut(place)?.take()).collect()
}

/// An operation that holds two guests is listed with each, one after the other, and is one piece of work.
fn under_way(records: &Records) -> Vec<Claim> {
    let claim = |rows: &[OpenOperation]| {
        let work = rows.first()?.kind;
        Some(Claim { guests: rows.iter().map(|row| row.guest).collect(), work })
    };
    records.open.chunk_by(|one, next| one.id == next.id).filter_map(claim).collect()
}

#[cfg(test)]
mod tests;
