//! Retention and rate limits of escrow files.
//!
//! In: the held versions, the new version, and the time. Out: that it is kept and which version is removed for it, that
//! it was kept before, or why not. The hub cannot distinguish a good file from a well-formed bad one. So no version
//! that may still be needed is removed for something newer. A version is removed only once another of the same key
//! replaced it [`SUPERSEDED_KEPT`] ago. It is never removed when it is the last of its key that a holder was seen to
//! open. Where nothing may be removed, the new version is refused: a thief of a certificate can fill the quota,
//! visibly, and destroys nothing. Deliberately absent: opening a file.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::escrow::{EscrowNumber, EscrowView, NUMBER_JUMP_MAX, VERSIONS_MAX};
use holdfast_protocol::id::CustomerId;
use jiff::{SignedDuration, Timestamp};

/// A sheet is found again within this time, or a mistake noticed.
pub const SUPERSEDED_KEPT: SignedDuration = SignedDuration::from_hours(90 * 24);

/// What becomes of a version that is put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    /// It is held already, the same in every point.
    Again,
    /// It is kept, and this version is removed for it, if any.
    Keep(Option<EscrowNumber>),
}

/// Why a version is not kept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PutError {
    /// The number is another's.
    #[error(
        "escrow {number} is held here with other content, and none is overwritten: put yours as a later number"
    )]
    Taken { number: EscrowNumber },
    /// Behind the newest, or far ahead.
    #[error(
        "escrow {number} cannot follow {newest}, the newest here: take a number from {newest} + 1 to {newest} + {NUMBER_JUMP_MAX}"
    )]
    Number {
        number: EscrowNumber,
        /// The newest that is held; 0 is none.
        newest: u32,
    },
    #[error(
        "this host's escrows are of customer {held}, not of {said}: a box that changes hands is revoked and enrolled anew"
    )]
    Customer {
        /// Whose they are.
        held: CustomerId,
        /// Whose this would be.
        said: CustomerId,
    },
    #[error(
        "{VERSIONS_MAX} escrows are held for this host and none of them may go yet: an operator must look who made so many"
    )]
    Full,
}

impl PutError {
    /// The stable code.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Taken { .. } => ErrorCode::EscrowTaken,
            Self::Number { .. } => ErrorCode::EscrowNumber,
            Self::Customer { .. } => ErrorCode::EscrowOther,
            Self::Full => ErrorCode::Quota,
        }
    }
}

/// Judges a version against those held, which come newest first. `put.kept_at` is now.
///
/// # Errors
/// [`PutError`].
pub fn judge_put(held: &[EscrowView], put: &EscrowView) -> Result<Put, PutError> {
    let number = put.number;
    if let Some(same) = held.iter().find(|view| view.number == number) {
        let said = EscrowView { kept_at: same.kept_at, opened_at: same.opened_at, ..put.clone() };
        return if said == *same { Ok(Put::Again) } else { Err(PutError::Taken { number }) };
    }
    if let Some(other) = held.iter().find(|view| view.customer != put.customer) {
        return Err(PutError::Customer { held: other.customer.clone(), said: put.customer.clone() });
    }
    let newest = held.first().map_or(0, |view| view.number.number());
    if !(newest + 1..=newest + NUMBER_JUMP_MAX).contains(&number.number()) {
        return Err(PutError::Number { number, newest });
    }
    if held.len() < VERSIONS_MAX as usize {
        return Ok(Put::Keep(None));
    }
    let oldest_first = held.iter().enumerate().rev();
    let may_go =
        oldest_first.filter(|(place, _)| may_go(held, *place, put.kept_at)).map(|(_, view)| view.number);
    may_go.map(Some).next().map(Put::Keep).ok_or(PutError::Full)
}

/// Whether the version at this index is no longer needed.
fn may_go(held: &[EscrowView], place: usize, now: Timestamp) -> bool {
    let (newer, Some(view)) = (held.get(..place).unwrap_or(&[]), held.get(place)) else { return false };
    let mut of_this_key = newer.iter().filter(|other| other.fingerprint == view.fingerprint);
    let last_opened = view.opened_at.is_some() && of_this_key.clone().all(|other| other.opened_at.is_none());
    // A file of an older code that was put anew, because it was lost here, supersedes none of a newer code.
    let superseded = of_this_key
        .any(|other| other.code >= view.code && now.duration_since(other.kept_at) >= SUPERSEDED_KEPT);
    superseded && !last_opened
}

/// What a host does that is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Puts a version, or reports that one was opened.
    Write,
    /// Reads a file.
    Read,
    /// An operator reads its files: counted apart, so that neither keeps the other from it.
    Fetch,
    /// Lists versions, or requests a proof.
    Look,
}

impl Act {
    /// As it is written down.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::Read => "read",
            Self::Fetch => "fetch",
            Self::Look => "look",
        }
    }

    /// The limit per hour. A host makes a few versions in its life, and compares once a day.
    #[must_use]
    pub const fn per_hour(self) -> u32 {
        match self {
            Self::Write => 12,
            Self::Read | Self::Fetch => 6,
            Self::Look => 120,
        }
    }
}

/// The hour in which a host's acts of one kind are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hour {
    /// When it began.
    pub since: Timestamp,
    /// How many there were.
    pub count: u32,
}

/// More than there may be in an hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this host's escrow was asked for {} times within the hour: more is refused until the hour is over", .0.per_hour())]
pub struct TooOften(pub Act);

/// Counts one more.
///
/// # Errors
/// [`TooOften`].
pub fn count(act: Act, hour: Option<Hour>, now: Timestamp) -> Result<Hour, TooOften> {
    let lasts = |hour: &Hour| {
        let age = now.duration_since(hour.since);
        // A clock that was set back begins a new hour, rather than an endless one.
        !age.is_negative() && age < SignedDuration::from_hours(1)
    };
    match hour.filter(lasts) {
        None => Ok(Hour { since: now, count: 1 }),
        Some(hour) if hour.count < act.per_hour() => Ok(Hour { count: hour.count + 1, ..hour }),
        Some(_) => Err(TooOften(act)),
    }
}

#[cfg(test)]
mod tests {
    use holdfast_protocol::escrow::EscrowBytes;
    use holdfast_protocol::job::{HostEpoch, UtcSecond};

    use super::*;

    fn now() -> Timestamp {
        Timestamp::from_second(1_700_000_000).unwrap()
    }

    fn view(number: u32, key: &str, days_ago: i64) -> EscrowView {
        EscrowView {
            number: number.try_into().unwrap(),
            sha256: EscrowBytes::try_from(number.to_be_bytes().to_vec()).unwrap().sha256(),
            bytes: 4,
            customer: "acme".parse().unwrap(),
            epoch: HostEpoch::new(1),
            code: number.try_into().unwrap(),
            fingerprint: [key; 32].join(":").parse().unwrap(),
            made_at: UtcSecond::new(now()).unwrap(),
            kept_at: now() - SignedDuration::from_hours(24 * days_ago),
            opened_at: None,
        }
    }

    /// Newest first; the newest is of `newest_days` ago, each before it a day older.
    fn full(newest_days: i64) -> Vec<EscrowView> {
        (1..=VERSIONS_MAX).rev().map(|n| view(n, "aa", newest_days + i64::from(VERSIONS_MAX - n))).collect()
    }

    #[test]
    fn a_version_is_kept_once_and_never_overwritten() {
        let held = [view(3, "aa", 1), view(2, "aa", 2)];
        assert_eq!(judge_put(&held, &view(4, "bb", 0)), Ok(Put::Keep(None)));
        let again = EscrowView { kept_at: now(), ..view(3, "aa", 1) };
        assert_eq!(judge_put(&held, &again), Ok(Put::Again));
        let number = 3.try_into().unwrap();
        assert_eq!(judge_put(&held, &view(3, "bb", 0)), Err(PutError::Taken { number }));
        let other = EscrowView { sha256: view(9, "aa", 0).sha256, ..again };
        assert_eq!(judge_put(&held, &other), Err(PutError::Taken { number }));
        for (number, taken) in [(1, false), (103, true), (104, false)] {
            let verdict = judge_put(&held, &view(number, "aa", 0));
            assert_eq!(verdict.is_ok(), taken, "{number}: {verdict:?}");
        }
        let other = EscrowView { customer: "other".parse().unwrap(), ..view(4, "aa", 0) };
        assert!(matches!(judge_put(&held, &other), Err(PutError::Customer { .. })));
    }

    #[test]
    fn needed_versions_are_never_removed() {
        let next = view(VERSIONS_MAX + 1, "aa", 0);
        let gone = |held: &[EscrowView]| judge_put(held, &next);
        let oldest = |number: u32| Ok(Put::Keep(Some(number.try_into().unwrap())));
        assert_eq!(gone(&full(0)), Err(PutError::Full), "all are young");
        assert_eq!(gone(&full(90)), oldest(1));
        let mut held = full(90);
        held.last_mut().unwrap().opened_at = Some(UtcSecond::new(now()).unwrap());
        assert_eq!(gone(&held), oldest(2), "the last that was opened stays");
        held[0].opened_at = held.last().unwrap().opened_at;
        assert_eq!(gone(&held), oldest(1), "a later one was opened");
        let mut held = full(90);
        held.last_mut().unwrap().fingerprint = view(1, "bb", 0).fingerprint;
        assert_eq!(gone(&held), oldest(2), "the only one of another key stays");
        let mut held = full(90);
        for newer in &mut held[..VERSIONS_MAX as usize - 1] {
            newer.code = 1.try_into().unwrap();
        }
        held.last_mut().unwrap().code = 9.try_into().unwrap();
        assert_eq!(gone(&held), oldest(2), "what was put anew of an older code supersedes no newer code");
        for held in [full(0), full(90)] {
            assert_ne!(gone(&held), oldest(VERSIONS_MAX), "the newest stays");
        }
    }

    #[test]
    fn an_hour_has_its_bound_and_ends() {
        let mut hour = None;
        for _ in 0..Act::Read.per_hour() {
            hour = Some(count(Act::Read, hour, now()).unwrap());
        }
        assert_eq!(count(Act::Read, hour, now()), Err(TooOften(Act::Read)));
        let soon = now() + SignedDuration::from_secs(3599);
        assert_eq!(count(Act::Read, hour, soon), Err(TooOften(Act::Read)));
        let later = now() + SignedDuration::from_secs(3600);
        assert_eq!(count(Act::Read, hour, later), Ok(Hour { since: later, count: 1 }));
        let before = now() - SignedDuration::from_secs(1);
        assert_eq!(count(Act::Read, hour, before), Ok(Hour { since: before, count: 1 }));
    }
}
