//! Restore tests of one guest, for the admin socket.

use holdfast_protocol::id::GuestUid;
use holdfast_protocol::report::GuestReport;

use super::fields::called_so;
use super::{StatusTask, reported};
use crate::model::limits;
use crate::model::records::{BackupRecord, TestRecord};
use crate::plan::restore_test_status;
use crate::port::admin_socket::{Answer, GuestTests, TestLine};
use crate::port::store::StoreError;

/// A guest that is tried every week has half a year of tests, and as many that could not be run.
const SHOWN: u32 = 2 * limits::TESTS_PER_VERDICT;

impl StatusTask {
    pub(super) async fn restore_tests(&self, called: &str) -> Answer {
        let view = std::sync::Arc::clone(&self.view.borrow());
        match called_so(&view, called) {
            Ok((uid, guest)) => reported(self.tests_of(uid, guest).await),
            Err(problem) => Answer::Refused(problem),
        }
    }

    async fn tests_of(&self, uid: GuestUid, guest: &GuestReport) -> Result<Answer, StoreError> {
        let tests = self.store.restore_tests(uid, SHOWN).await?;
        let backups = self.store.backups(uid, limits::REMAINS_MAX).await?;
        let lines = tests.into_iter().map(|test| line(test, guest, &backups)).collect();
        let tested = guest.protection.as_ref().map(|report| report.tested.clone()).unwrap_or_default();
        Ok(Answer::RestoreTests(Box::new(GuestTests { uid, name: guest.name.clone(), tested, tests: lines })))
    }
}

fn line(test: TestRecord, guest: &GuestReport, backups: &[BackupRecord]) -> TestLine {
    let promise = guest.protection.as_ref().and_then(|report| report.in_force.as_ref());
    TestLine {
        tier: promise.and_then(|promise| restore_test_status::tier_of(&test, promise, backups)),
        operation: test.operation,
        at: test.at,
        backup: test.backup,
        archive: test.archive,
        taken_at: test.taken_at,
        bytes: test.bytes,
        verdict: test.verdict,
        why: test.why,
        took: test.took,
    }
}
