//! `?wait=30s`: an answer at the next change.
//!
//! In: how an answer is made. Out: the first answer that differs from the one that could be given at once, or the last
//! one when the time is over. Woken by every change of the store, of which few concern one guest. A check is cheap, and
//! each connection waits for one answer at a time. Deliberately absent: endless lists (the audit's pages continue by
//! number), and data that only the agent's observation of the host gives (`/v1/self`, `/v1/storage`).

use std::time::Duration;

use axum::extract::rejection::QueryRejection;
use axum::extract::{FromRequestParts, Query};
use axum::http::request::Parts;
use holdfast_protocol::local::desired::DesiredView;
use holdfast_protocol::local::due_backups::DueView;
use holdfast_protocol::local::restore_test::RestoreTestsView;
use holdfast_protocol::local::window::WindowView;
use holdfast_protocol::local::work::{BackupView, BackupsView, SnapshotsView};
use holdfast_protocol::operation::OperationView;
use jiff::Timestamp;
use serde::Deserialize;

use super::Local;
use super::envelope::Data;
use super::error::ApiError;

/// Shorter than what gateways and clients cut off.
const SECONDS_MAX: u64 = 55;

/// A change by the passing of time is checked when it is due, and not sooner than this again.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// How long its caller waits for a change; none is not at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wait(Option<Duration>);

/// An answer that may change.
pub(super) trait Changing: PartialEq {
    /// Whether nothing follows: then there is nothing to wait for.
    fn is_final(&self) -> bool {
        false
    }

    /// When the answer changes without any action.
    fn changes_in(&self, _now: Timestamp) -> Option<Duration> {
        None
    }

    /// Whether it says the same. Time that passes is no news.
    fn is_same(&self, other: &Self) -> bool {
        self == other
    }
}

impl Changing for OperationView {
    fn is_final(&self) -> bool {
        self.status.is_end()
    }
}

impl Changing for BackupView {
    fn is_final(&self) -> bool {
        self.phase.is_end()
    }
}

impl Changing for WindowView {
    /// The passing of its bound is a change.
    fn changes_in(&self, _now: Timestamp) -> Option<Duration> {
        let left = self.left_s.filter(|_| !self.phase.is_over())?;
        Some(Duration::from_secs(u64::from(left) + 1))
    }

    fn is_same(&self, other: &Self) -> bool {
        let still = |view: &Self| Self { left_s: None, ..view.clone() };
        still(self) == still(other)
    }
}

impl Changing for DueView {
    fn changes_in(&self, now: Timestamp) -> Option<Duration> {
        Duration::try_from(self.next_at?.duration_since(now)).ok()
    }
}

impl Changing for BackupsView {}
impl Changing for DesiredView {}
impl Changing for RestoreTestsView {}
impl Changing for SnapshotsView {}

impl Wait {
    /// The wait of a query; none, where it is none that is allowed.
    pub(super) fn of(text: Option<&str>) -> Option<Self> {
        match text.map(seconds) {
            None => Some(Self(None)),
            Some(wait) => wait.map(|wait| Self(Some(wait))),
        }
    }

    /// The answer of `look`, at once or when it changes.
    pub(super) async fn for_change<T, F>(
        self,
        local: &Local,
        look: impl Fn() -> F,
    ) -> Result<Data<T>, ApiError>
    where
        T: Changing,
        F: Future<Output = Result<T, ApiError>>,
    {
        // Subscribed before the first read, so that no change falls between the two.
        let mut changes = local.store.changes();
        changes.mark_unchanged();
        let first = look().await?;
        let Some(wait) = self.0.filter(|_| !first.is_final()) else { return Ok(Data(first)) };
        let changed = async {
            loop {
                let by_itself = first.changes_in(local.clock.now()).map_or(wait, |left| left.max(LOOK_AGAIN));
                let woken = tokio::time::timeout(by_itself, changes.changed()).await;
                let now = look().await?;
                // The store closed: the agent is stopping.
                if matches!(woken, Ok(Err(_))) || !now.is_same(&first) {
                    return Ok(now);
                }
            }
        };
        match tokio::time::timeout(wait, changed).await {
            Ok(outcome) => outcome.map(Data),
            Err(_) => look().await.map(Data),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WaitQuery {
    wait: Option<String>,
}

impl<S: Send + Sync> FromRequestParts<S> for Wait {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let refused = || ApiError::Part { what: "the query", rule: "the only part is wait, of 1s to 55s" };
        let asked: Result<Query<WaitQuery>, QueryRejection> = Query::from_request_parts(parts, state).await;
        let Query(asked) = asked.map_err(|_| refused())?;
        Self::of(asked.wait.as_deref()).ok_or_else(refused)
    }
}

fn seconds(text: &str) -> Option<Duration> {
    let number = text.strip_suffix('s')?.parse::<u64>().ok()?;
    (1..=SECONDS_MAX).contains(&number).then(|| Duration::from_secs(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_whole_seconds_within_its_bound() {
        assert_eq!(seconds("30s"), Some(Duration::from_secs(30)));
        for bad in ["", "30", "0s", "56s", "-1s", "1.5s", "30m", "s"] {
            assert_eq!(seconds(bad), None, "{bad:?}");
        }
    }
}
