//! The step that sets a guest's address filter in Proxmox's firewall.
//!
//! Each change can be repeated, so an interrupted try is only read and continued. The rules that let the guest through
//! come first: at no moment is it cut off.

use super::context::Context;
use super::identity::vmid;
use super::trouble::StepError;
use crate::model::filter::{FilterChange, FilterRequest};

/// What is missing now.
pub(super) async fn missing(
    context: &Context<'_>,
    goal: &FilterRequest,
) -> Result<Vec<FilterChange>, StepError> {
    let seen = context.ports.pve.guest_filter(vmid(context)?).await?;
    Ok(seen.missing(goal))
}

pub(super) async fn act(context: &Context<'_>, goal: &FilterRequest) -> Result<(), StepError> {
    for change in missing(context, goal).await? {
        context.ports.pve.change_filter(vmid(context)?, change).await?;
    }
    Ok(())
}
