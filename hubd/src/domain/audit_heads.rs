//! Kept ends of audit chains, and evidence of a changed past.
//!
//! In: the end that a host reports, and those that are kept of it. Out: whether it is new, known, or evidence. A chain
//! only grows, so an end with a lower number, or with another hash under the same number, is another history. Which
//! ends are kept is bounded: the newest, then one an hour, then one a day.

use holdfast_protocol::operator::KeptHead;
use holdfast_protocol::report::AuditHead;
use jiff::{SignedDuration, Timestamp};

/// The newest ends are all kept.
const NEWEST_KEPT: usize = 64;

/// For so long one an hour is kept, and after it one a day.
const HOURLY_FOR: SignedDuration = SignedDuration::from_hours(7 * 24);

/// As many ends as one host has: two years of days, and what is newer.
pub const HEADS_MAX: usize = 1_000;

/// As much evidence as is kept of one host. The first is the one that counts.
pub const BREAKS_MAX: u32 = 20;

/// What a reported end is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadVerdict {
    /// The chain has grown.
    New,
    /// It is kept already.
    Known,
    /// Another history than the kept end shows.
    Break,
}

/// Holds a reported end to the newest that is kept, and to the kept one with the same number.
#[must_use]
pub fn judge(newest: Option<&KeptHead>, same: Option<&KeptHead>, found: &AuditHead) -> HeadVerdict {
    match (newest, same) {
        (None, _) => HeadVerdict::New,
        (_, Some(same)) if same.chain != found.chain => HeadVerdict::Break,
        (Some(newest), _) if found.number < newest.number => HeadVerdict::Break,
        (_, Some(_)) => HeadVerdict::Known,
        (Some(_), None) => HeadVerdict::New,
    }
}

/// The numbers of the ends that are not kept any longer. `heads` are sorted, the newest first.
#[must_use]
pub fn superfluous(heads: &[KeptHead], now: Timestamp) -> Vec<u64> {
    let period = |head: &KeptHead| {
        let age = now.duration_since(head.at);
        let seconds = if age < HOURLY_FOR { 3_600 } else { 86_400 };
        (seconds, head.at.as_second().div_euclid(seconds))
    };
    let mut kept = NEWEST_KEPT.min(heads.len());
    let mut last = None;
    let mut gone = Vec::new();
    for head in heads.iter().skip(NEWEST_KEPT) {
        let period = period(head);
        if last == Some(period) || kept >= HEADS_MAX {
            gone.push(head.number);
        } else {
            last = Some(period);
            kept += 1;
        }
    }
    gone
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(number: u64, chain: &str, hour: i64) -> KeptHead {
        let at = Timestamp::from_second(1_800_000_000 + hour * 3_600).unwrap();
        KeptHead { number, chain: chain.to_owned(), at }
    }

    #[test]
    fn a_chain_grows_or_is_another_history() {
        let found = |number, chain: &str| AuditHead { number, chain: chain.to_owned() };
        let newest = kept(10, "ten", 0);
        let judged = |same: Option<&KeptHead>, found: &AuditHead| judge(Some(&newest), same, found);
        assert_eq!(judge(None, None, &found(0, "")), HeadVerdict::New);
        assert_eq!(judged(None, &found(11, "eleven")), HeadVerdict::New);
        assert_eq!(judged(Some(&newest), &found(10, "ten")), HeadVerdict::Known);
        assert_eq!(judged(Some(&newest), &found(10, "other")), HeadVerdict::Break);
        assert_eq!(judged(None, &found(9, "nine")), HeadVerdict::Break);
        assert_eq!(judged(Some(&kept(3, "three", 0)), &found(3, "three")), HeadVerdict::Break);
    }

    #[test]
    fn the_newest_all_hours_and_days_are_kept_within_a_bound() {
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        // Three years, four ends an hour.
        let heads: Vec<KeptHead> = (0..3 * 365 * 24 * 4_u32)
            .map(|quarter| {
                let at = now - SignedDuration::from_mins(15 * i64::from(quarter));
                KeptHead { number: u64::from(1_000_000 - quarter), chain: String::new(), at }
            })
            .collect();
        let gone: std::collections::BTreeSet<u64> = superfluous(&heads, now).into_iter().collect();
        let left: Vec<&KeptHead> = heads.iter().filter(|head| !gone.contains(&head.number)).collect();
        assert!((800..=HEADS_MAX).contains(&left.len()), "{}", left.len());
        assert!(left.iter().take(NEWEST_KEPT).zip(&heads).all(|(left, head)| *left == head));
        let gaps = left.windows(2).map(|pair| pair[0].at.duration_since(pair[1].at));
        let longest = gaps.max().unwrap();
        assert!(longest <= SignedDuration::from_hours(48), "{longest:?}");
        // Once more: nothing else goes.
        let left: Vec<KeptHead> = left.into_iter().cloned().collect();
        assert_eq!(superfluous(&left, now), Vec::<u64>::new());
    }
}
