//! Checks of presented invites and enrollment requests.
//!
//! In: the record of the invite, the applicant's key and the time. Out: that a first certificate is due, that the one
//! given before is repeated, or why neither. After a lost reply the applicant repeats the request with the same key.
//! Another key shows that another machine has the invite. Deliberately absent: CSRs and certificates; the key is known
//! here by its hash.

use jiff::{SignedDuration, Timestamp};

/// An invite lives this long.
pub const INVITE_LIFE: SignedDuration = SignedDuration::from_hours(1);

/// Pending requests at most. Beyond it the one that was not repeated for longest is dropped.
pub const PENDING_MAX: u32 = 100;

/// Of one address.
pub const PENDING_EACH: u32 = 10;

/// A waiting agent repeats its request after this.
pub const REQUEST_AGAIN_S: u32 = 30;

/// The SHA-256 of a public key, by which a returning applicant is known.
pub type KeyHash = [u8; 32];

/// The record of an invite.
#[derive(Clone, Copy, Debug)]
pub struct InviteRecord {
    /// When it ends.
    pub expires_at: Timestamp,
    /// The key that used it, once one did.
    pub used_by: Option<KeyHash>,
    /// The newest certificate of the host it made, once it did.
    pub host_generation: u32,
}

/// What a good invite gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redeem {
    /// A new host and its first certificate.
    First,
    /// The first certificate again: the reply was lost.
    Again,
}

/// Why an invite gives nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InviteError {
    /// There is no such invite.
    #[error("this invite is not known here: ask an operator for a new one (`holdfast host invite NAME`)")]
    Unknown,
    #[error("this invite ended at {ended}: ask an operator for a new one (`holdfast host invite NAME`)")]
    Expired {
        /// When it ended.
        ended: Timestamp,
    },
    /// Used with another key, or its host has moved on.
    #[error(
        "this invite was used already: if it was not by this host, tell an operator; else ask for a new one (`holdfast host invite NAME`)"
    )]
    Used,
}

/// Judges an invite.
///
/// # Errors
/// [`InviteError`].
pub fn judge(invite: Option<InviteRecord>, key: KeyHash, now: Timestamp) -> Result<Redeem, InviteError> {
    let invite = invite.ok_or(InviteError::Unknown)?;
    match invite.used_by {
        Some(used_by) if used_by == key && invite.host_generation == 1 => Ok(Redeem::Again),
        Some(_) => Err(InviteError::Used),
        None if now >= invite.expires_at => Err(InviteError::Expired { ended: invite.expires_at }),
        None => Ok(Redeem::First),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_invite_against_each_applicant() {
        let now = Timestamp::from_second(1_700_000_000).unwrap();
        let later = now + SignedDuration::from_secs(1);
        let invite = |expires_at, used_by, host_generation| {
            Some(InviteRecord { expires_at, used_by, host_generation })
        };
        let (mine, other) = ([1; 32], [2; 32]);
        assert_eq!(judge(None, mine, now), Err(InviteError::Unknown));
        assert_eq!(judge(invite(later, None, 0), mine, now), Ok(Redeem::First));
        assert_eq!(judge(invite(now, None, 0), mine, now), Err(InviteError::Expired { ended: now }));
        assert_eq!(judge(invite(now, Some(mine), 1), mine, now), Ok(Redeem::Again));
        assert_eq!(judge(invite(later, Some(mine), 2), mine, now), Err(InviteError::Used));
        assert_eq!(judge(invite(later, Some(other), 1), mine, now), Err(InviteError::Used));
    }
}
