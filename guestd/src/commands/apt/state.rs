//! State before packages changed, in `run/holdfast/apt.json`.
//!
//! It is in memory and names its boot: a restart, such as after a rollback, ends it.

use std::path::PathBuf;
use std::time::Duration;

use holdfast_protocol::id::SnapshotName;
use holdfast_protocol::json::chain;
use serde::{Deserialize, Serialize};

use crate::clock;
use crate::commands::health::HealthyStackRecord;
use crate::commands::upgrade::VARIABLE;
use crate::file::{self, Eyes, FileError};
use crate::paths::Paths;
use crate::quiesce::boot;
use crate::stacks::{Apt, AptAfter, AptSnapshot, Stacks};

/// Within this time since its beginning, it is the same run of apt, or as good as that.
const SAME_RUN: Duration = Duration::from_secs(1_800);

/// As the marker, which holds more of each stack.
const BYTES_MAX: usize = 512 * 1024;

/// The version of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Schema {
    #[default]
    #[serde(rename = "holdfast.guestd-apt/v1")]
    V1,
}

/// What was so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AptState {
    schema: Schema,
    /// In which boot of the guest.
    boot_id: String,
    /// When it began, in milliseconds since that boot, time asleep included.
    at_ms: u64,
    /// How often apt has called since.
    calls: u32,
    /// What was taken before, where one was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<SnapshotName>,
    /// Who changes packages.
    #[serde(default)]
    pub run: Run,
    /// What was well.
    pub well: Vec<HealthyStackRecord>,
    check_state: CheckState,
}

/// Who changes packages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Run {
    /// A person, or a program of theirs.
    #[default]
    ByHand,
    Upgrade,
}

impl Run {
    /// Whose run of apt it is that calls.
    pub fn now() -> Self {
        if std::env::var_os(VARIABLE).is_some() { Self::Upgrade } else { Self::ByHand }
    }

    /// What is to be done in such a run.
    pub const fn of(self, stacks: &Stacks) -> Apt {
        match self {
            Self::ByHand => stacks.apt,
            Self::Upgrade => stacks.upgrades.apt,
        }
    }
}

/// Whether a health check was made since.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum CheckState {
    Open,
    Done,
}

/// A moment, as only its own boot can compare it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    boot_id: String,
    since: Duration,
}

impl Moment {
    /// The current moment. None when the kernel does not show it.
    pub fn now(paths: &Paths) -> Option<Self> {
        Some(Self { boot_id: boot::id(paths).ok()??, since: clock::since_boot(paths)? })
    }
}

fn path(paths: &Paths) -> PathBuf {
    paths.run_dir().join("apt.json")
}

impl AptState {
    pub fn new(now: Moment, run: Run, snapshot: Option<SnapshotName>, well: Vec<HealthyStackRecord>) -> Self {
        let at_ms = u64::try_from(now.since.as_millis()).unwrap_or(u64::MAX);
        let check_state = CheckState::Open;
        Self { schema: Schema::V1, boot_id: now.boot_id, at_ms, calls: 1, run, snapshot, well, check_state }
    }

    /// Apt called again: a report that was made for this run must be made anew, after this call.
    pub fn again(self) -> Self {
        Self { calls: self.calls.saturating_add(1), check_state: CheckState::Open, ..self }
    }

    /// A health check was made since.
    pub fn checked(self) -> Self {
        Self { check_state: CheckState::Done, ..self }
    }

    /// Whether this record also applies to packages that change now. Pure. A rollback loses what was written since the
    /// snapshot. So where a rollback may follow, the list of stacks that are well is made anew.
    pub fn is_for(&self, now: &Moment, run: Run, apt: Apt) -> bool {
        let age = self.age(Some(now.since));
        let recent = self.boot_id == now.boot_id && age.is_some_and(|age| age < SAME_RUN);
        let taken = self.snapshot.is_some() || apt.snapshot == AptSnapshot::Off;
        recent
            && run == self.run
            && taken
            && (apt.after != AptAfter::RollBack || self.check_state == CheckState::Open)
    }

    /// Whether this one, as it was read earlier, is still to be judged by who read it: the same boot, no other run, and apt
    /// did not call again. Pure.
    pub fn is_still(&self, now: Option<&Self>, boot: Option<&Moment>) -> bool {
        let same_boot = boot.is_some_and(|moment| moment.boot_id == self.boot_id);
        let open = |note: &Self| note.check_state == CheckState::Open;
        same_boot && now.is_some_and(|now| (now.at_ms, now.calls) == (self.at_ms, self.calls) && open(now))
    }

    /// How long ago it began. Pure.
    pub fn age(&self, now: Option<Duration>) -> Option<Duration> {
        now?.checked_sub(Duration::from_millis(self.at_ms))
    }

    /// Whether a health check is still due for this record, in this boot.
    pub fn is_open(&self, boot: Option<&Moment>) -> bool {
        self.is_still(Some(self), boot)
    }

    /// The name of the judge's unit. No other judge has this name.
    pub fn unit(&self) -> String {
        format!("holdfast-apt-judge-{}-{}", self.at_ms, self.calls)
    }

    pub fn store(&self, paths: &Paths) -> Result<(), FileError> {
        // Plain text and numbers: it cannot fail, and an empty file is read as none.
        let bytes = serde_json::to_vec_pretty(self).unwrap_or_default();
        file::make_folder(&paths.run_dir(), Eyes::All)?;
        file::replace(&path(paths), &bytes, Eyes::All)
    }
}

/// Reads it; none when there is none, or none that can be read.
pub fn load(paths: &Paths) -> Option<AptState> {
    let bytes = file::read(&path(paths), BYTES_MAX, Eyes::All).ok().flatten()?;
    serde_json::from_slice(&bytes).ok()
}

/// Removes the record: another process makes the check, so this one does not.
pub fn forget(paths: &Paths) {
    if let Err(error) = file::remove_durably(&path(paths)) {
        note_line!("guestd: {}", chain(&error));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(boot: &str, seconds: u64) -> Moment {
        Moment { boot_id: boot.to_owned(), since: Duration::from_secs(seconds) }
    }

    fn note() -> AptState {
        AptState::new(at("a", 100), Run::ByHand, Some("apt-1".parse().unwrap()), Vec::new())
    }

    fn apt(snapshot: AptSnapshot, after: AptAfter) -> Apt {
        Apt { snapshot, after, keep_hours: 24 }
    }

    #[test]
    fn one_snapshot_is_for_all_steps_of_a_run() {
        let tell = apt(AptSnapshot::Try, AptAfter::Report);
        assert!(
            note().is_for(&at("a", 100), Run::ByHand, tell)
                && note().is_for(&at("a", 1_899), Run::ByHand, tell)
        );
        for other in [at("a", 1_900), at("a", 99), at("b", 101)] {
            assert!(!note().is_for(&other, Run::ByHand, tell), "{other:?}");
        }
        assert!(!note().is_for(&at("a", 101), Run::Upgrade, tell), "an upgrade has a snapshot of its own");
        let none = AptState { snapshot: None, ..note() };
        assert!(!none.is_for(&at("a", 101), Run::ByHand, tell), "the next step may have more luck");
        assert!(none.is_for(&at("a", 101), Run::ByHand, apt(AptSnapshot::Off, AptAfter::Report)));
    }

    #[test]
    fn a_healthy_result_is_never_rolled_back() {
        let back = apt(AptSnapshot::Try, AptAfter::RollBack);
        let checked = note().checked();
        assert!(note().is_for(&at("a", 101), Run::ByHand, back), "its run goes on");
        assert!(!checked.is_for(&at("a", 101), Run::ByHand, back));
        assert!(
            checked.is_for(&at("a", 101), Run::ByHand, apt(AptSnapshot::Try, AptAfter::Report)),
            "one is enough to tell"
        );
    }

    #[test]
    fn only_the_check_of_the_last_call_reports() {
        let mine = note();
        let now = at("a", 200);
        assert!(mine.is_still(Some(&mine), Some(&now)));
        let checked = note().checked();
        let other_run = AptState::new(at("a", 150), Run::ByHand, None, Vec::new());
        for other in [note().again(), checked, other_run] {
            assert!(!mine.is_still(Some(&other), Some(&now)), "{other:?}");
        }
        assert!(!mine.is_still(None, Some(&now)));
        assert!(!mine.is_still(Some(&mine), Some(&at("b", 200))), "another boot");
        assert!(!mine.is_still(Some(&mine), None));
        assert_eq!(note().again().check_state, CheckState::Open);
        assert_ne!(note().again().unit(), note().unit());
    }
}
