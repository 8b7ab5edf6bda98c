//! Several notices as one.
//!
//! At the end of quiet hours the groups of many hosts release what was held, and each receiver gets it as one digest.
//! An outbox that grows too long is shortened in the same way: nothing is lost, it is only said in fewer messages.

use std::collections::BTreeMap;

use holdfast_protocol::id::ReceiverName;

use crate::incident::IncidentId;
use crate::notice::{DedupeKey, Notice, NoticeIncident, Origin, Reason};
use crate::outbox::merge;

/// As many incidents as a combined notice lists. More are split over several, each with its own key.
pub const DIGEST_INCIDENTS_MAX: usize = 500;

/// Notices after they were combined.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Combined {
    /// What is sent.
    pub notices: Vec<Notice>,
    /// The keys of those that were combined, and are not sent themselves.
    pub replaced: Vec<DedupeKey>,
    /// Incidents that came and went within these notices, and are not sent.
    pub dropped: Vec<IncidentId>,
}

/// Combines the notices of each receiver, the oldest first. One that is alone stays as it is.
#[must_use]
pub fn combine(notices: impl IntoIterator<Item = Notice>) -> Combined {
    let mut by_receiver: BTreeMap<ReceiverName, Vec<Notice>> = BTreeMap::new();
    for notice in notices {
        by_receiver.entry(notice.receiver.clone()).or_default().push(notice);
    }
    let mut combined = Combined::default();
    for (receiver, parts) in by_receiver {
        if parts.len() < 2 {
            combined.notices.extend(parts);
        } else {
            of_receiver(&receiver, parts, &mut combined);
        }
    }
    combined
}

fn of_receiver(receiver: &ReceiverName, parts: Vec<Notice>, combined: &mut Combined) {
    let count = u32::try_from(parts.len()).unwrap_or(u32::MAX);
    let Some(first) = parts.first().map(|part| part.key.clone()) else { return };
    let made_at = parts.iter().map(|part| part.made_at).max().unwrap_or_default();
    let not_before = parts.iter().map(|part| part.not_before).min().unwrap_or_default();
    let mut incidents: BTreeMap<IncidentId, NoticeIncident> = BTreeMap::new();
    for part in parts {
        combined.replaced.push(part.key);
        for mut later in part.incidents {
            let Some(earlier) = incidents.remove(&later.id) else {
                incidents.insert(later.id, later);
                continue;
            };
            match merge(earlier.news, later.news) {
                Some(news) => {
                    later.news = news;
                    incidents.insert(later.id, later);
                }
                None => combined.dropped.push(later.id),
            }
        }
    }
    let (mut listed, resolved): (Vec<_>, Vec<_>) =
        incidents.into_values().partition(NoticeIncident::is_firing);
    listed.extend(resolved);
    for (number, chunk) in listed.chunks(DIGEST_INCIDENTS_MAX).enumerate() {
        combined.notices.push(Notice {
            key: DedupeKey::of_digest(&first, number),
            receiver: receiver.clone(),
            reason: Reason::Digest,
            origin: Origin::Combined { parts: count },
            incidents: chunk.to_vec(),
            made_at,
            not_before,
        });
    }
}
