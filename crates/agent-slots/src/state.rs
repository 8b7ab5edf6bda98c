//! The state of the slots, as root's file holds it.

use holdfast_protocol::job::act::Sha256Text;
use holdfast_protocol::release::VersionNumber;
use holdfast_protocol::release::stored::WithdrawalReason;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// How often a build on trial is started without a verdict before it counts as failed.
pub const STARTS: u8 = 3;

/// How many starts of a build on trial may end with the machine, and not count as used: power cuts, and restarts of the
/// host. One more counts as any: a build that brings its machine down must come to its end, too.
pub const REBOOTS_MAX: u8 = 10;

/// How many failed builds are remembered. The oldest is forgotten first; by then the floor is most likely above it.
pub const FAILURES_MAX: usize = 16;

/// One of the two places for a build that did not come by a package.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Slot {
    A,
    B,
}

impl Slot {
    /// Both.
    pub const ALL: [Self; 2] = [Self::A, Self::B];

    /// Its folder.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::A => "a",
            Self::B => "b",
        }
    }

    /// The other one.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }
}

/// A build of the agent, by what was signed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Build {
    pub version: VersionNumber,
    /// SHA-256 of the program.
    pub sha256: Sha256Text,
    /// SHA-256 of the signed manifest that named it.
    pub manifest: Sha256Text,
}

/// What a slot holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// Nothing that may be started.
    #[default]
    Empty,
    /// A build is being copied to it.
    Filling(Build),
    /// A whole build.
    Holds(Build),
}

impl Content {
    /// The whole build in it.
    #[must_use]
    pub const fn build(&self) -> Option<&Build> {
        match self {
            Self::Holds(build) => Some(build),
            Self::Empty | Self::Filling(_) => None,
        }
    }
}

/// A moment on the clock that runs through suspend (`CLOCK_BOOTTIME`). It compares within one boot only.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Moment {
    /// The kernel's id of the boot.
    pub boot: String,
    /// Seconds since the boot.
    pub seconds: u64,
}

impl Moment {
    /// Seconds from an earlier moment to this one; none across a boot.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Option<u64> {
        (self.boot == earlier.boot).then(|| self.seconds.saturating_sub(earlier.seconds))
    }
}

/// A build that is tried.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trial {
    pub slot: Slot,
    /// So often it may still be started.
    pub starts_left: u8,
    /// Its first start within the present boot; the deadline counts from there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began: Option<Moment>,
    /// So often a start of it may still end with the machine without being counted. Not in the file of the state: a gate of
    /// before this was counted must be able to read that.
    #[serde(skip, default = "reboots")]
    pub reboots_left: u8,
}

const fn reboots() -> u8 {
    REBOOTS_MAX
}

impl Trial {
    /// A trial that begins.
    #[must_use]
    pub const fn new(slot: Slot) -> Self {
        Self { slot, starts_left: STARTS, began: None, reboots_left: REBOOTS_MAX }
    }

    /// Whether the start before this moment was in an earlier boot: it ended with the machine, and says nothing of the build.
    #[must_use]
    pub fn ended_with_machine(&self, now: &Moment) -> bool {
        self.began.as_ref().is_some_and(|began| began.boot != now.boot)
    }
}

/// The part of a trial that is in a file of its own, with the build that it is of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrialReboots {
    pub build: Build,
    pub left: u8,
}

/// Why a build failed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum FailReason {
    /// It was started as often as it may be, and no start led to a verdict.
    StartsUsed,
    /// It was not healthy in time; what was wrong at the end.
    NotHealthy { detail: String },
    /// Its program in the slot is not the one that was signed any more.
    Damaged,
    /// A package brought a build that is as new.
    Superseded,
    /// A person ended the trial.
    Ended,
    /// The offer of it was withdrawn while it was tried.
    Withdrawn { reason: WithdrawalReason },
}

impl FailReason {
    /// Whether the build itself is to blame, so that it is refused until it is signed anew.
    #[must_use]
    pub const fn blames_build(&self) -> bool {
        match self {
            Self::StartsUsed | Self::NotHealthy { .. } | Self::Ended => true,
            Self::Damaged | Self::Superseded | Self::Withdrawn { .. } => false,
        }
    }
}

impl std::fmt::Display for FailReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::StartsUsed => f.write_str("it was started as often as allowed, without a verdict"),
            Self::NotHealthy { detail } => write!(f, "it was not healthy in time: {detail}"),
            Self::Damaged => f.write_str("its program was changed or lost"),
            Self::Superseded => f.write_str("a package brought a build that is as new"),
            Self::Ended => f.write_str("a person ended the trial"),
            Self::Withdrawn { reason } => write!(f, "its offer was withdrawn: {}", reason.as_str()),
        }
    }
}

/// A build that failed on trial.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    pub build: Build,
    pub reason: FailReason,
    /// When the verdict was given, by the clock of the host. Steers nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// Why the agent that was put back was not healthy either.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub way_back: Option<FailReason>,
}

/// The version of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum SlotsSchema {
    /// The only one so far.
    #[default]
    #[serde(rename = "holdfast.agent-slots/v1")]
    V1,
}

/// Everything that is known of the agent's builds. The one truth: links and units follow from it at each start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlotsState {
    pub schema: SlotsSchema,
    /// The highest version that was confirmed here. Nothing older is ever started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub floor: Option<VersionNumber>,
    pub a: Content,
    pub b: Content,
    /// The slot whose build passed its trial; none while only the package's build did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmed: Option<Slot>,
    /// The build that is tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trial: Option<Trial>,
    /// Whether the build that was put back after the newest of `failures` is watched.
    #[serde(default)]
    pub returning: Returning,
    /// Builds that failed, the newest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<Failure>,
    /// The latest time that any accepted manifest was issued at. A clock behind it is wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latest_issue: Option<Timestamp>,
    /// The last release that was refused, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<RefusedRelease>,
}

/// Whether the build that was put back is still being watched.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Returning {
    #[default]
    No,
    /// It was or will be started.
    Watched {
        /// Its first start within the present boot.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        began: Option<Moment>,
    },
}

/// A release that was refused before it was tried.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RefusedRelease {
    /// SHA-256 of the manifest, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest: Option<Sha256Text>,
    /// A stable code.
    pub code: String,
    /// One sentence.
    pub why: String,
    /// What would have to change.
    pub cause: RefusalCause,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
}

/// What a refusal is due to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusalCause {
    /// The release itself: this manifest is refused for good.
    Release,
    /// Something on the host, such as its keys or its disk: the same release may be accepted later.
    Host,
}

impl SlotsState {
    /// A state for builds that were found in the slots after the file was damaged: the newest counts as confirmed, since
    /// no older one may be started after it.
    #[must_use]
    pub fn of_slots(found: Vec<(Slot, Build)>) -> Self {
        let mut state = Self::default();
        let newest = found.iter().max_by_key(|(_, build)| build.version);
        state.confirmed = newest.map(|(slot, _)| *slot);
        state.floor = newest.map(|(_, build)| build.version);
        for (slot, build) in found {
            if state.confirmed == Some(slot) {
                state.set(slot, Content::Holds(build));
            }
        }
        state
    }

    /// What a slot holds.
    #[must_use]
    pub const fn content(&self, slot: Slot) -> &Content {
        match slot {
            Slot::A => &self.a,
            Slot::B => &self.b,
        }
    }

    pub(crate) fn set(&mut self, slot: Slot, content: Content) {
        match slot {
            Slot::A => self.a = content,
            Slot::B => self.b = content,
        }
    }

    /// The build in the confirmed slot.
    #[must_use]
    pub fn confirmed_build(&self) -> Option<&Build> {
        self.confirmed.and_then(|slot| self.content(slot).build())
    }

    /// The slot that a new build is copied to: the one that is not confirmed.
    #[must_use]
    pub fn free_slot(&self) -> Slot {
        self.confirmed.map_or(Slot::A, Slot::other)
    }

    /// The build that is tried.
    #[must_use]
    pub fn trial_build(&self) -> Option<&Build> {
        self.trial.as_ref().and_then(|trial| self.content(trial.slot).build())
    }

    /// What is stored next to the state; none, where that would say nothing.
    #[must_use]
    pub fn trial_reboots(&self) -> Option<TrialReboots> {
        let (trial, build) = self.trial.as_ref().zip(self.trial_build())?;
        (trial.reboots_left < REBOOTS_MAX)
            .then(|| TrialReboots { build: build.clone(), left: trial.reboots_left })
    }

    /// The state with what was stored next to it. What is of another build is left.
    #[must_use]
    pub fn with_reboots(mut self, stored: Option<TrialReboots>) -> Self {
        let of_trial = stored.filter(|stored| self.trial_build() == Some(&stored.build));
        if let Some((trial, stored)) = self.trial.as_mut().zip(of_trial) {
            trial.reboots_left = stored.left.min(REBOOTS_MAX);
        }
        self
    }

    /// Whether the gate has to watch the agent.
    #[must_use]
    pub fn is_watched(&self) -> bool {
        self.trial.is_some() || self.returning != Returning::No
    }

    /// When the build that is watched was first started in this boot.
    #[must_use]
    pub fn watched_since(&self) -> Option<&Moment> {
        match (&self.trial, &self.returning) {
            (Some(trial), _) => trial.began.as_ref(),
            (None, Returning::Watched { began }) => began.as_ref(),
            (None, Returning::No) => None,
        }
    }
}
