//! Tests of disks on fast and slow storage.

use holdfast_protocol::storage::Approval;

use super::*;
use crate::model::observed::{Loss, LossProof, Remains, StorageFact};
use crate::model::records::{BackupRecord, BackupWhy};
use crate::model::storage::TargetRecord;

fn attached(world: &mut World, name: &str, class: &str) {
    let target = serde_json::from_value(json!({ "name": name, "class": class, "role": "primary",
        "backend": { "usb": { "uuid": "0b5f1f3c-9d0e-4a6b-8f51-1c2d3e4f5a01" } },
        "state": "attached", "label": "blue", "default": false, "schedulable": true }));
    let record = json!({ "status": "attached", "mark": uid(9) });
    world.records.storage.push(TargetRecord {
        approval: Approval::of(&target.unwrap()),
        status: serde_json::from_value(record["status"].clone()).unwrap(),
        mark: serde_json::from_value(record["mark"].clone()).unwrap(),
        marked: None,
        entry: None,
    });
    answers(world, name);
}

/// A storage that answers and has room.
fn answers(world: &mut World, name: &str) {
    let large = StorageFact::Active { total: 4 << 40, used: 0, available: 4 << 40 };
    world.observed.storages.entry(name.parse().unwrap()).or_insert(large);
}

/// A guest that was destroyed, and what remains of it: this one backup.
pub fn remains(archive: &str) -> Loss {
    let backup = BackupRecord {
        archive: VolumeId::new(archive),
        guest: uid(1),
        vmid: vmid(300),
        storage: archive.split(':').next().unwrap().parse().unwrap(),
        bytes: 1,
        taken_at: "2026-06-01T02:30:00Z".parse().unwrap(),
        taken_by: OperationId::new(uuid::Uuid::from_u128(1)),
        why: BackupWhy::First,
        tier: None,
        point: None,
        sealed: None,
        missing_since: None,
        took: None,
        label: None,
        mounts: None,
        hardware: None,
        disks: None,
    };
    Loss { proof: LossProof::Destroyed, remains: vec![Remains { backup, tested: None }] }
}

/// The situations in which something hot is made: a new guest, a later volume, a guest that was lost.
const HOT: [fn(&mut World); 3] = [
    |w| w.desired.push(guest(2)),
    |w| w.desired[0].volumes.push(volume("more", json!("hot"))),
    |w| {
        w.observed.guests.remove(&vmid(300));
        w.observed.lost.insert(uid(1), remains("backup2:backup/vzdump-lxc-300-1.tar.zst"));
    },
];

#[test]
fn nothing_hot_is_made_on_a_storage_that_was_attached_as_slow() {
    for (place, situation) in HOT.iter().enumerate() {
        let mut fine = world(1);
        situation(&mut fine);
        assert_eq!(fine.plan().actions.len(), 1, "situation {place}: root's word counts");
        attached(&mut fine, "fast", "fast");
        assert_eq!(fine.plan().actions.len(), 1, "situation {place}: signed for as fast");

        let mut slow = world(1);
        situation(&mut slow);
        attached(&mut slow, "fast", "slow");
        let plan = slow.plan();
        assert_eq!(plan.actions, [], "situation {place}");
        let reported = plan.verdicts.iter().flat_map(|verdict| &verdict.conditions);
        let reported: Vec<_> = reported.filter(|one| one.message.contains("was attached as slow")).collect();
        assert_eq!(reported.len(), 1, "situation {place}: {:?}", plan.verdicts);
        assert_eq!(reported[0].code, ErrorCode::Forbidden);
    }
}

/// A guest on a storage that is slow is kept as it is: sizes, power and its bulk volumes go on.
#[test]
fn what_is_there_stays_and_bulk_goes_where_it_is_slow() {
    let mut world = world(1);
    attached(&mut world, "fast", "slow");
    attached(&mut world, "blue", "slow");
    world.policy.bulk_storage = Some("blue".parse().unwrap());
    let bulk = json!({ "bulk": { "none": "can be fetched again" } });
    world.desired[0].volumes.push(volume("more", json!("hot")));
    world.desired[0].volumes.push(volume("media", bulk));
    let plan = world.plan();
    let Operation::AttachVolume(attach) = &plan.actions[0].operation else {
        panic!("{:?}", plan.actions);
    };
    assert_eq!((attach.volume.name.as_str(), attach.storage.as_str()), ("media", "blue"));
    assert!(plan.verdicts[0].conditions[0].message.contains("volume more is not attached"));
    world.desired[0].volumes.truncate(1);
    world.seen(300).run = Running::Stopped;
    assert_eq!(world.plan().actions[0].operation.kind(), OperationKind::Start);
}

fn in_manifest(world: &mut World, name: &str, (role, class): (&str, &str), default: bool) {
    let last = world.manifest.len() + 1;
    let target: StorageTarget = serde_json::from_value(json!({ "name": name, "class": class, "role": role,
        "backend": { "usb": { "uuid": format!("0b5f1f3c-9d0e-4a6b-8f51-1c2d3e4f5b{last:02x}") } },
        "state": "attached", "label": "blue", "default": default, "schedulable": false }))
    .unwrap();
    world.records.storage.push(TargetRecord {
        approval: Approval::of(&target),
        status: target.state,
        mark: serde_json::from_value(json!(uid(9))).unwrap(),
        marked: None,
        entry: None,
    });
    world.manifest.push(target);
    answers(world, name);
    world.policy.guest_storages.insert(name.parse().unwrap());
}

/// The provision of the second guest: its root disk's storage, and those of its volumes.
fn provisioned(world: &World) -> (String, Vec<String>) {
    let plan = world.plan();
    let [Action { operation: Operation::Provision(provision), .. }] = plan.actions.as_slice() else {
        panic!("{plan}");
    };
    let volumes = provision.volume_storages.iter().map(ToString::to_string).collect();
    (provision.storage.to_string(), volumes)
}

#[test]
fn disks_are_made_on_the_target_that_is_named_the_default_of_its_role_or_roots_storage() {
    let bulk = json!({ "bulk": { "none": "can be fetched again" } });
    let mut world = world(1);
    world.policy.bulk_storage = Some("slow0".parse().unwrap());
    answers(&mut world, "slow0");
    let mut new = guest(2);
    new.volumes = vec![volume("db", json!("hot")), volume("media", bulk)];
    world.desired.push(new);
    let of_root = world.policy.storage.to_string();
    assert_eq!(provisioned(&world), (of_root.clone(), vec![of_root, "slow0".to_owned()]));
    in_manifest(&mut world, "ssd1", ("primary", "fast"), true);
    in_manifest(&mut world, "ssd2", ("primary", "fast"), false);
    in_manifest(&mut world, "usb1", ("bulk-data", "slow"), true);
    in_manifest(&mut world, "usb2", ("bulk-data", "slow"), false);
    assert_eq!(provisioned(&world), ("ssd1".to_owned(), vec!["ssd1".to_owned(), "usb1".to_owned()]));
    world.desired[1].storage = Some("ssd2".parse().unwrap());
    world.desired[1].volumes[1].storage = Some("usb2".parse().unwrap());
    assert_eq!(provisioned(&world), ("ssd2".to_owned(), vec!["ssd1".to_owned(), "usb2".to_owned()]));
    // One that no operator signed for is waited for, and nothing is made elsewhere meanwhile.
    world.records.storage.retain(|record| record.approval.name.as_str() != "usb2");
    let plan = world.plan();
    assert!(plan.actions.is_empty(), "{plan}");
    let reported = &plan.verdicts[1].conditions[0];
    assert!(
        reported.code == ErrorCode::StorageGone && reported.message.contains("target usb2"),
        "{reported:?}"
    );
}

/// The agent's tokens may make disks only where root said so: no task is begun that Proxmox would refuse.
#[test]
fn a_target_that_root_did_not_open_for_disks_gets_none_and_the_command_that_opens_it_is_said() {
    for named in [false, true] {
        let mut world = world(1);
        let mut new = guest(2);
        new.storage = named.then(|| "ssd1".parse().unwrap());
        world.desired.push(new);
        in_manifest(&mut world, "ssd1", ("primary", "fast"), !named);
        assert_eq!(provisioned(&world).0, "ssd1");
        world.policy.guest_storages.clear();
        let plan = world.plan();
        assert!(plan.actions.is_empty(), "{plan}");
        let reported = &plan.verdicts[1].conditions[0];
        assert_eq!(reported.code, ErrorCode::Forbidden);
        assert!(reported.message.contains("`agentd setup` again with --guest-storage ssd1"), "{reported:?}");
    }
}

#[test]
fn a_disk_that_lies_elsewhere_than_the_document_says_is_reported_and_stays() {
    let mut world = world(1);
    in_manifest(&mut world, "ssd1", ("primary", "fast"), true);
    world.facts(300).rootfs_storage = Some("tank".to_owned());
    assert!(world.plan().verdicts[0].conditions.is_empty(), "a default is for new disks");
    world.desired[0].storage = Some("ssd1".parse().unwrap());
    let plan = world.plan();
    assert!(plan.actions.is_empty(), "{plan}");
    let reported = &plan.verdicts[0].conditions[0];
    assert!(
        reported.message.contains("its root disk lies on tank, and the document names ssd1"),
        "{reported:?}"
    );
}

#[test]
fn nothing_new_is_made_on_a_storage_that_is_nearly_full_and_that_is_reported() {
    for (place, situation) in HOT.iter().enumerate() {
        let filled = |used: u64| {
            let mut world = world(1);
            situation(&mut world);
            let storage = world.policy.storage.clone();
            world.observed.storages.insert(
                storage,
                StorageFact::Active {
                    total: 3_000 << 30,
                    used: (100 * used) << 30,
                    available: (3_000 - 100 * used) << 30,
                },
            );
            world
        };
        assert_eq!(filled(28).plan().actions.len(), 1, "situation {place}");
        let reported = crate::plan::fill_level::problems(&filled(28).observed);
        assert!(
            reported.len() == 1 && reported[0].message.contains("is 93 % full (2800.0 GiB of 3000.0 GiB)"),
            "{reported:?}"
        );
        let full = filled(29);
        let plan = full.plan();
        assert_eq!(plan.actions, [], "situation {place}");
        let mut conditions = plan.verdicts.iter().flat_map(|verdict| &verdict.conditions);
        assert!(conditions.any(|one| one.code == ErrorCode::StorageFull), "{plan}");
        assert!(crate::plan::fill_level::problems(&filled(10).observed).is_empty());
    }
}
