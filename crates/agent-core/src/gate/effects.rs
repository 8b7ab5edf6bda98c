//! The effects of each operation, for the gate.

use super::{Effect, Expiry, Prune, RollBack};
use crate::operation::{BulkRule, ExpiryWhy, KeepProtection, Operation, PruneBy, Source};

/// Every effect of an operation.
#[must_use]
pub fn effects(operation: &Operation) -> Vec<Effect> {
    match operation {
        Operation::Provision(provision) => match &provision.source {
            Source::Backup(_) => vec![Effect::RestoreOwnBackup, Effect::Protect, Effect::Start],
            Source::Image(image) => vec![
                Effect::RestoreFresh { golden: provision.guest.golden.clone(), sha256: image.sha256.clone() },
                Effect::AttachNewVolume,
                Effect::GrowDisk,
                Effect::Protect,
                Effect::Start,
                Effect::Backup,
            ],
        },
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
            // That it is so was judged with what is in force, and is judged again before it goes.
            ExpiryWhy::OutsidePolicy => Expiry::OwnOutsidePolicy,
        })],
        Operation::RollBack(back) => vec![
            Effect::RollBack(match back.bulk {
                BulkRule::NoneThere => RollBack::Itself(back.target.uid),
                BulkRule::Signed => RollBack::ItselfWithBulk,
            }),
            Effect::Protect,
        ],
        Operation::Backup(_) | Operation::QuiescedBackup(_) => vec![Effect::Backup],
        Operation::PruneBackup(prune) => vec![match prune.by {
            // That it is so was judged with what is in force, and is judged again before it goes.
            PruneBy::Retention => Effect::PruneBackup(Prune::OutsidePolicy),
            PruneBy::Signature(_) => Effect::DeleteBackup,
        }],
        Operation::RestoreCopy(_) => vec![Effect::RestoreCopy, Effect::Protect],
        Operation::RestoreTest(_) => vec![Effect::TryBackup, Effect::DestroyScratch],
        Operation::ReassignVolume(_) => vec![Effect::ReassignVolume, Effect::LiftToAttach, Effect::Protect],
        Operation::SwapGuest(swap) => {
            let signed = [Effect::SwapGuest, Effect::StopOrRestart, Effect::Start, Effect::Protect];
            signed.into_iter().chain(swap.backup.iter().map(|_| Effect::Backup)).collect()
        }
        Operation::AdoptGuest(_) => vec![Effect::Adopt, Effect::Protect],
        Operation::UpdateController(update) => vec![
            Effect::Snapshot,
            Effect::ReplaceController { version: update.version.clone(), sha256: update.sha256.clone() },
            Effect::RollBack(RollBack::FailedUpdate),
            Effect::Protect,
        ],
        Operation::Destroy(_) => vec![Effect::StopOrRestart, Effect::DestroyGuest],
    }
}

#[cfg(test)]
mod tests {
    use holdfast_protocol::id::{GuestUid, OperationId, Vmid};

    use super::*;
    use crate::gate::{Approved, Provenance, Verdict, gate};
    use crate::operation::{ExpireSnapshot, RollBack as RollBackSpec, Target};

    fn uid(n: u128) -> GuestUid {
        GuestUid::new(uuid::Uuid::from_u128(n))
    }

    fn target() -> Target {
        Target { uid: uid(1), name: "web-1".parse().unwrap(), vmid: Vmid::try_from(300).unwrap() }
    }

    fn made_by() -> OperationId {
        OperationId::new(uuid::Uuid::nil())
    }

    fn roll_back(bulk: BulkRule) -> Operation {
        let snapshot = "s1".parse().unwrap();
        Operation::RollBack(RollBackSpec { target: target(), snapshot, made_by: made_by(), bulk })
    }

    fn expiry(why: ExpiryWhy) -> Operation {
        let name = "s1".parse().unwrap();
        Operation::ExpireSnapshot(ExpireSnapshot { target: target(), name, made_by: made_by(), why })
    }

    /// A guest that was lost is made again from its own backup, and no golden is asked about; a new one from a golden alone.
    #[test]
    fn what_a_guest_is_made_from_is_the_effect() {
        let made = |lost: bool| {
            let mut spec = serde_json::json!({
                "guest": {
                    "uid": uid(1), "name": "web-1", "customer": "acme", "run": "running", "golden": "2026.11.1",
                    "size": { "cores": 1, "memory_mib": 256, "swap_mib": 0, "rootfs_gib": 2 },
                    "network": { "bridge": "vmbr0", "address": "10.66.0.1/24" }
                },
                "number": { "exactly": 300 }, "pool": "holdfast", "storage": "tank",
                "source": { "image": {
                    "archive": "local:backup/golden.tar.zst", "sha256": "ab".repeat(32), "file": "/golden"
                } }
            });
            if lost {
                spec["source"] = serde_json::json!({ "backup": {
                    "backup": "backup2:backup/own.tar.zst", "vmid": 299, "volumes": [], "by": made_by()
                } });
            }
            effects(&serde_json::from_value(serde_json::json!({ "provision": spec })).unwrap())
        };
        let golden =
            |effects: &[Effect]| effects.iter().any(|one| matches!(one, Effect::RestoreFresh { .. }));
        assert!(golden(&made(false)) && !made(false).contains(&Effect::RestoreOwnBackup));
        assert!(!golden(&made(true)) && made(true).contains(&Effect::RestoreOwnBackup));
    }

    /// What takes something away is open to the guest it is about, to nobody else's.
    #[test]
    fn a_guest_may_take_away_its_own_and_no_other_may() {
        let free = |operation: &Operation, road| {
            effects(operation).iter().all(|effect| gate(effect, road, &Approved::default()) == Verdict::Free)
        };
        let (own, other) = (Provenance::LocalApi(uid(1)), Provenance::LocalApi(uid(2)));
        for operation in [roll_back(BulkRule::NoneThere), expiry(ExpiryWhy::Asked)] {
            assert!(free(&operation, own) && free(&operation, Provenance::SignedJob), "{operation:?}");
            assert!(!free(&operation, other) && !free(&operation, Provenance::Document), "{operation:?}");
        }
        let bulk = roll_back(BulkRule::Signed);
        assert!(
            !free(&bulk, own) && free(&bulk, Provenance::SignedJob),
            "what no backup holds is signed for"
        );
        assert!(free(&expiry(ExpiryWhy::PastItsTime), Provenance::Schedule));
    }
}
