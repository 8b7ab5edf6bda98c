//! The last check before a missing guest is restored.
//!
//! A restore takes an hour, and meanwhile an administrator may have put the guest back under its old number. Two guests
//! with one token and one address must never run at the same time, and the one that was put back holds the newer data.
//! In: the lost guest's number. Out: nothing, or the reason why the restored guest is removed before it was ever
//! started; then our records name the old number again. Deliberately absent: a guest that comes back later (`plan/mod`,
//! among strangers).

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::GuestUid;

use super::context::Context;
use super::trouble::StepError;
use crate::model::mark::{self, Mark};
use crate::operation::MissingGuest;
use crate::port::pve::{AclPath, PveError, VmidUse};

pub(super) async fn still_gone(
    context: &Context<'_>,
    uid: GuestUid,
    lost: &MissingGuest,
) -> Result<(), StepError> {
    let (pve, vmid) = (&context.ports.pve, lost.vmid);
    if pve.vmid_use(vmid).await? == VmidUse::Free {
        return Ok(());
    }
    let text = match pve.guest_config(vmid).await {
        Ok(config) if mark::read(&config.tags, &config.description) == Mark::Of(uid) => {
            format!("the lost guest is back under {vmid}: what was made from its backup is taken back")
        }
        // Another owner's guest, as it was when the loss was proved.
        Ok(_) => return Ok(()),
        Err(PveError::Permission { path: Some(path), .. }) if path == AclPath::guest(vmid).as_str() => {
            format!(
                "somebody has the lost guest's number {vmid} whom we may not see, and it may be that guest: nothing is started \
                 beside it; if it is, put it into our pool, and if not, free the number"
            )
        }
        Err(error) => return Err(error.into()),
    };
    Err(StepError::give_up(ErrorCode::VmidForeign, text))
}
