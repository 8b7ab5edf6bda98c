//! Guests taken up from a lost host, until all are back.
//!
//! Our records list them as made, by an operation that never ran here. So none is made anew, empty, and each comes back
//! by the way of lost guests. A guest that came back was made by another operation.

use holdfast_protocol::id::{GuestUid, OperationId};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::records::{GuestRecord, Place};

/// What was taken up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InheritedGuests {
    /// The placeholder for the operations of the lost host that made them.
    pub by: OperationId,
    pub at: Timestamp,
    /// Who was spoken of: those that come back in their order, and those that stay away.
    pub guests: Vec<GuestUid>,
}

impl InheritedGuests {
    /// Whether a guest of the lost host is not here yet, and nothing is under way for it.
    #[must_use]
    pub fn is_away(&self, record: &GuestRecord) -> bool {
        matches!(&record.place, Place::Made { by, .. } if *by == self.by)
    }
}

/// How far the way back is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WayBack {
    /// Who is back.
    pub returned: Vec<Return>,
    /// Who is not.
    pub away: Vec<Away>,
}

/// One that is back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Return {
    /// When its making began.
    pub began_at: Timestamp,
    /// When it was done.
    pub ended_at: Timestamp,
    /// The size of what it was made from.
    pub bytes: u64,
}

/// One that is not back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Away {
    pub name: String,
    /// The size of its newest backup, where one was found.
    pub bytes: Option<u64>,
}

impl WayBack {
    /// How long the others take, at the pace of those that are back; none before one is, or while a size is not known.
    #[must_use]
    pub fn remaining(&self) -> Option<SignedDuration> {
        let began = self.returned.iter().map(|one| one.began_at).min()?;
        let ended = self.returned.iter().map(|one| one.ended_at).max()?;
        let done: u64 = self.returned.iter().map(|one| one.bytes).fold(0, u64::saturating_add);
        let sizes: Option<Vec<u64>> = self.away.iter().map(|one| one.bytes).collect();
        let ahead = sizes?.into_iter().fold(0, u64::saturating_add);
        let took = u128::try_from(ended.duration_since(began).as_millis()).ok()?;
        let ms = took.saturating_mul(u128::from(ahead)).checked_div(u128::from(done))?;
        Some(SignedDuration::from_millis(i64::try_from(ms).ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn returned(began: i64, ended: i64, bytes: u64) -> Return {
        let at = |second| Timestamp::from_second(second).unwrap();
        Return { began_at: at(began), ended_at: at(ended), bytes }
    }

    fn away(bytes: Option<u64>) -> Away {
        Away { name: "web-1".to_owned(), bytes }
    }

    #[test]
    fn the_estimate_is_the_pace_of_those_that_are_back() {
        let way = |returned: &[Return], away: &[Away]| {
            WayBack { returned: returned.to_vec(), away: away.to_vec() }.remaining()
        };
        // Two at once, in 100 s: 20 bytes a second.
        let two = [returned(1_000, 1_060, 800), returned(1_000, 1_100, 1_200)];
        let cases = [
            ("at that pace", &two[..], vec![away(Some(600)), away(Some(400))], Some(50)),
            ("all back", &two[..], vec![], Some(0)),
            ("none back yet", &[], vec![away(Some(600))], None),
            ("a size that nobody knows", &two[..], vec![away(Some(600)), away(None)], None),
            ("made from nothing", &[returned(1_000, 1_060, 0)], vec![away(Some(600))], None),
        ];
        for (what, returned, others, wanted) in cases {
            assert_eq!(way(returned, &others), wanted.map(SignedDuration::from_secs), "{what}");
        }
    }
}
