//! The build of the guest agent that a guest should run.
//!
//! A guest gets the build only when the document names it, an operator's signature approved exactly these bytes, and
//! the bytes are stored on the host. [`Turn`] says when the guest may install it, and [`TrialVerdict`] whether it keeps
//! it: without one the guest puts its previous program back by itself. Deliberately absent: stacks. They are
//! the guest's own matter (`/etc/holdfast/stacks.toml`), and no document requests them.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::OperationId;
use crate::job::act::{ReleaseVersion, Sha256Text};
use crate::maintenance::{RestartRule, SecurityUpgrades};

/// No controller is larger. Ours are a tenth of it.
pub const CONTROLLER_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// How long after an exchange the guest waits for the verdict before it puts its previous program back, in seconds:
/// three of its hellos, and five minutes.
#[must_use]
pub const fn trial_s(hello_again_s: u32) -> u64 {
    3 * hello_again_s as u64 + 300
}

/// What a guest should run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DesiredView {
    /// The controller; none where none is requested, or where the requested one may not run or is not on the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller: Option<WantedController>,
    /// What becomes of the build that the guest tries. It is there only where the guest asks with `trial`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trial: Option<TrialVerdict>,
    /// When it may be upgraded and restarted.
    #[serde(default)]
    pub maintenance: MaintenanceView,
}

/// When a guest may be upgraded and restarted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MaintenanceView {
    /// Whether security upgrades are installed.
    pub security_upgrades: SecurityUpgrades,
    /// The window that is open, else the next one; none, where no point of the schedule is left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<MaintenanceWindow>,
}

/// One maintenance window of one guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MaintenanceWindow {
    /// From then on; its jitter is in it.
    pub begins: Timestamp,
    /// Nothing is begun from then on.
    pub ends: Timestamp,
    /// Whether the guest may be restarted in it.
    pub restart: RestartRule,
}

impl MaintenanceWindow {
    /// Whether something may be begun now.
    #[must_use]
    pub fn is_open(&self, now: Timestamp) -> bool {
        (self.begins..self.ends).contains(&now)
    }
}

/// A build of the controller: exactly these bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WantedController {
    /// Its version, as the operator signed it.
    pub version: ReleaseVersion,
    /// What its bytes hash to: the name under which they are had.
    pub sha256: Sha256Text,
    /// How many there are.
    #[schemars(range(min = 1, max = CONTROLLER_BYTES_MAX))]
    pub bytes: u64,
    /// Whether this guest may install it now.
    pub turn: Turn,
}

/// Whether a guest may put another controller in the place of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Turn {
    /// Not yet.
    Waits,
    /// Now: the agent waits for the hello of the new one.
    Now(OperationId),
}

/// What becomes of a build that a guest tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TrialVerdict {
    /// It is not known yet. A guest that hears nothing else in its time puts its previous program back.
    Undecided,
    /// It stays.
    Confirmed,
    /// The guest puts its previous program back now.
    TakeBack,
}
