//! The host, epoch and time that a job is valid for.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::HostId;
use holdfast_protocol::job::{HostEpoch, Payload, SeenHost, UtcSecond, Verb};
use jiff::{SignedDuration, Timestamp};

/// How far the clock may be behind the latest time that was seen. Beyond that, no job is timely.
pub const SKEW: SignedDuration = SignedDuration::from_secs(120);

/// Who a host is, and what it knows of the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Here {
    pub host: HostId,
    /// Which life of its state.
    pub epoch: HostEpoch,
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
        wanted: HostId,
        /// Who this is.
        here: HostId,
    },
    /// For a host of another name, whatever id is next to it.
    #[error(
        "the job was signed for host {wanted}, and this is {here}: whoever signed was shown this host's id under another \
         host's name; look who runs the hub"
    )]
    Name {
        /// For whom, as the signer knew it.
        wanted: SeenHost,
        /// Who this is.
        here: SeenHost,
    },
    /// For a host of this name with another key.
    #[error(
        "the job was signed for host {wanted}, and this is {here}: compare with `agentd status` here, then pin it anew with \
         `holdfast host pin`"
    )]
    Key {
        /// For whom, as the signer knew it.
        wanted: SeenHost,
        /// Who this is.
        here: SeenHost,
    },
    /// It does not say what it must be held to.
    #[error("the job does not say {0}: sign it again with a newer `holdfast`")]
    Unbound(&'static str),
    /// For another life.
    #[error("the job is for epoch {wanted} of this host's state, now is {here}: sign it anew")]
    Epoch {
        wanted: HostEpoch,
        /// Which it is.
        here: HostEpoch,
    },
    /// The clock went back.
    #[error("the clock stands at {now}, and {latest} was seen already: set the clock right; jobs wait")]
    ClockBehind {
        now: Timestamp,
        /// The latest time seen.
        latest: Timestamp,
    },
    #[error("the job begins at {0}: it waits until then")]
    NotYet(UtcSecond),
    #[error("the job ended at {0}: sign it anew")]
    Expired(UtcSecond),
}

impl NotHere {
    /// The stable code.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Host { .. } | Self::Name { .. } => ErrorCode::NotYours,
            Self::Key { .. } => ErrorCode::HostKeyChanged,
            Self::Unbound(_) => ErrorCode::JobUnbound,
            Self::Epoch { .. } => ErrorCode::JobEpoch,
            Self::ClockBehind { .. } => ErrorCode::ClockBehind,
            Self::NotYet(_) => ErrorCode::JobNotYet,
            Self::Expired(_) => ErrorCode::JobExpired,
        }
    }
}

/// How precisely a job of a verb must name the host and the guest that it means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binding {
    /// The host by name and fingerprint, a guest with its customer.
    Whole,
    /// As much as it says: nothing is taken away by it.
    AsSaid,
}

/// How much a job of this verb must say.
#[must_use]
pub const fn binding(verb: Verb) -> Binding {
    match verb {
        Verb::BackupNow | Verb::Cancel | Verb::RestoreTest => Binding::AsSaid,
        Verb::AdoptGuest
        | Verb::AllowGrowth
        | Verb::ApproveRelease
        | Verb::AttachStorage
        | Verb::BreakGlass
        | Verb::DeleteBackup
        | Verb::DestroyGuest
        | Verb::DiscardCopy
        | Verb::DetachStorage
        | Verb::ReassignVolume
        | Verb::RebaseGuest
        | Verb::LoosenPolicy
        | Verb::PolicyUpdate
        | Verb::ReleaseBrake
        | Verb::Restore
        | Verb::RestoreHost
        | Verb::Rollback
        | Verb::SetTunnelToken
        | Verb::SwapGuest
        | Verb::WithdrawRestore => Binding::Whole,
    }
}

/// Whether a payload means this host, by what the host knows of itself. What it says is compared for every verb.
///
/// # Errors
/// [`NotHere::Name`], [`NotHere::Key`] or [`NotHere::Unbound`].
pub fn meant_for(payload: &Payload, own: &SeenHost) -> Result<(), NotHere> {
    let Some(wanted) = &payload.host else {
        return match binding(payload.act.verb()) {
            Binding::AsSaid => Ok(()),
            Binding::Whole => Err(NotHere::Unbound("which host it means by name and fingerprint")),
        };
    };
    same(wanted, own)
}

/// Whether two descriptions of a host mean the same host.
///
/// # Errors
/// [`NotHere::Name`] or [`NotHere::Key`].
pub fn same(wanted: &SeenHost, own: &SeenHost) -> Result<(), NotHere> {
    let both = || (wanted.clone(), own.clone());
    if wanted.name != own.name {
        let (wanted, here) = both();
        return Err(NotHere::Name { wanted, here });
    }
    if wanted.fingerprint != own.fingerprint {
        let (wanted, here) = both();
        return Err(NotHere::Key { wanted, here });
    }
    Ok(())
}

/// Judges a payload. Called when the job is consumed, and again right before its effect.
///
/// # Errors
/// [`NotHere`], at the first reason.
pub fn timely(payload: &Payload, here: &Here) -> Result<(), NotHere> {
    timely_until(payload, here, payload.expires_at.at())
}

/// Judges a payload that may have its effect until `end`, whenever it says that it ends.
///
/// # Errors
/// [`NotHere`], at the first reason.
pub fn timely_until(payload: &Payload, here: &Here, end: Timestamp) -> Result<(), NotHere> {
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
    if here.now >= end {
        return Err(NotHere::Expired(payload.expires_at));
    }
    Ok(())
}
