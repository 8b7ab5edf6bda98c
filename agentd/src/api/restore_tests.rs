//! `GET /v1/restore-tests`: results for this guest's backups.

use std::sync::Arc;

use axum::extract::State;
use holdfast_protocol::local::restore_test::{Reported, RestoreTestView, RestoreTestsView};

use super::Local;
use super::auth::GuestScope;
use super::envelope::Data;
use super::error::ApiError;
use super::wait::Wait;
use crate::model::records::TestRecord;

/// A test a week makes these the last half year.
const SHOWN: u32 = 26;

pub(super) async fn all(
    State(local): State<Arc<Local>>,
    scope: GuestScope,
    wait: Wait,
) -> Result<Data<RestoreTestsView>, ApiError> {
    let look = async || {
        let tests = local.store.restore_tests(scope.uid(), SHOWN).await?;
        Ok(RestoreTestsView { tests: tests.into_iter().map(view).collect() })
    };
    wait.for_change(&local, look).await
}

/// A guest is not its own scratch copy, which has a listener of its own.
pub(super) async fn report(_scope: GuestScope) -> Result<Data<Reported>, ApiError> {
    Err(ApiError::NoTest)
}

fn view(test: TestRecord) -> RestoreTestView {
    let took = test.at.duration_since(test.began_at).as_secs();
    RestoreTestView {
        id: test.operation,
        backup: test.backup,
        at: test.at,
        verdict: test.verdict,
        why: test.why,
        // A clock that was set back meanwhile gives no duration.
        took_s: u64::try_from(took).unwrap_or(0),
    }
}
