//! Validation of signed jobs: signature, host, time and policy.
//!
//! What comes in: the text as the hub passed it on, who may sign here, and what this host knows of itself and of the
//! time. What goes out: the checked job, or the one exact reason why it is turned away; then nothing of it is used up,
//! and the same operator may send a right one. Pure. Deliberately absent: whether its id and nonce were used before
//! (`agent-store` says that, in the transaction that uses them up), and the effect.

use std::collections::BTreeSet;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::{
    CustomerId, GoldenVersion, GuestName, GuestUid, JobId, OperatorName, TargetName, Vmid,
};
use holdfast_protocol::job::act::{ReleaseKind, ReleaseVersion};
use holdfast_protocol::job::envelope::SignedJobError;
use holdfast_protocol::job::{Act, Payload, SeenHost, SignedJob, Target, UtcSecond, Verb};
use holdfast_protocol::protection::{Protection, compare};
use holdfast_trust::limits::BackupLimits;
use holdfast_trust::operators::OperatorsError;
use holdfast_trust::policy::{Lane, PolicyError};
use holdfast_trust::scope::{Binding, Here, NotHere, binding, meant_for, timely, timely_until};
use holdfast_trust::{Accepted, Operators, Policy, Reach, Refused, Roster};
use jiff::{SignedDuration, Timestamp};

use super::change_limit;
use super::protection::beyond::within;
use crate::model::records::{CopyStage, Place, RestoredCopyRecord};

/// How long after its delay a job may still have its effect whose delay outlasts its end: a host that was off for a
/// weekend does not change who may sign when it comes back.
pub const LATE: SignedDuration = SignedDuration::from_hours(24);

/// Why a job is turned away. Nothing was done and nothing of it was used up.
#[derive(Debug, thiserror::Error)]
pub enum TurnedAway {
    /// Not a signed job.
    #[error(transparent)]
    Envelope(#[from] SignedJobError),
    /// No operator may sign anything here.
    #[error(
        "this box has no operators file, so nobody may sign: root lays one down and names it in [trust] of agent.toml"
    )]
    NoOperators,
    /// The signatures, the bytes, or the policy.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// Left under another id than it has.
    #[error("job {job} was left under the id {left}: leave it under its own")]
    Id { job: JobId, left: JobId },
    /// Not for here and now.
    #[error(transparent)]
    NotHere(#[from] NotHere),
    /// It would end while it waits.
    #[error("the job ends at {ends:.0}, and its delay only at {due:.0}: sign it anew with a later end")]
    TooShort {
        /// When it ends.
        ends: UtcSecond,
        /// When its delay does.
        due: Timestamp,
    },
    /// It is no job of this kind.
    #[error("{verb} is not done this way: this is a fault of agentd", verb = .0.as_str())]
    Unsupported(Verb),
    /// A volume for another customer's guest, or for no other guest.
    #[error("a volume is handed over between two guests of one customer, and {0}: sign for two such guests")]
    Pair(String),
    /// The new operators file.
    #[error("the new operators file is refused")]
    Operators(#[source] OperatorsError),
    /// The new policy.
    #[error("the new policy is refused")]
    Policy(#[source] PolicyError),
    /// An older policy.
    #[error("policy {offered} is not newer than {held}, which is in use: raise its version")]
    OldPolicy {
        /// What was offered.
        offered: u32,
        /// What is in use.
        held: u32,
    },
    /// A golden is named by a version that no golden has.
    #[error("a golden has a version such as 2026.11.1, not {}: take it from the report", .0.as_str())]
    GoldenVersion(ReleaseVersion),
    /// Not the guest that the operator saw.
    #[error("the guest is not as the operator saw it: {0}; look again and sign anew")]
    Target(String),
    /// Not the promise that the operator saw.
    #[error("what is promised about its backups is not what the operator saw: look again and sign anew")]
    Promise,
    /// Not the storage target that the operator saw.
    #[error("the storage is not as the operator saw it: {0}; look again and sign anew")]
    Storage(String),
    /// Two names for one target.
    #[error(
        "a storage target keeps its name: {from} cannot become {to}; let the one go and attach the other"
    )]
    Renamed {
        /// What is approved.
        from: TargetName,
        /// What it would be.
        to: TargetName,
    },
    /// The data that would be out of reach has no other copy.
    #[error("storage {target} holds {what}: see to it that this is somewhere else too, then sign anew")]
    OnlyCopy { target: TargetName, what: String },
    /// A change of a promise that needs no signature.
    #[error(
        "nothing is loosened by it: the document alone may ask for what is no weaker, within the limits of the policy"
    )]
    NothingLoosened,
    /// Its id or nonce was used by another job.
    #[error("the id or the nonce of this job was used by another one: who made it looks how that came about")]
    Replayed,
    /// Too often today.
    #[error("{verb} was ordered {per_day} times within a day, which is as often as the policy lets it be", verb = .verb.as_str())]
    Often {
        verb: Verb,
        /// As often as this.
        per_day: u32,
    },
    /// The ledger is full of jobs that cannot be forgotten yet.
    #[error("{0} jobs are on record and none is old enough to be forgotten: wait a day")]
    Full(u32),
    /// One person cancels what two signed.
    #[error(
        "job {0} changes who may sign and was signed by two or more operators: to cancel it, let another operator sign the \
         same cancel"
    )]
    CancelAlone(JobId),
    /// No such job to cancel.
    #[error("there is no job {0} here to cancel")]
    NoSuchJob(JobId),
    /// Too late to cancel.
    #[error("job {0} does not wait any more: it can no longer be cancelled")]
    TooLate(JobId),
}

impl TurnedAway {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Envelope(error) => error.code(),
            Self::NoOperators => ErrorCode::KeyUnknown,
            Self::Refused(refused) => refused.code(),
            Self::Id { .. } => ErrorCode::NotYours,
            Self::NotHere(error) => error.code(),
            Self::TooShort { .. } => ErrorCode::JobExpired,
            Self::Unsupported(_) => ErrorCode::Unsupported,
            Self::Operators(_) | Self::Policy(_) | Self::GoldenVersion(_) => ErrorCode::Range,
            Self::OldPolicy { .. } => ErrorCode::StaleGeneration,
            Self::Target(_) | Self::Promise | Self::Storage(_) => ErrorCode::TargetChanged,
            Self::Renamed { .. } => ErrorCode::Range,
            Self::OnlyCopy { .. } => ErrorCode::Forbidden,
            Self::Pair(_) => ErrorCode::Forbidden,
            Self::NothingLoosened => ErrorCode::Range,
            Self::CancelAlone(_) => ErrorCode::SignaturesMissing,
            Self::Replayed => ErrorCode::JobReplayed,
            Self::Often { .. } | Self::Full(_) => ErrorCode::Quota,
            Self::NoSuchJob(_) => ErrorCode::NotFound,
            Self::TooLate(_) => ErrorCode::UnderWay,
        }
    }
}

/// When a job's delay ends.
#[must_use]
pub fn due(job: &Accepted, taken_at: Timestamp) -> Timestamp {
    let delay = SignedDuration::from_secs(i64::from(job.rule().delay_s));
    taken_at.checked_add(delay).unwrap_or(Timestamp::MAX)
}

/// Whether a job may be cancelled by who signed the cancel. Two who change who may sign are not stopped by one, whose
/// key may be the very one that they take away.
///
/// # Errors
/// [`TurnedAway::CancelAlone`].
pub fn cancels(
    (id, verb, signers): (JobId, Verb, &BTreeSet<OperatorName>),
    by: &BTreeSet<OperatorName>,
) -> Result<(), TurnedAway> {
    if verb == Verb::PolicyUpdate && signers.len() >= 2 && by.len() < 2 {
        return Err(TurnedAway::CancelAlone(id));
    }
    Ok(())
}

/// Judges a text that was left for this host under an id.
///
/// # Errors
/// [`TurnedAway`], at the first reason.
pub fn judge(
    text: &str,
    left: JobId,
    roster: Option<&Roster>,
    (here, own): (&Here, &SeenHost),
) -> Result<Accepted, TurnedAway> {
    let signed = SignedJob::parse(text.as_bytes())?;
    let roster = roster.ok_or(TurnedAway::NoOperators)?;
    let job = roster.accept_here(&signed, here)?;
    timely(job.payload(), here)?;
    let payload = job.payload();
    match job.reach() {
        Reach::OneHost => meant_for(payload, own)?,
        // It names no host, and is the approval of an image by its type.
        Reach::AllHosts => {}
    }
    bound(payload)?;
    if payload.job_id != left {
        return Err(TurnedAway::Id { job: payload.job_id, left });
    }
    let due = due(&job, here.now);
    if job.lane() == Lane::Rule && due >= payload.expires_at.at() {
        return Err(TurnedAway::TooShort { ends: payload.expires_at, due });
    }
    match &payload.act {
        // It is not for a host that is there; the host that it replaced hears of it from the hub (`gate/replaced`).
        Act::RestoreHost(_) => return Err(TurnedAway::Unsupported(payload.act.verb())),
        Act::PolicyUpdate(update) => {
            new_roster(&update.signers, &update.policy, roster.policy.version)?;
        }
        Act::LoosenPolicy(args) if needs_none(&args.from, &args.to, &roster.policy.backups) => {
            return Err(TurnedAway::NothingLoosened);
        }
        Act::AttachStorage(args) => {
            if let Some(from) = args.from.as_ref().filter(|from| from.name != args.to.name) {
                let (from, to) = (from.name.clone(), args.to.name.clone());
                return Err(TurnedAway::Renamed { from, to });
            }
        }
        Act::ApproveRelease(release) if release.kind == ReleaseKind::Golden => {
            let known = release.version.as_str().parse::<GoldenVersion>();
            known.map_err(|_| TurnedAway::GoldenVersion(release.version.clone()))?;
        }
        _ => {}
    }
    Ok(job)
}

/// Whether a document may change a promise so without anybody's signature.
fn needs_none(from: &Protection, to: &Protection, limits: &BackupLimits) -> bool {
    compare(from, to).loosened.is_empty() && within(from, to, limits).1.is_empty()
}

/// Whether a job says what it must be held to, in addition to the host that it means.
fn bound(payload: &Payload) -> Result<(), NotHere> {
    if binding(payload.act.verb()) == Binding::AsSaid {
        return Ok(());
    }
    let owner = NotHere::Unbound("whose guest it means");
    match (&payload.act, &payload.target) {
        (Act::ReleaseBrake(release), _) if release.document.is_none() => Err(change_limit::unbound()),
        // The arguments say whose it becomes.
        (Act::AdoptGuest(_), _) | (_, Target::Host {}) => Ok(()),
        (Act::ReassignVolume(hand), _) if hand.to.fingerprint.customer.is_none() => Err(owner),
        (_, Target::Guest { fingerprint, .. }) if fingerprint.customer.is_none() => Err(owner),
        (_, Target::Guest { .. }) => Ok(()),
    }
}

/// Judges a job once more, when its delay is over: who may sign may have changed, and so may the time. One that was
/// taken although its delay outlasts its end ([`Lane::Alone`]) has [`LATE`] from there.
///
/// # Errors
/// [`TurnedAway`].
pub fn when_due(
    signed: &SignedJob,
    due_at: Timestamp,
    roster: &Roster,
    here: &Here,
) -> Result<Accepted, TurnedAway> {
    let job = roster.accept_here(signed, here)?;
    let ends = job.payload().expires_at.at();
    let end = if due_at < ends { ends } else { due_at.checked_add(LATE).unwrap_or(Timestamp::MAX) };
    timely_until(job.payload(), here, end)?;
    Ok(job)
}

/// Reads an operators file and a policy that shall take the place of version `held`.
///
/// # Errors
/// [`TurnedAway`]; the old ones stay.
pub fn new_roster(signers: &str, policy: &str, held: u32) -> Result<Roster, TurnedAway> {
    let operators = Operators::parse(signers).map_err(TurnedAway::Operators)?;
    let policy = Policy::parse(policy, &operators).map_err(TurnedAway::Policy)?;
    if policy.version <= held {
        return Err(TurnedAway::OldPolicy { offered: policy.version, held });
    }
    Ok(Roster { operators, policy })
}

/// Whether our records know the guest of a job as its operator saw it. Its volumes are compared with the host itself.
///
/// # Errors
/// [`TurnedAway::Target`].
pub fn same_guest(target: &Target, known: Option<(&GuestName, &CustomerId, Vmid)>) -> Result<(), TurnedAway> {
    let changed = |why: String| Err(TurnedAway::Target(why));
    let Target::Guest { uid, vmid, fingerprint } = target else { return Ok(()) };
    match (known, vmid) {
        (None, _) => changed(format!("no guest {uid} of ours is here")),
        (Some(_), None) => changed("the job does not say its VMID".to_owned()),
        (Some((_, _, now)), Some(vmid)) if now != *vmid => changed(format!("its VMID is {now}, not {vmid}")),
        (Some((name, _, _)), _) if *name != fingerprint.name => {
            changed(format!("its name is {name}, not {}", fingerprint.name))
        }
        (Some((_, customer, _)), Some(_)) => match &fingerprint.customer {
            Some(said) if said != customer => changed(format!("it is {customer}'s, not {said}'s")),
            Some(_) | None => Ok(()),
        },
    }
}

/// Whether our records know a whole copy of a guest under this number. What it looks like is compared with the host itself.
///
/// # Errors
/// [`TurnedAway::Target`].
pub fn whole_copy(vmid: Vmid, copies: &[RestoredCopyRecord]) -> Result<(), TurnedAway> {
    match copies.iter().find(|record| record.vmid == vmid).map(|record| &record.stage) {
        Some(CopyStage::Made { .. }) => Ok(()),
        Some(CopyStage::Making) => Err(TurnedAway::Target(format!("its copy {vmid} is not whole yet"))),
        None => Err(TurnedAway::Target(format!("no copy of it stands under {vmid}"))),
    }
}

/// Whether a guest that is to be taken over is new to our records.
///
/// # Errors
/// [`TurnedAway::Target`].
pub fn stranger(target: &Target, known: Option<&Place>) -> Result<(), TurnedAway> {
    let Target::Guest { uid, vmid, .. } = target else { return Ok(()) };
    let changed = |why: String| Err(TurnedAway::Target(why));
    match (known, vmid) {
        (_, None) => changed("the job does not say its VMID".to_owned()),
        (Some(Place::Gone { by }), _) => {
            changed(format!("guest {uid} was destroyed by operation {by}: take it over under a new uid"))
        }
        (Some(Place::Made { .. } | Place::Making { .. }), _) => {
            changed(format!("our records know guest {uid} already"))
        }
        (Some(Place::Nowhere) | None, Some(_)) => Ok(()),
    }
}

/// Whether a volume may go from one guest to another.
///
/// # Errors
/// [`TurnedAway::Pair`].
pub fn pair(from: (GuestUid, &CustomerId), to: (GuestUid, &CustomerId)) -> Result<(), TurnedAway> {
    if from.0 == to.0 {
        return Err(TurnedAway::Pair("both are the same guest".to_owned()));
    }
    if from.1 != to.1 {
        return Err(TurnedAway::Pair(format!("one is of {}, the other of {}", from.1, to.1)));
    }
    Ok(())
}
