//! Checks of an archive and of a guest made from one.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::BridgeName;

use super::trouble::StepError;
use crate::gate::archive::{judge_made, judge_made_again};
use crate::model::mark;
use crate::operation::Provision;
use crate::port::pve::{GuestConfig, VolumeId};

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
