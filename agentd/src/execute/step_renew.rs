//! The step that renews tag and tokens after a rollback.

use holdfast_protocol::code::ErrorCode;

use super::context::{Checked, Context, Started, StepOutput};
use super::identity::{look_at, vmid, with_volumes};
use super::step_config::{change, mark_changes};
use super::step_roll_back::tags;
use super::step_snapshot::find;
use super::trouble::StepError;
use crate::model::mark::{self, Mark};
use crate::port::pve::change::ConfigChange;
use crate::port::pve::config::Switch;
use crate::port::pve::snapshot::SnapshotListing;
use crate::port::pve::{GuestConfig, PveError};

/// The guest right after its rollback. The snapshot may have restored other tags; then the snapshot itself, which is
/// kept in the same configuration, shows whose guest it is.
async fn rolled_back(context: &Context<'_>) -> Result<GuestConfig, StepError> {
    let (vmid, uid) = (vmid(context)?, context.progress.operation.uid());
    let config = context.ports.pve.guest_config(vmid).await?;
    let ours = match mark::read(&config.tags, &config.description) {
        Mark::Of(found) => found == uid,
        Mark::Copy { .. } => false,
        Mark::None | Mark::Broken => matches!(find(context).await?, SnapshotListing::Whole(_)),
    };
    if !ours {
        let text = format!("guest {vmid} is not {uid} any more: it is not touched");
        return Err(StepError::park(ErrorCode::ForeignGuest, text, look_at(vmid)));
    }
    with_volumes(context, config).await
}

fn stale(context: &Context<'_>, config: &GuestConfig) -> Result<Vec<ConfigChange>, StepError> {
    let mut changes = Vec::new();
    if mark::read(&config.tags, &config.description) != Mark::Of(context.progress.operation.uid()) {
        for change in mark_changes(context)? {
            changes.push(match change {
                ConfigChange::Tags(mut ours) => {
                    let kept = tags(config)?.into_iter().filter(|tag| !tag.as_str().starts_with("hf-"));
                    let kept: Vec<_> = kept.filter(|tag| !ours.contains(tag)).collect();
                    ours.extend(kept);
                    ConfigChange::Tags(ours)
                }
                other => other,
            });
        }
    }
    if config.env.is_some() {
        changes.push(ConfigChange::ClearEnv);
    }
    if config.protection == Switch::Off {
        changes.push(ConfigChange::Protect);
    }
    Ok(changes)
}

pub(super) async fn probe(context: &Context<'_>) -> Result<Checked, StepError> {
    let config = rolled_back(context).await?;
    let fresh = stale(context, &config)?.is_empty();
    Ok(if fresh { Checked::Happened(StepOutput::nothing()) } else { Checked::Not })
}

pub(super) async fn act(context: &Context<'_>) -> Result<Started, StepError> {
    let config = rolled_back(context).await?;
    if let Some(kind) = config.lock.clone() {
        return Err(PveError::Locked { kind }.into());
    }
    if config.env.is_some() {
        // Anyone who reads the old bootstrap token finds its claim worthless.
        context.ports.store.forget_claim(context.progress.operation.uid()).await?;
    }
    let changes = stale(context, &config)?;
    if changes.is_empty() {
        return Ok(Started::Done);
    }
    change(context, config, changes).await
}
