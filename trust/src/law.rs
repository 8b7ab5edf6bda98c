//! Is a job for this host, in this life of its state, now?

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::HostId;
use holdfast_protocol::job::{HostEpoch, Payload, UtcSecond};
use jiff::{SignedDuration, Timestamp};

/// How far the clock may stand behind the latest time that was seen. More, and no job is timely.
pub const SKEW: SignedDuration = SignedDuration::from_secs(120);

/// Who a host is, and what it knows of the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Here {
    /// The host.
    pub host: HostId,
    /// Which life of its state.
    pub epoch: HostEpoch,
    /// Its clock.
    pub now: Timestamp,
    /// The latest time it ever saw; it never falls.
    pub latest: Timestamp,
}

/// Why a job is not for here and now.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotHere {
    /// For another host.
    #[error("the job is for host {wanted}, this is {here}: submit it there")]
    Host {
        /// For whom.
        wanted: HostId,
        /// Who this is.
        here: HostId,
    },
    /// For another life.
    #[error("the job is for epoch {wanted} of this host's state, now is {here}: sign it anew")]
    Epoch {
        /// For which.
        wanted: HostEpoch,
        /// Which it is.
        here: HostEpoch,
    },
    /// The clock went back.
    #[error("the clock stands at {now}, and {latest} was seen already: set the clock right; jobs wait")]
    ClockBehind {
        /// The clock.
        now: Timestamp,
        /// The latest time seen.
        latest: Timestamp,
    },
    /// Too early.
    #[error("the job begins at {0}: it waits until then")]
    NotYet(UtcSecond),
    /// Too late.
    #[error("the job ended at {0}: sign it anew")]
    Expired(UtcSecond),
}

impl NotHere {
    /// The stable code.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Host { .. } => ErrorCode::NotYours,
            Self::Epoch { .. } => ErrorCode::JobEpoch,
            Self::ClockBehind { .. } => ErrorCode::ClockBehind,
            Self::NotYet(_) => ErrorCode::JobNotYet,
            Self::Expired(_) => ErrorCode::JobExpired,
        }
    }
}

/// Judges a payload. Asked when the job is consumed, and again right before its effect.
///
/// # Errors
/// [`NotHere`], at the first reason.
pub fn timely(payload: &Payload, here: &Here) -> Result<(), NotHere> {
    if payload.host_id != here.host {
        return Err(NotHere::Host { wanted: payload.host_id, here: here.host });
    }
    if payload.host_epoch != here.epoch {
        return Err(NotHere::Epoch { wanted: payload.host_epoch, here: here.epoch });
    }
    if here.latest.duration_since(here.now) > SKEW {
        return Err(NotHere::ClockBehind { now: here.now, latest: here.latest });
    }
    if here.now < payload.not_before.at() {
        return Err(NotHere::NotYet(payload.not_before));
    }
    if here.now >= payload.expires_at.at() {
        return Err(NotHere::Expired(payload.expires_at));
    }
    Ok(())
}
