//! Rollouts of releases.

use async_trait::async_trait;
use holdfast_protocol::access::AccessScope;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::CorrelationId;
use holdfast_protocol::release::VersionNumber;
use holdfast_protocol::release::rollout::{RolloutRequest, RolloutView};
use jiff::Timestamp;

use super::idempotency::By;
use super::{StoreError, Term, WriteError, duty};
use crate::domain::rollout::action::{Action, ActionError};
use crate::domain::rollout::plan::PlanError;

/// Rollouts that are kept; the oldest goes first.
pub const ROLLOUTS_MAX: u32 = 50;

/// Why a rollout is not planned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanRolloutError {
    #[error("the hub has no release {version}, and nothing was planned: see `holdfast release list`")]
    NoRelease { version: VersionNumber },
    #[error(
        "rollout {number} is not over, and nothing was planned: `holdfast rollout abort {number}` ends it"
    )]
    Unfinished { number: u32 },
    #[error(
        "release {to} is not newer than release {version}, so no host goes back to it, and nothing was planned: release the older \
         programs under a higher number"
    )]
    OlderFallback { version: VersionNumber, to: VersionNumber },
    #[error(
        "guest agents go back by themselves or by a person, and nothing was planned: plan the rollout with --on-failure hold"
    )]
    GuestAgentsGoBack,
    #[error(
        "no host goes back to an older image, since an image changes no guest, and nothing was planned: plan the rollout with \
         --on-failure hold"
    )]
    ImagesGoBack,
    #[error(transparent)]
    Plan(#[from] PlanError),
}

impl PlanRolloutError {
    /// The stable code.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::NoRelease { .. } => ErrorCode::NotFound,
            Self::Unfinished { .. } | Self::GuestAgentsGoBack | Self::ImagesGoBack => {
                ErrorCode::PreconditionFailed
            }
            Self::OlderFallback { .. } => ErrorCode::Range,
            Self::Plan(error) => error.code(),
        }
    }
}

/// Rollouts of releases.
#[async_trait]
pub trait Rollouts: Send + Sync {
    /// Plans a rollout. Nothing is offered before it is started.
    ///
    /// # Errors
    /// [`PlanRolloutError`].
    async fn plan_rollout(
        &self,
        by: By,
        request: RolloutRequest,
    ) -> Result<RolloutView, WriteError<PlanRolloutError>>;

    /// All of them, the newest first.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn rollouts(&self, now: Timestamp) -> Result<Vec<RolloutView>, StoreError> {
        self.rollouts_within(AccessScope::Everything {}, now).await
    }

    /// Those with hosts of a scope, without the others of their hosts. No host lies in the scope of a customer.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn rollouts_within(
        &self,
        scope: AccessScope,
        now: Timestamp,
    ) -> Result<Vec<RolloutView>, StoreError>;

    /// One.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn rollout(&self, number: u32, now: Timestamp) -> Result<Option<RolloutView>, StoreError> {
        self.rollout_within(AccessScope::Everything {}, number, now).await
    }

    /// One with hosts of a scope, without the others of its hosts.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn rollout_within(
        &self,
        scope: AccessScope,
        number: u32,
        now: Timestamp,
    ) -> Result<Option<RolloutView>, StoreError>;

    /// Does what an operator asks for. `None` when there is no such rollout.
    ///
    /// # Errors
    /// [`ActionError`].
    async fn act_on_rollout(
        &self,
        by: By,
        number: u32,
        action: Action,
    ) -> Result<Option<RolloutView>, WriteError<ActionError>>;

    /// Brings the rollout that runs to where the reports of its hosts put it.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn evaluate_rollouts(
        &self,
        term: &Term<duty::Rollouts>,
        now: Timestamp,
        correlation: CorrelationId,
    ) -> Result<(), StoreError>;
}
