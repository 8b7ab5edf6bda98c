//! The next state of the slots.
//!
//! In: a state and an event. Out: the state to store before anything else is done, or a refusal that changes nothing.
//!
//! ```text
//!              Take            Copied                     Confirmed
//!   at rest ─────────▶ filling ───────▶ on trial ──────────────────────▶ at rest, floor raised
//!      ▲                  │ CopyFailed      │ Failed, withdrawn, starts used, damaged
//!      ├──────────────────┘                 ▼
//!      └───────────────────────────── returning (the build that was put back is watched; ends good or failed)
//! ```

use holdfast_protocol::job::act::Sha256Text;
use holdfast_protocol::release::VersionNumber;
use holdfast_protocol::release::stored::WithdrawalReason;
use jiff::Timestamp;

use crate::start::Sound;
use crate::state::{
    Build, Content, FAILURES_MAX, FailReason, Failure, Moment, RefusedRelease, Returning, SlotsState, Trial,
};

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// A release was accepted; its build is about to be copied to the free slot.
    Take {
        build: Build,
        /// When its manifest was issued.
        issued_at: Timestamp,
        /// The version of the package's build.
        packaged: VersionNumber,
    },
    /// The copy is whole, has the signed digest, and is on the disk.
    Copied,
    /// There is no whole copy.
    CopyFailed,
    /// A release was refused; nothing of it was copied.
    Refused(RefusedRelease),
    /// The agent is about to be started.
    Start {
        packaged: VersionNumber,
        /// Which slots hold what was signed.
        sound: Sound,
        now: Moment,
        at: Option<Timestamp>,
    },
    /// The build on trial was healthy for the whole window.
    Confirmed,
    /// The build on trial will not do.
    Failed { reason: FailReason, at: Option<Timestamp> },
    /// The build on trial says that the offer of this manifest was withdrawn.
    Withdrawn { manifest: Sha256Text, reason: WithdrawalReason, at: Option<Timestamp> },
    /// The build that was put back was healthy for the whole window.
    BackHealthy,
    /// The build that was put back is not healthy either.
    BackFailed(FailReason),
}

/// Why an event does not fit. Nothing changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("version {version} is below {floor}, the highest that was confirmed on this host")]
    BelowFloor { version: VersionNumber, floor: VersionNumber },
    #[error("version {version} is not newer than {installed}, which this host has")]
    NotNewer { version: VersionNumber, installed: VersionNumber },
    #[error(
        "this build of version {version} failed on this host: it is refused until a new manifest of it is signed"
    )]
    FailedBefore { version: VersionNumber },
    #[error(
        "version {version} is on trial: wait for the verdict (`/usr/lib/holdfast/holdfast-agent-gate status`)"
    )]
    OnTrial { version: VersionNumber },
    #[error("the build before is still being watched after a failed update: try again later")]
    Returning,
    #[error("nothing is being copied")]
    NotFilling,
    #[error("nothing is on trial")]
    NoTrial,
    #[error("version {version} is on trial, and another release was withdrawn: the trial goes on")]
    OtherTrial { version: VersionNumber },
    #[error("no build that was put back is being watched")]
    NotReturning,
}

impl Refusal {
    /// The stable code.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::BelowFloor { .. } => "BELOW_FLOOR",
            Self::NotNewer { .. } => "NOT_NEWER",
            Self::FailedBefore { .. } => "FAILED_BEFORE",
            Self::OnTrial { .. } => "ON_TRIAL",
            Self::Returning => "RETURNING",
            Self::NotFilling | Self::NoTrial | Self::OtherTrial { .. } | Self::NotReturning => "NOT_NOW",
        }
    }
}

/// The state after an event.
///
/// # Errors
/// [`Refusal`], when the event does not fit.
pub fn next(state: &SlotsState, event: Event) -> Result<SlotsState, Refusal> {
    let mut to = state.clone();
    match event {
        Event::Take { build, issued_at, packaged } => {
            may_take(state, &build, packaged)?;
            to.latest_issue = Some(state.latest_issue.map_or(issued_at, |latest| latest.max(issued_at)));
            to.refused = None;
            to.set(state.free_slot(), Content::Filling(build));
        }
        Event::Copied => {
            let slot = state.free_slot();
            let Content::Filling(build) = state.content(slot) else { return Err(Refusal::NotFilling) };
            to.set(slot, Content::Holds(build.clone()));
            to.trial = Some(Trial::new(slot));
        }
        Event::CopyFailed => {
            let slot = state.free_slot();
            let Content::Filling(_) = state.content(slot) else { return Err(Refusal::NotFilling) };
            to.set(slot, Content::Empty);
        }
        Event::Refused(refused) => to.refused = Some(refused),
        Event::Start { packaged, sound, now, at } => {
            before_start(&mut to, (packaged, sound), &now, at);
            begin(&mut to, &now);
        }
        Event::Confirmed => {
            let (Some(trial), Some(build)) = (&state.trial, state.trial_build()) else {
                return Err(Refusal::NoTrial);
            };
            to.floor = Some(state.floor.map_or(build.version, |floor| floor.max(build.version)));
            to.confirmed = Some(trial.slot);
            to.trial = None;
        }
        Event::Failed { reason, at } => {
            if state.trial.is_none() {
                return Err(Refusal::NoTrial);
            }
            fail(&mut to, reason, at);
        }
        Event::Withdrawn { manifest, reason, at } => {
            let build = state.trial_build().ok_or(Refusal::NoTrial)?;
            if build.manifest != manifest {
                return Err(Refusal::OtherTrial { version: build.version });
            }
            fail(&mut to, FailReason::Withdrawn { reason }, at);
        }
        Event::BackHealthy | Event::BackFailed(_) if state.returning == Returning::No => {
            return Err(Refusal::NotReturning);
        }
        Event::BackHealthy => to.returning = Returning::No,
        Event::BackFailed(reason) => {
            to.returning = Returning::No;
            if let Some(last) = to.failures.last_mut() {
                last.way_back = Some(reason);
            }
        }
    }
    Ok(to)
}

fn may_take(state: &SlotsState, build: &Build, packaged: VersionNumber) -> Result<(), Refusal> {
    let version = build.version;
    if let Some(trial) = state.trial_build() {
        return Err(Refusal::OnTrial { version: trial.version });
    }
    if state.returning != Returning::No {
        return Err(Refusal::Returning);
    }
    if let Some(floor) = state.floor.filter(|floor| version < *floor) {
        return Err(Refusal::BelowFloor { version, floor });
    }
    let installed = state.confirmed_build().map_or(packaged, |build| build.version.max(packaged));
    if version <= installed {
        return Err(Refusal::NotNewer { version, installed });
    }
    let failed = |failure: &&Failure| {
        failure.build.sha256 == build.sha256
            && failure.build.manifest == build.manifest
            && failure.reason.blames_build()
    };
    if state.failures.iter().any(|failure| failed(&failure)) {
        return Err(Refusal::FailedBefore { version });
    }
    Ok(())
}

/// A start counts before it happens. One that ended with its machine is made good: the next one is not counted. What a
/// crash left half done ends here.
fn before_start(
    to: &mut SlotsState,
    (packaged, sound): (VersionNumber, Sound),
    now: &Moment,
    at: Option<Timestamp>,
) {
    for slot in crate::state::Slot::ALL {
        if matches!(to.content(slot), Content::Filling(_)) {
            to.set(slot, Content::Empty);
        }
    }
    let Some(trial) = to.trial.clone() else { return };
    let version = to.trial_build().map(|build| build.version);
    if version.is_none_or(|version| version <= packaged) {
        fail(to, FailReason::Superseded, at);
        // The package's build takes over by a road of its own: there is no way back to watch.
        to.returning = Returning::No;
    } else if !sound.holds(trial.slot) {
        fail(to, FailReason::Damaged, at);
    } else if trial.ended_with_machine(now) && trial.reboots_left > 0 {
        to.trial = Some(Trial { reboots_left: trial.reboots_left.saturating_sub(1), ..trial });
    } else if trial.starts_left == 0 {
        fail(to, FailReason::StartsUsed, at);
    } else {
        to.trial = Some(Trial { starts_left: trial.starts_left.saturating_sub(1), ..trial });
    }
}

/// The deadline counts from the first start of a boot.
fn begin(to: &mut SlotsState, now: &Moment) {
    let keep = |began: &Option<Moment>| began.as_ref().is_some_and(|began| began.boot == now.boot);
    match (&mut to.trial, &mut to.returning) {
        (Some(trial), _) if !keep(&trial.began) => trial.began = Some(now.clone()),
        (None, Returning::Watched { began }) if !keep(began) => *began = Some(now.clone()),
        (Some(_) | None, Returning::Watched { .. } | Returning::No) => {}
    }
}

/// Ends the trial. The confirmed build was never changed, so there is nothing to put back but the link.
fn fail(to: &mut SlotsState, reason: FailReason, at: Option<Timestamp>) {
    let build = to.trial_build().cloned();
    if let Some(trial) = to.trial.take() {
        to.set(trial.slot, Content::Empty);
    }
    to.returning = Returning::Watched { began: None };
    let Some(build) = build else { return };
    to.failures.retain(|failure| failure.build != build);
    if to.failures.len() >= FAILURES_MAX {
        // What steers nothing is forgotten first: offers that come and go make room for no build that failed.
        let harmless = to.failures.iter().position(|failure| !failure.reason.blames_build());
        to.failures.remove(harmless.unwrap_or(0));
    }
    to.failures.push(Failure { build, reason, at, way_back: None });
}
