//! Tests of what operations say of themselves.

use holdfast_protocol::id::{GuestUid, OperationId, Vmid};

use super::*;
use crate::gate::Effect;
use crate::gate::{Approved, Provenance, Verdict, gate};
use crate::operation::{BulkRule, DiskRef, ExpiryWhy, KeepProtection};
use crate::operation::{RollBack as RollBackSpec, Target};

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
        serde_json::from_value::<Operation>(serde_json::json!({ "provision": spec })).unwrap().effects()
    };
    let golden = |effects: &[Effect]| effects.iter().any(|one| matches!(one, Effect::RestoreFresh { .. }));
    assert!(golden(&made(false)) && !made(false).contains(&Effect::RestoreOwnBackup));
    assert!(!golden(&made(true)) && made(true).contains(&Effect::RestoreOwnBackup));
}

/// What takes something away is open to the guest that it concerns, and to no other guest.
#[test]
fn a_guest_may_take_away_its_own_and_no_other_may() {
    let free = |operation: &Operation, road| {
        operation.effects().iter().all(|effect| gate(effect, road, &Approved::default()) == Verdict::Free)
    };
    let (own, other) = (Provenance::LocalApi(uid(1)), Provenance::LocalApi(uid(2)));
    for operation in [roll_back(BulkRule::NoneThere), expiry(ExpiryWhy::Asked)] {
        assert!(free(&operation, own) && free(&operation, Provenance::SignedJob), "{operation:?}");
        assert!(!free(&operation, other) && !free(&operation, Provenance::Document), "{operation:?}");
    }
    let bulk = roll_back(BulkRule::Signed);
    assert!(!free(&bulk, own) && free(&bulk, Provenance::SignedJob), "what no backup holds is signed for");
    assert!(free(&expiry(ExpiryWhy::PastItsTime), Provenance::Schedule));
}

#[test]
fn what_stops_or_resizes_a_guest_is_counted_and_nothing_else() {
    let change = |cores: bool, memory: bool, swap: bool| {
        Operation::Reconfigure(Reconfigure {
            name: None,
            network: None,
            filter: None,
            resolver: None,
            target: target(),
            cores: cores.then(|| 2.try_into().unwrap()),
            memory: memory.then(|| 512.try_into().unwrap()),
            swap: swap.then(|| 256.try_into().unwrap()),
            limits: None,
            protection: KeepProtection::PutBack,
        })
    };
    for counted in [
        Operation::Stop(Stop(target())),
        change(true, false, false),
        change(false, true, false),
        change(false, false, true),
        change(true, true, true),
    ] {
        assert!(counted.change_limit() == ChangeLimit::Counts, "{counted:?}");
    }
    let Operation::Reconfigure(mut names) = change(false, false, false) else { panic!("it is one") };
    names.resolver = Some(holdfast_protocol::desired::Resolver::Host);
    assert!(Operation::Reconfigure(names).change_limit() == ChangeLimit::Counts, "name servers");
    let size = 9.try_into().unwrap();
    for free in [
        Operation::Start(Start(target())),
        change(false, false, false),
        Operation::Grow(Grow { target: target(), disk: DiskRef::Rootfs, size }),
    ] {
        assert!(free.change_limit() == ChangeLimit::Exempt, "{free:?}");
    }
}
