//! What the restore tests say of one tier of a guest.
//!
//! What comes in: a tier of its promise, and its backups and tests by our records. What goes out: the tier's last test. A
//! test is of the tier whose backup it tried; where that backup is gone, of the tier to whose target its archive belonged.
//! Pure. Deliberately absent: which backup is tried next (`trial`), and what it means for the guest (`posture`).

use super::schedule::{Known, Promised};
use crate::model::record::TestRecord;

/// What the tests of a tier say.
#[derive(Clone, Copy, Debug)]
pub struct Tested<'a> {
    /// The last one, whatever became of it.
    pub last: Option<&'a TestRecord>,
}

impl<'a> Tested<'a> {
    /// Looks through a guest's tests for those of one tier.
    #[must_use]
    pub fn of(promised: &Promised<'_>, known: &Known<'a>) -> Self {
        let tests = known.tests.iter().filter(|test| is_of(test, promised, known));
        Self { last: tests.max_by_key(|test| test.at) }
    }
}

fn is_of(test: &TestRecord, promised: &Promised<'_>, known: &Known<'_>) -> bool {
    let Some(target) = promised.target else { return false };
    match known.backups.iter().find(|backup| backup.taken_by == test.backup) {
        Some(backup) => backup.is_of(promised.tier, target),
        None => test.archive.storage() == Some(target.as_str()),
    }
}
