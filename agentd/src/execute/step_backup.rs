//! The first backup: taken, followed, and then looked for. A task's OK is not a backup.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::StorageName;

use super::attempt::{Acted, Context, Learnt, Probed};
use super::identity::{own_config, vmid};
use super::trouble::Trouble;
use crate::model::record::VolumeId;
use crate::operation::Operation;
use crate::operation::log::Fact;
use crate::port::pve::{ContentKind, Role};

pub(super) async fn probe(context: &Context<'_>) -> Result<Probed, Trouble> {
    let since = context.progress.intended_at(context.place).map(|at| at.as_second());
    let since = since.and_then(|second| u64::try_from(second).ok()).unwrap_or(u64::MAX);
    let (pve, vmid) = (&context.ports.pve, vmid(context)?);
    let list = pve.storage_content(Role::Operate, storage(context)?, ContentKind::Backup, Some(vmid)).await?;
    // A backup that still runs on a backup server is listed already, with size 1.
    let ours = list.into_iter().filter(|entry| entry.vmid == Some(vmid) && entry.size > 1);
    let fresh = ours.filter(|entry| entry.made_epoch_s.is_some_and(|made| made >= since));
    Ok(match fresh.max_by_key(|entry| entry.made_epoch_s) {
        Some(entry) => {
            let note = Some(format!("{} ({} MiB)", entry.volid, entry.size >> 20));
            Probed::Happened(Learnt { facts: vec![Fact::Backup(VolumeId::new(entry.volid))], note })
        }
        None => Probed::Not,
    })
}

pub(super) async fn act(context: &Context<'_>) -> Result<Acted, Trouble> {
    own_config(context).await?;
    Ok(Acted::Task(context.ports.pve.backup(vmid(context)?, storage(context)?).await?))
}

fn storage<'a>(context: &'a Context<'_>) -> Result<&'a StorageName, Trouble> {
    match &context.progress.operation {
        Operation::Provision(provision) => provision.backup_storage.as_ref(),
        _ => None,
    }
    .ok_or_else(|| Trouble::give_up(ErrorCode::Internal, "this operation has no backup storage"))
}
