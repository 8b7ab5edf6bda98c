//! Whether a destroy freed every volume of its guest.
//!
//! With the guest we lose the right to see its volumes, so a list that shows none proves nothing. What counts is the
//! end and the log of the task, and what a list still shows. In: the task, and the volumes that were known before it.

use std::collections::BTreeSet;
use std::time::Duration;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::{StorageName, Vmid};

use super::context::Context;
use super::trouble::StepError;
use crate::model::records::VolumeId;
use crate::port::clock::ClockPace;
use crate::port::pve::task::{Patience, TaskEnd, TaskOutcome};
use crate::port::pve::{ContentKind, Role, Upid, follow_task};

/// Nothing is reported when all is well; otherwise it is left to a person, with a command to run.
pub(super) async fn prove(
    context: &Context<'_>,
    vmid: Vmid,
    task: Option<&str>,
    volumes: &BTreeSet<VolumeId>,
) -> Result<(), StepError> {
    let own = task.and_then(|text| text.parse::<Upid>().ok());
    let (mut clean, mut spared) = task_word(context, own, volumes).await?;
    if !clean {
        // A person may have done by hand what the agent advised.
        let theirs;
        (clean, theirs) = task_word(context, by_anybody(context, vmid).await?, volumes).await?;
        spared.extend(theirs);
    }
    let mut left = present(context, volumes).await?;
    left.extend(spared);
    if !left.is_empty() {
        let names: Vec<&str> = left.iter().map(VolumeId::as_str).collect();
        let text =
            format!("guest {vmid} is destroyed, but of its volumes these are left: {}", names.join(", "));
        let remedy = names.iter().map(|name| format!("pvesm free {name}")).collect::<Vec<_>>().join("; ");
        return Err(StepError::park(ErrorCode::Unavailable, text, remedy));
    }
    if clean || volumes.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = volumes.iter().map(VolumeId::as_str).collect();
    let text = format!(
        "guest {vmid} is gone, but nobody knows how its destroy ended, and our rights no longer show its volumes: look for {}",
        names.join(", ")
    );
    let remedy: BTreeSet<String> =
        storages(volumes)?.iter().map(|storage| format!("pvesm list {storage} --vmid {vmid}")).collect();
    let remedy = remedy.into_iter().collect::<Vec<_>>().join("; ");
    Err(StepError::park(ErrorCode::Unavailable, text, remedy))
}

/// The newest task that destroyed a guest with this number, and ended well, since this operation began.
async fn by_anybody(context: &Context<'_>, vmid: Vmid) -> Result<Option<Upid>, StepError> {
    let since = u64::try_from(context.progress.opened_at.as_second()).unwrap_or(0);
    let rows = context.ports.pve.destroyed_since(vmid, since).await?;
    Ok(rows.into_iter().find(|row| row.end == Some(TaskEnd::Ok)).map(|row| row.upid))
}

/// Whether the destroy's task ended well, and which volumes it says it spared: those that another number owns.
async fn task_word(
    context: &Context<'_>,
    task: Option<Upid>,
    volumes: &BTreeSet<VolumeId>,
) -> Result<(bool, BTreeSet<VolumeId>), StepError> {
    let Some(upid) = task else { return Ok((false, BTreeSet::new())) };
    let pve = context.ports.pve.as_ref();
    let patience = Patience::up_to(Duration::from_secs(context.step.bound().seconds));
    let mut spared = BTreeSet::new();
    let mut on_line = |line: &str| {
        // Proxmox reports this only as text; a line of a good destroy names none of the volumes.
        let named = volumes.iter().filter(|volume| line.contains(volume.as_str()));
        spared.extend(named.filter(|_| line.contains("ignore deletion")).cloned());
    };
    let outcome =
        follow_task(pve, &ClockPace(context.ports.clock.as_ref()), &upid, patience, &mut on_line).await?;
    Ok((outcome == TaskOutcome::Ok, spared))
}

/// Which of them a list shows.
pub(super) async fn present(
    context: &Context<'_>,
    volumes: &BTreeSet<VolumeId>,
) -> Result<BTreeSet<VolumeId>, StepError> {
    let mut found = BTreeSet::new();
    for storage in storages(volumes)? {
        let list =
            context.ports.pve.storage_content(Role::Operate, &storage, ContentKind::Rootdir, None).await?;
        found.extend(list.into_iter().map(|entry| VolumeId::new(entry.volid)));
    }
    Ok(volumes.intersection(&found).cloned().collect())
}

/// The storages of these volumes.
pub(super) fn storages(volumes: &BTreeSet<VolumeId>) -> Result<BTreeSet<StorageName>, StepError> {
    let named = volumes.iter().filter_map(|volume| volume.as_str().split_once(':'));
    named
        .map(|(storage, _)| {
            storage.parse().map_err(|_| StepError::fault(format!("{storage:?} is no storage")))
        })
        .collect()
}
