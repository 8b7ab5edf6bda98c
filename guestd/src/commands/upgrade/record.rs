//! Record of security upgrades and their snapshots, in `upgrade.json`.
//!
//! A rollback takes back what was written since its snapshot, this file included. A snapshot for an upgrade that the agent lists
//! and this file does not name is therefore one that the guest went back to.

use std::path::PathBuf;

use holdfast_protocol::id::SnapshotName;
use holdfast_protocol::json::chain;
use holdfast_protocol::local::hello::{UpgradeOutcome, UpgradeReport, WHY_BYTES_MAX};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::clock;
use crate::file::{self, Eyes};
use crate::paths::Paths;
use crate::program::beginning;

const BYTES_MAX: usize = 16 * 1024;

/// How many snapshots are remembered: more than a guest may have.
const SNAPSHOTS_MAX: usize = 64;

/// What snapshots for upgrades are called.
pub const PREFIX: &str = "upgrade-";

/// The version of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Schema {
    #[default]
    #[serde(rename = "holdfast.guestd-upgrade/v1")]
    V1,
}

/// What is known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    schema: Schema,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<UpgradeReport>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub snapshots: Vec<SnapshotName>,
    /// When an upgrade was last begun in a maintenance window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempted: Option<Timestamp>,
    /// When the guest was last restarted in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restarted: Option<Timestamp>,
}

fn path(paths: &Paths) -> PathBuf {
    paths.state_dir().join("upgrade.json")
}

/// Reads it; empty where there is none that can be read.
pub fn load(paths: &Paths) -> Record {
    let bytes = file::read(&path(paths), BYTES_MAX, Eyes::All).ok().flatten();
    bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
}

fn store(paths: &Paths, record: &Record) {
    // Plain text: it cannot fail, and an empty file is read as nothing.
    let bytes = serde_json::to_vec_pretty(record).unwrap_or_default();
    let stored = file::make_folder(&paths.state_dir(), Eyes::Owner)
        .and_then(|()| file::replace(&path(paths), &bytes, Eyes::All));
    if let Err(error) = stored {
        note_line!("guestd: {}", chain(&error));
    }
}

/// Reports the outcome, in the journal and in the status file.
pub fn write_status(paths: &Paths, outcome: UpgradeOutcome, why: &str, snapshot: Option<&SnapshotName>) {
    note_line!("guestd: {why}");
    note(paths, outcome, why, snapshot);
}

/// What is said of an upgrade that is under way, before the names of packages.
pub const UNDER_WAY: &str = "upgrading ";

/// How the stacks are after it, which was said elsewhere already.
pub fn checked(paths: &Paths, outcome: UpgradeOutcome, said: &str, snapshot: Option<&SnapshotName>) {
    let last = load(paths).last;
    let packages = last.as_ref().and_then(|last| last.why.strip_prefix(UNDER_WAY));
    let why = packages.map_or_else(|| said.to_owned(), |packages| format!("{packages}: {said}"));
    // A failure of apt itself is kept, however well the stacks are.
    let failed = last.as_ref().is_some_and(|last| last.outcome == UpgradeOutcome::Failed);
    if !(outcome == UpgradeOutcome::Upgraded && failed) {
        note(paths, outcome, &why, snapshot);
    }
}

fn note(paths: &Paths, outcome: UpgradeOutcome, why: &str, snapshot: Option<&SnapshotName>) {
    let short = beginning(why, WHY_BYTES_MAX);
    let mut record = load(paths);
    record.last = Some(UpgradeReport { at: clock::now(), outcome, why: short, snapshot: snapshot.cloned() });
    store(paths, &record);
}

/// An upgrade is begun in a maintenance window.
pub fn attempted(paths: &Paths, now: Timestamp) {
    store(paths, &Record { attempted: Some(now), ..load(paths) });
}

/// The guest is restarted in a maintenance window.
pub fn restarted(paths: &Paths, now: Timestamp) {
    store(paths, &Record { restarted: Some(now), ..load(paths) });
}

/// A snapshot was taken for an upgrade, or is known to be there.
pub fn reconcile(paths: &Paths, snapshot: &SnapshotName) {
    let mut record = load(paths);
    if record.snapshots.contains(snapshot) {
        return;
    }
    record.snapshots.push(snapshot.clone());
    record.snapshots.drain(..record.snapshots.len().saturating_sub(SNAPSHOTS_MAX));
    store(paths, &record);
}
