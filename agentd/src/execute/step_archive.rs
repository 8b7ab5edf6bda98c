//! Judging the golden: its bytes against the approved digest, its configuration against the law of archives. And, once it
//! is restored, judging what came of it.

use std::sync::Arc;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::BridgeName;

use super::attempt::{Acted, Context, Learnt};
use super::trouble::Trouble;
use super::{step_beside, step_test};
use crate::gate::archive::{Lines, Nets, judge_backup, judge_golden, judge_made};
use crate::operation::Operation;
use crate::port::pve::{GuestConfig, Role, VolumeId};

pub(super) async fn act(context: &Context<'_>) -> Result<Acted, Trouble> {
    let provision = match &context.progress.operation {
        Operation::Provision(provision) => provision,
        Operation::RestoreBeside(_) => return step_beside::judged(context).await,
        Operation::RestoreTest(_) => return step_test::judged(context).await,
        other => return Err(Trouble::fault(format!("a {} judges no archive", other.kind().as_str()))),
    };
    if let Some(lost) = &provision.lost {
        let volume = archive(&lost.backup)?;
        let text = context.ports.pve.archive_config(Role::Allocate, &volume).await?;
        Lines::read(text.expose())
            .and_then(|lines| judge_backup(&lines, provision.guest.uid, Nets::First))
            .map_err(|refused| Trouble::give_up(ErrorCode::Forbidden, refused.to_string()))?;
        return Ok(Acted::Learnt(Learnt::note(format!("its own backup {}", lost.backup))));
    }
    context.say("checking the archive's digest");
    let (approved, path) = (&provision.archive_sha256, &provision.archive_file);
    let (digests, file) = (Arc::clone(&context.ports.digests), path.clone());
    let read = tokio::task::spawn_blocking(move || digests.sha256(&file)).await;
    let digest = match read {
        Ok(Ok(digest)) => digest,
        Ok(Err(error)) => {
            let text = format!(
                "the golden {} cannot be read ({error}): correct `file` in the settings",
                path.display()
            );
            return Err(Trouble::give_up(ErrorCode::Unavailable, text));
        }
        Err(_) => return Err(Trouble::again(ErrorCode::Internal, "checking the digest was cut short")),
    };
    if digest != approved.as_str() {
        let text = format!(
            "the golden {} has the digest {digest}, approved is {}: somebody changed it; build or approve it anew",
            path.display(),
            approved.as_str()
        );
        return Err(Trouble::give_up(ErrorCode::GoldenUnapproved, text));
    }
    let volume = archive(&provision.archive)?;
    let text = context.ports.pve.archive_config(Role::Allocate, &volume).await?;
    Lines::read(text.expose())
        .and_then(|lines| judge_golden(&lines, provision.guest.size.rootfs_gib))
        .map_err(|refused| Trouble::give_up(ErrorCode::Forbidden, refused.to_string()))?;
    Ok(Acted::Learnt(Learnt::note(format!("sha256 {}…", digest.get(..12).unwrap_or_default()))))
}

/// Judges the guest that was made, before anything is done with it: Proxmox merges a configuration that only shows once
/// the archive is unpacked. What it is refused for is taken back with the guest.
pub(super) fn made(config: &GuestConfig, bridge: &BridgeName) -> Result<(), Trouble> {
    judge_made(&config.written, &config.raw_lxc, bridge)
        .map_err(|refused| Trouble::give_up(ErrorCode::Forbidden, refused.to_string()))
}

pub(super) fn archive(name: &crate::model::record::VolumeId) -> Result<VolumeId, Trouble> {
    name.as_str().parse().map_err(|_| {
        Trouble::give_up(
            ErrorCode::Range,
            format!("{name} is not the name of an archive: correct it in the settings"),
        )
    })
}
