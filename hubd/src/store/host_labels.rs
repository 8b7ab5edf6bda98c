//! Labels and update windows of hosts.

use std::convert::Infallible;

use async_trait::async_trait;
use holdfast_protocol::host_label::{LabelChange, LabelError};
use holdfast_protocol::operator::HostView;
use holdfast_protocol::release::window::UpdateWindows;

use super::WriteError;
use super::idempotency::By;
use crate::domain::host::HostRef;

/// Labels and update windows of hosts.
#[async_trait]
pub trait HostLabelling: Send + Sync {
    /// Changes labels. `None` when there is no such host.
    ///
    /// # Errors
    /// [`LabelError`].
    async fn change_labels(
        &self,
        by: By,
        host: HostRef,
        change: LabelChange,
    ) -> Result<Option<HostView>, WriteError<LabelError>>;

    /// Says when a host may be offered releases by rollouts; without windows at any time. `None` when there is no such host.
    ///
    /// # Errors
    /// [`WriteError`].
    async fn set_update_windows(
        &self,
        by: By,
        host: HostRef,
        windows: UpdateWindows,
    ) -> Result<Option<HostView>, WriteError<Infallible>>;
}
