//! Steps that check an image: digest and configuration.

use std::collections::BTreeMap;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::desired::DesiredGuest;
use holdfast_protocol::id::GuestUid;

use super::archive_check::{self, archive};
use super::context::{Context, Started, StepOutput};
use super::step_room::{Restored, lacks};
use super::trouble::StepError;
use super::{step_rebase, step_restore_copy, step_test};
use crate::gate::archive::{Lines, Nets, judge_backup};
use crate::model::disks::{Content, Share};
use crate::model::limits;
use crate::operation::{MissingGuest, Operation, Provision, Source};
use crate::port::pve::{AclPath, PveError, Role};

pub(super) async fn act(context: &Context<'_>) -> Result<Started, StepError> {
    let provision = match &context.progress.operation {
        Operation::Provision(provision) => provision,
        Operation::RebaseGuest(_) => return step_rebase::judged(context).await,
        Operation::RestoreCopy(_) => return step_restore_copy::judged(context).await,
        Operation::RestoreTest(_) => return step_test::judged(context).await,
        other => return Err(StepError::fault(format!("a {} judges no archive", other.kind().as_str()))),
    };
    match &provision.source {
        Source::Image(image) => {
            let digest = archive_check::image(context, image, provision.guest.size.rootfs_gib).await?;
            Ok(Started::Learnt(StepOutput::note(format!("sha256 {digest}…"))))
        }
        Source::Backup(lost) => {
            has_room(context, provision, lost).await?;
            own_backup(context, provision.guest.uid, lost).await
        }
    }
}

/// A lost guest waits rather than fill a storage that others use: each storage is checked for room for its disks.
async fn has_room(
    context: &Context<'_>,
    provision: &Provision,
    lost: &MissingGuest,
) -> Result<(), StepError> {
    let shares = match &lost.disks {
        Some(disks) => disks.shares(),
        None => BTreeMap::from([(&provision.storage, whole(&provision.guest))]),
    };
    for (storage, share) in shares {
        let restored = Restored {
            guest: provision.guest.uid,
            archive: &lost.backup,
            disks: share.bytes,
            content: share.content,
            most_percent: limits::RESTORE_FILL_MAX_PERCENT,
        };
        if let Some(why) = lacks(context, storage, restored).await? {
            let text = format!(
                "disks of it would lie on {storage}, which {why}: it is not restored until that is put right, so that no other \
                 guest there stops; then it comes back by itself"
            );
            return Err(StepError::give_up(ErrorCode::StorageFull, text));
        }
    }
    Ok(())
}

/// The fallback when its disks were not recorded. Its archive can mostly not be read beforehand, so the sizes are those
/// of the document. The disks grow to that size anyway.
fn whole(guest: &DesiredGuest) -> Share {
    let volumes = guest.volumes.iter().map(|volume| volume.size_gib);
    let gib: u64 = volumes.chain([guest.size.rootfs_gib]).map(|size| u64::from(size.get())).sum();
    Share { bytes: gib << 30, content: Content::Held }
}

/// Reads the configuration in a lost guest's backup, as far as Proxmox lets us.
async fn own_backup(context: &Context<'_>, uid: GuestUid, lost: &MissingGuest) -> Result<Started, StepError> {
    let volume = archive(&lost.backup)?;
    // Proxmox checks a right on the VMID in the archive's name, which may be from before a swap or a return.
    let under = lost.backup.backup_vmid().unwrap_or(lost.vmid);
    let text = match context.ports.pve.archive_config(Role::Allocate, &volume).await {
        Ok(text) => text,
        Err(PveError::Permission { path: Some(path), .. }) if path == AclPath::guest(under).as_str() => {
            let text = format!(
                "its own backup {}; {under} is in no pool, so it is judged once it is restored",
                lost.backup
            );
            return Ok(Started::Learnt(StepOutput::note(text)));
        }
        Err(error) => return Err(error.into()),
    };
    Lines::read(text.expose())
        .and_then(|lines| judge_backup(&lines, uid, Nets::First))
        .map_err(|refused| StepError::give_up(ErrorCode::Forbidden, refused.to_string()))?;
    Ok(Started::Learnt(StepOutput::note(format!("its own backup {}", lost.backup))))
}
