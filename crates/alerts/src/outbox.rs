//! Notices that wait in an outbox when a newer one comes.
//!
//! A receiver never hears that something is over before it heard that it fires. Where the first of the two still waits,
//! neither is sent.

use crate::incident::IncidentId;
use crate::notice::{DedupeKey, IncidentNews, Notice};

/// What becomes of an outbox.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reconciled {
    /// The new notice, without what was cancelled; none where nothing is left of it.
    pub queue: Option<Notice>,
    /// Waiting notices that say less now. They keep their keys.
    pub replace: Vec<Notice>,
    /// Waiting notices that say nothing any more, and are not sent.
    pub cancel: Vec<DedupeKey>,
    /// What is not sent at all, for the log.
    pub cancelled: Vec<Cancelled>,
}

/// An incident that was over before its receiver heard of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cancelled {
    /// Which.
    pub incident: IncidentId,
    /// The notice that it fires.
    pub fire: DedupeKey,
    /// The notice that it is over.
    pub resolve: DedupeKey,
}

/// Holds a new notice against those that wait for the same receiver, the oldest first. Notices that are being sent at
/// this moment do not wait any more, and are left out by the caller.
#[must_use]
pub fn reconcile(waiting: &[Notice], new: Notice) -> Reconciled {
    let first_heard = |id: IncidentId| {
        let fires = |notice: &&Notice| {
            let incidents = notice.incidents.iter();
            incidents
                .filter(|incident| incident.id == id)
                .any(|incident| incident.news == IncidentNews::New {})
        };
        waiting.iter().filter(|notice| notice.receiver == new.receiver).find(fires)
    };
    let over = new.incidents.iter().filter(|incident| !incident.is_firing());
    let cancelled: Vec<Cancelled> = over
        .filter_map(|incident| {
            let fire = first_heard(incident.id)?.key.clone();
            Some(Cancelled { incident: incident.id, fire, resolve: new.key.clone() })
        })
        .collect();
    let is_cancelled = |id: IncidentId| cancelled.iter().any(|one| one.incident == id);
    let without = |notice: &Notice| {
        let mut less = notice.clone();
        less.incidents.retain(|incident| !is_cancelled(incident.id));
        less
    };
    let mut reconciled = Reconciled::default();
    for notice in waiting.iter().filter(|notice| notice.receiver == new.receiver) {
        let less = without(notice);
        if less.incidents.is_empty() {
            reconciled.cancel.push(less.key);
        } else if less.incidents.len() < notice.incidents.len() {
            reconciled.replace.push(less);
        }
    }
    reconciled.queue = Some(without(&new)).filter(|less| !less.incidents.is_empty());
    reconciled.cancelled = cancelled;
    reconciled
}

/// What a receiver hears of an incident that is in two notices, where it gets one instead of both.
#[must_use]
pub const fn merge(earlier: IncidentNews, later: IncidentNews) -> Option<IncidentNews> {
    match (earlier, later) {
        (IncidentNews::New {}, IncidentNews::Resolved { .. }) => None,
        (IncidentNews::New {}, _) => Some(IncidentNews::New {}),
        // It was over and fires again, which the receiver never heard.
        (IncidentNews::Resolved { .. } | IncidentNews::Changed {}, later) if !later.is_resolved() => {
            Some(IncidentNews::Changed {})
        }
        (IncidentNews::Ongoing {} | IncidentNews::Changed {} | IncidentNews::Resolved { .. }, later) => {
            Some(later)
        }
    }
}
