//! What the restore tests say of one tier of a guest.
//!
//! What comes in: a tier of its promise, and its backups, tests and proofs by our records. What goes out: the tier's
//! last test, its last proof, a failure that no proof came after, and what is reported of it in addition to the guest's
//! posture. A test is of the tier whose backup it tried; where that backup is gone, of the tier to whose target its
//! archive belonged. Pure. Deliberately absent: which backup is tried next (`trial`), and what it means for the guest
//! (`posture`).

use holdfast_protocol::local::restore_test::TestVerdict;
use holdfast_protocol::protection::{LastTest, Protection, Tier, TierTested, Trend};
use holdfast_protocol::size::TestDays;
use jiff::{SignedDuration, Timestamp};

use super::restore_duration::trend;
use super::schedule::facts::{Promised, ScheduleFacts, promised};
use crate::model::records::{BackupRecord, TestRecord};

/// What the tests of a tier say.
#[derive(Clone, Debug)]
pub struct Tested<'a> {
    /// Of which tier.
    tier: Tier,
    /// The last one, whatever became of it.
    pub last: Option<&'a TestRecord>,
    /// When a backup of it that still counts was last proved.
    pub proved: Option<Timestamp>,
    /// The last that failed, where none was proved since.
    pub failed: Option<&'a TestRecord>,
    tests: Vec<&'a TestRecord>,
}

impl<'a> Tested<'a> {
    /// Looks through a guest's tests for those of one tier.
    #[must_use]
    pub fn of(promised: &Promised<'_>, known: &ScheduleFacts<'a>) -> Self {
        let of_tier = known.tests.iter().filter(|test| is_of(test, promised, known.backups));
        let tests: Vec<&TestRecord> = of_tier.collect();
        let with =
            |verdict| tests.iter().copied().filter(|test| test.verdict == verdict).max_by_key(|test| test.at);
        let latest = known.latest();
        let proof = |by| known.proofs.get(by).copied().filter(|at| *at <= latest);
        let proved = known.good(promised).filter_map(|backup| proof(&backup.taken_by)).max();
        // A backup that came back and is gone by now came back all the same.
        let came_back = with(TestVerdict::Proved).map(|test| test.at).max(proved);
        Self {
            tier: promised.tier,
            last: tests.iter().copied().max_by_key(|test| test.at),
            proved,
            failed: with(TestVerdict::Failed).filter(|test| came_back.is_none_or(|at| at < test.at)),
            tests,
        }
    }

    /// As it is reported; nothing of a tier of which nothing was ever tried.
    #[must_use]
    pub fn report(&self) -> Option<TierTested> {
        let test = self.last?;
        let last = LastTest {
            at: test.at,
            taken_at: test.taken_at,
            verdict: test.verdict,
            why: test.why.clone(),
            took: test.took,
        };
        Some(TierTested { tier: self.tier, last, trend: self.trend() })
    }

    /// What to report although nothing is wrong with any backup: a return takes markedly longer than it did.
    #[must_use]
    pub fn slower(&self) -> Option<String> {
        let (tier, trend) = (self.tier, self.trend());
        matches!(trend, Trend::Slower { .. }).then(|| {
            format!("a return from its {tier} backups is {trend}; `agentd restore-tests` shows the tests")
        })
    }

    /// How long a return takes, compared with how long it took.
    fn trend(&self) -> Trend {
        trend(self.tests.iter().copied())
    }

    /// When the backup was taken that failed, where a good one came after it.
    #[must_use]
    pub fn newer_than_the_failed(
        &self,
        known: &ScheduleFacts<'_>,
        promised: &Promised<'_>,
    ) -> Option<Timestamp> {
        let failed = self.failed?.taken_at;
        known.good(promised).any(|backup| backup.taken_at > failed).then_some(failed)
    }

    /// What failed, in words.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        let failed = self.failed?;
        Some(format!("the restore test of {} failed at {:.0}: {}", failed.archive, failed.at, failed.why))
    }

    /// Why it is not proved as often as was promised; none, where it is.
    #[must_use]
    pub fn lacks(&self, every: TestDays, now: Timestamp) -> Option<String> {
        let tier = self.tier;
        let why = match (self.failure(), self.proved) {
            (Some(failure), _) => failure,
            (None, Some(at)) if now.duration_since(at) <= within(every) => return None,
            (None, Some(at)) => {
                format!("no {tier} backup of it was restored and checked within {every}, the last at {at:.0}")
            }
            (None, None) => format!("no {tier} backup of it was ever restored and checked"),
        };
        Some(format!("{why}{}", self.since()))
    }

    /// The last moment at which the last proof is young enough; none, where it is not now.
    #[must_use]
    pub fn proved_until(&self, every: TestDays, now: Timestamp) -> Option<Timestamp> {
        let until = self.proved?.checked_add(within(every)).ok()?;
        (now <= until).then_some(until)
    }

    /// What came of the last test, where it neither proved nor failed.
    fn since(&self) -> String {
        let Some(last) = self.last else { return String::new() };
        let what = match last.verdict {
            TestVerdict::Proved | TestVerdict::Failed => return String::new(),
            TestVerdict::BootedOnly => "only booted",
            TestVerdict::NotRun => "could not be run",
        };
        format!("; the last test, at {:.0}, {what}: {}", last.at, last.why)
    }
}

/// How long a proof counts.
pub(super) fn within(every: TestDays) -> SignedDuration {
    SignedDuration::from_hours(24 * i64::from(every.get()))
}

/// The tier of a promise that a test is of.
#[must_use]
pub fn tier_of(test: &TestRecord, promise: &Protection, backups: &[BackupRecord]) -> Option<Tier> {
    promised(promise).iter().find(|promised| is_of(test, promised, backups)).map(|promised| promised.tier)
}

fn is_of(test: &TestRecord, promised: &Promised<'_>, backups: &[BackupRecord]) -> bool {
    let Some(target) = promised.target else { return false };
    match backups.iter().rev().find(|backup| backup.taken_by == test.backup) {
        Some(backup) => backup.is_of(promised.tier, target),
        None => test.archive.storage() == Some(target.as_str()),
    }
}
