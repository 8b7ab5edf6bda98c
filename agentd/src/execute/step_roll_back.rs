//! The rollback step, recognised by a tag.

use std::borrow::Cow;
use std::collections::BTreeSet;

use holdfast_protocol::code::ErrorCode;

use super::context::{Checked, Context, Started, StepOutput, UndoState};
use super::identity::{free_config, look_at, own_config, vmid};
use super::own_tasks::at_work;
use super::step_config::change;
use super::step_power::runs;
use super::step_snapshot::{find, half};
use super::trouble::StepError;
use crate::model::mark;
use crate::operation::log::{Finding, PowerFound};
use crate::operation::{BulkRule, Operation, RollBack};
use crate::port::pve::change::{ConfigChange, ConfigUpdate, Tag};
use crate::port::pve::snapshot::SnapshotListing;
use crate::port::pve::volume::InBackup;
use crate::port::pve::{GuestConfig, OwnSnapshot, PveError, TaskKind, VolumeId};

fn spec<'a>(context: &'a Context<'_>) -> Result<Cow<'a, RollBack>, StepError> {
    match &context.progress.operation {
        Operation::RollBack(back) => Ok(Cow::Borrowed(back)),
        Operation::UpdateController(update) => Ok(Cow::Owned(update.back(context.progress.id))),
        other => Err(StepError::fault(format!("a {} rolls nothing back", other.kind().as_str()))),
    }
}

/// The snapshot, when it is ours and whole.
async fn own(context: &Context<'_>) -> Result<OwnSnapshot, StepError> {
    let name = &spec(context)?.snapshot;
    match find(context).await? {
        SnapshotListing::Whole(own) => Ok(own),
        SnapshotListing::Half(state) => Err(half(context, &state).await?),
        SnapshotListing::Others => {
            let text = format!("snapshot {name} is not one that was made here: nothing is rolled back to it");
            Err(StepError::give_up(ErrorCode::NotYours, text))
        }
        SnapshotListing::Nothing => {
            Err(StepError::give_up(ErrorCode::NotFound, format!("snapshot {name} is not there any more")))
        }
    }
}

/// All that must be true before anything is touched.
pub(super) async fn prove(context: &Context<'_>) -> Result<Started, StepError> {
    let back = spec(context)?;
    let now = free_config(context).await?;
    let record = context.ports.store.snapshot(back.target.uid, back.snapshot.clone()).await?;
    if record.is_none_or(|record| record.made_by != back.made_by) {
        let text = format!("our records do not know snapshot {}", back.snapshot);
        return Err(StepError::give_up(ErrorCode::NotFound, text));
    }
    own(context).await?;
    let then = context.ports.pve.snapshot_config(vmid(context)?, &back.snapshot).await?;
    same_volumes(&now, &then)?;
    let bulk = now.mounts.values().find(|disk| disk.in_backup == InBackup::No);
    if let (Some(disk), BulkRule::NoneThere) = (bulk, back.bulk) {
        let at = disk.mount.as_deref().unwrap_or("a volume");
        let text =
            format!("{at} is in no backup, and what was written there would be lost: an operator must sign");
        return Err(StepError::give_up(ErrorCode::NeedsSignature, text));
    }
    let found = if runs(context).await? { PowerFound::Running } else { PowerFound::Stopped };
    Ok(Started::Learnt(StepOutput::fact(Finding::Found(found))))
}

/// A volume added after the snapshot would be torn off the guest; one that was removed since cannot be rolled back.
fn same_volumes(now: &GuestConfig, then: &GuestConfig) -> Result<(), StepError> {
    let mounted = |config: &GuestConfig| -> BTreeSet<VolumeId> {
        config.rootfs.iter().chain(config.mounts.values()).filter_map(|disk| disk.volume()).cloned().collect()
    };
    let (now, then) = (mounted(now), mounted(then));
    let why = match (now.difference(&then).next(), then.difference(&now).next()) {
        (Some(new), _) => format!("volume {new} was attached after the snapshot, and would be torn off"),
        (None, Some(gone)) => format!("volume {gone} left the guest after the snapshot"),
        (None, None) => return Ok(()),
    };
    Err(StepError::give_up(ErrorCode::Unsupported, format!("{why}: nothing is rolled back")))
}

pub(super) async fn is_armed(context: &Context<'_>) -> Result<Checked, StepError> {
    let armed = own_config(context).await?.tags.contains(&mark::rolling_tag(context.progress.id));
    Ok(armed.then(StepOutput::nothing).into())
}

pub(super) async fn arm(context: &Context<'_>) -> Result<Started, StepError> {
    let config = free_config(context).await?;
    let mut tags = tags(&config)?;
    tags.push(tag(&mark::rolling_tag(context.progress.id))?);
    change(context, config, vec![ConfigChange::Tags(tags)]).await
}

pub(super) async fn is_rolled_back(context: &Context<'_>) -> Result<Checked, StepError> {
    let tag = mark::rolling_tag(context.progress.id);
    let (vmid, name) = (vmid(context)?, &spec(context)?.snapshot);
    let config = context.ports.pve.guest_config(vmid).await?;
    let locked = config.lock.as_deref() == Some("rollback");
    if locked && at_work(context, vmid, TaskKind::RollBack).await? {
        return Err(PveError::Locked { kind: "rollback".to_owned() }.into());
    }
    if locked {
        let text = format!(
            "the rollback of guest {vmid} stopped half-way: some of its volumes may be of now, some of then"
        );
        let remedy = format!("pct unlock {vmid}; pct rollback {vmid} {name}");
        return Err(StepError::park(ErrorCode::Locked, text, remedy));
    }
    if config.tags.contains(&tag) {
        return Ok(Checked::Not);
    }
    if config.other.get("parent").is_some_and(|parent| parent == name.as_str()) {
        return Ok(Checked::Happened(StepOutput::nothing()));
    }
    let text =
        format!("guest {vmid} lost the tag {tag} although it was not rolled back: somebody changes it");
    Err(StepError::park(ErrorCode::ForeignGuest, text, look_at(vmid)))
}

pub(super) async fn roll_back(context: &Context<'_>) -> Result<Started, StepError> {
    free_config(context).await?;
    if runs(context).await? {
        let text = "the guest was shut down and runs again: somebody else starts it; nothing was rolled back";
        return Err(StepError::give_up(ErrorCode::Unavailable, text));
    }
    let own = own(context).await?;
    Ok(Started::Task(context.ports.pve.roll_back(&own).await?))
}

/// Takes off the tag, when the rollback did not.
pub(super) async fn disarm(context: &Context<'_>) -> Result<UndoState, StepError> {
    let config = free_config(context).await?;
    let rolling = mark::rolling_tag(context.progress.id);
    if !config.tags.contains(&rolling) {
        return Ok(UndoState::Nothing(None));
    }
    let mut tags = tags(&config)?;
    tags.retain(|tag| tag.as_str() != rolling);
    let update = ConfigUpdate::new(config.digest, vec![ConfigChange::Tags(tags)]);
    let update = update.map_err(|error| StepError::fault(error.to_string()))?;
    context.ports.pve.configure(vmid(context)?, &update).await?;
    Ok(UndoState::Nothing(None))
}

/// All tags of the guest, which a change repeats.
pub(super) fn tags(config: &GuestConfig) -> Result<Vec<Tag>, StepError> {
    config.tags.iter().map(|text| tag(text)).collect()
}

fn tag(text: &str) -> Result<Tag, StepError> {
    text.parse().map_err(|_| {
        let why = format!("the guest carries a tag {text:?} that cannot be written again: remove it by hand");
        StepError::give_up(ErrorCode::Unsupported, why)
    })
}
