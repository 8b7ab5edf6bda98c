//! Parts of a hello: stacks, upgrades, a needed restart.
//!
//! Each part is left out where there is nothing to say, so a controller that knows none of this says the same as before.
//! [`super::Hello::health`] stays the controller's own: a stack that fell over by itself does not make a controller unwell.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::{SnapshotName, StackName};

/// In bytes, of each sentence here: a hello with every stack in it, each byte of them escaped, fits into one body.
pub const WHY_BYTES_MAX: usize = 128;

/// Names of programs in a hello.
pub const PROGRAMS_MAX: usize = 8;

/// A stack that should run and is not well.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UnwellStack {
    /// Which.
    pub stack: StackName,
    /// How it is.
    pub state: UnwellState,
    /// In words.
    #[schemars(length(min = 1, max = 128))]
    pub why: String,
    /// When it was first seen so, by the guest's clock.
    pub since: Timestamp,
    /// How often the controller has started it since it was last well for long.
    pub restarts: u32,
}

/// How a stack is that is not well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UnwellState {
    /// Something of it ended by itself, and nothing starts it again.
    Down,
    /// Something of it ends again and again, and systemd or Docker starts it each time.
    Restarting,
    /// It runs, and its check says no.
    Unhealthy,
    /// Its state cannot be read.
    Unknown,
}

/// How the last security upgrade went.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UpgradeReport {
    /// When it ended, by the guest's clock.
    pub at: Timestamp,
    /// What came of it.
    pub outcome: UpgradeOutcome,
    /// In words.
    #[schemars(length(min = 1, max = 128))]
    pub why: String,
    /// What was taken before, where packages changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<SnapshotName>,
}

/// What came of a security upgrade.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UpgradeOutcome {
    /// There was nothing to upgrade.
    Current,
    /// Packages are being changed, or the stacks are being checked after that.
    UnderWay,
    /// Packages changed, and what was well before is well.
    Upgraded,
    /// It failed, or something is not well after it; the guest is as it left it.
    Failed,
    /// The guest went back to the snapshot from before.
    RolledBack,
    /// It was not begun.
    NotRun,
}

/// What only a restart of the guest, or of the programs named, brings into use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RestartNeeded {
    /// Programs that run from files which were replaced since; the first eight, by name. Empty where a package
    /// requested a restart (`/run/reboot-required`) and no such program was found.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub programs: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::local::window::STACKS_MAX;
    use crate::local::{BODY_BYTES_MAX, Hello};
    use crate::report::Health;
    use crate::root_disk::{Coverage, ITEMS_MAX, RootDiskData, RootDiskItem, RootDiskKind};

    /// The longest names, and sentences of which each byte is escaped.
    #[test]
    fn the_longest_hello_fits_into_a_body() {
        let why = "\"".repeat(WHY_BYTES_MAX);
        let stack = "a".repeat(63).parse().unwrap();
        let one = UnwellStack {
            stack,
            state: UnwellState::Restarting,
            why: why.clone(),
            since: Timestamp::UNIX_EPOCH,
            restarts: u32::MAX,
        };
        let upgrade = UpgradeReport {
            at: Timestamp::UNIX_EPOCH,
            outcome: UpgradeOutcome::RolledBack,
            why,
            snapshot: Some("a".repeat(40).parse().unwrap()),
        };
        let item = RootDiskItem {
            kind: RootDiskKind::DockerVolume,
            path: format!("/{}", "a".repeat(95)).try_into().unwrap(),
            bytes: u64::MAX,
        };
        let hello = Hello {
            version: "1".repeat(64),
            health: Health::Starting,
            boot_id: "b".repeat(64),
            build: Some("ab".repeat(32).try_into().unwrap()),
            unwell: vec![one; STACKS_MAX],
            upgrade: Some(upgrade),
            restart_needed: Some(RestartNeeded { programs: vec!["\"".repeat(64); PROGRAMS_MAX] }),
            root_disk: Some(RootDiskData {
                at: Timestamp::UNIX_EPOCH,
                coverage: Coverage::Partial,
                items: vec![item; ITEMS_MAX],
            }),
        };
        let bytes = serde_json::to_vec(&hello).unwrap();
        assert!(bytes.len() <= BODY_BYTES_MAX, "{} bytes", bytes.len());
    }

    #[test]
    fn a_hello_without_anything_to_say_is_as_it_was() {
        let hello = Hello {
            version: "1".to_owned(),
            health: Health::Well,
            boot_id: "b".to_owned(),
            build: None,
            unwell: Vec::new(),
            upgrade: None,
            restart_needed: None,
            root_disk: None,
        };
        assert_eq!(
            serde_json::to_string(&hello).unwrap(),
            r#"{"version":"1","health":"well","boot_id":"b"}"#
        );
    }
}
