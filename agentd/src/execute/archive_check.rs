//! Checks of an archive and of a guest made from one.

use std::sync::Arc;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::BridgeName;
use holdfast_protocol::size::DiskGib;

use super::context::Context;
use super::trouble::StepError;
use crate::gate::archive::{Lines, judge_golden, judge_made, judge_made_again};
use crate::model::mark;
use crate::operation::{Image, Provision};
use crate::port::pve::{GuestConfig, Role, VolumeId};

/// Judges the guest that was made, before anything is done with it: Proxmox merges a configuration that only shows once
/// the archive is unpacked. A refused guest is removed.
pub(super) fn made(config: &GuestConfig, bridge: &BridgeName) -> Result<(), StepError> {
    judge_made(&config.written, &config.raw_lxc, bridge)
        .map_err(|refused| StepError::give_up(ErrorCode::Forbidden, refused.to_string()))
}

/// The same for a guest that is made by provisioning; a restored lost guest must also be the one that was lost.
pub(super) fn provisioned(config: &GuestConfig, provision: &Provision) -> Result<(), StepError> {
    let bridge = &provision.guest.network.bridge;
    if provision.lost().is_none() {
        return made(config, bridge);
    }
    let owner = (provision.guest.uid, mark::read(&config.tags, &config.description));
    judge_made_again(&config.written, &config.raw_lxc, bridge, owner)
        .map_err(|refused| StepError::give_up(ErrorCode::Forbidden, refused.to_string()))
}

pub(super) fn archive(name: &crate::model::records::VolumeId) -> Result<VolumeId, StepError> {
    name.as_str().parse().map_err(|_| {
        StepError::give_up(
            ErrorCode::Range,
            format!("{name} is not the name of an archive: correct it in the settings"),
        )
    })
}

/// Holds an image to its digest and its configuration to the rules; the beginning of the digest.
pub(super) async fn image(
    context: &Context<'_>,
    image: &Image,
    rootfs: DiskGib,
) -> Result<String, StepError> {
    context.say("checking the archive's digest");
    let Image { archive: name, sha256: approved, file: path } = image;
    let (digests, file) = (Arc::clone(&context.ports.digests), path.clone());
    let read = tokio::task::spawn_blocking(move || digests.sha256(&file)).await;
    let digest = match read {
        Ok(Ok(digest)) => digest,
        Ok(Err(error)) => {
            let text = format!(
                "the golden {} cannot be read ({error}): correct `file` in the settings",
                path.display()
            );
            return Err(StepError::give_up(ErrorCode::Unavailable, text));
        }
        Err(_) => return Err(StepError::again(ErrorCode::Internal, "checking the digest was cut short")),
    };
    if digest != approved.as_str() {
        let text = format!(
            "the golden {} has the digest {digest}, approved is {}: somebody changed it; build or approve it anew",
            path.display(),
            approved.as_str()
        );
        return Err(StepError::give_up(ErrorCode::GoldenUnapproved, text));
    }
    let volume = archive(name)?;
    let text = context.ports.pve.archive_config(Role::Allocate, &volume).await?;
    Lines::read(text.expose())
        .and_then(|lines| judge_golden(&lines, rootfs))
        .map_err(|refused| StepError::give_up(ErrorCode::Forbidden, refused.to_string()))?;
    Ok(digest.get(..12).unwrap_or_default().to_owned())
}
