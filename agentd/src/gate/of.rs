//! Which effects an operation has. Whoever opens one passes all of them through the gate, by the road it came.

use super::{Effect, Expiry, RollBack};
use crate::operation::{BulkRule, ExpiryWhy, KeepProtection, Operation};

/// Every effect of an operation.
#[must_use]
pub fn effects(operation: &Operation) -> Vec<Effect> {
    match operation {
        Operation::Provision(provision) => vec![
            Effect::RestoreFresh { golden: provision.guest.golden.clone() },
            Effect::AttachNewVolume,
            Effect::GrowDisk,
            Effect::Protect,
            Effect::Start,
            Effect::Backup,
        ],
        Operation::Start(_) => vec![Effect::Start],
        Operation::Stop(_) => vec![Effect::StopOrRestart],
        Operation::Reconfigure(change) => match change.protection {
            KeepProtection::AsItIs => vec![Effect::Reconfigure],
            KeepProtection::PutBack => vec![Effect::Reconfigure, Effect::Protect],
        },
        Operation::Grow(_) => vec![Effect::GrowDisk],
        Operation::AttachVolume(_) => vec![Effect::LiftToAttach, Effect::AttachNewVolume, Effect::Protect],
        Operation::Snapshot(_) => vec![Effect::Snapshot],
        Operation::ExpireSnapshot(expiry) => vec![Effect::ExpireSnapshot(match expiry.why {
            ExpiryWhy::PastItsTime => Expiry::OwnPastItsTime,
            ExpiryWhy::Asked => Expiry::OwnAsked(expiry.target.uid),
        })],
        Operation::RollBack(back) => vec![
            Effect::RollBack(match back.bulk {
                BulkRule::NoneThere => RollBack::Itself(back.target.uid),
                BulkRule::Signed => RollBack::ItselfWithBulk,
            }),
            Effect::Protect,
        ],
        Operation::Backup(_) => vec![Effect::Backup],
        Operation::RestoreBeside(_) => vec![Effect::RestoreBeside, Effect::Protect],
        Operation::HandOverVolume(_) => vec![Effect::HandOverVolume, Effect::LiftToAttach, Effect::Protect],
        Operation::Destroy(_) => vec![Effect::StopOrRestart, Effect::DestroyGuest],
    }
}
