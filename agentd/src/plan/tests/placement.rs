//! What is hot is made on fast storage only: when a guest is new, when it gets a volume later, and when it is made again.

use holdfast_protocol::storage::Approval;

use super::*;
use crate::model::observed::{Loss, LossProof, Remains};
use crate::model::record::{BackupRecord, BackupWhy};
use crate::model::storage::TargetRecord;

fn attached(world: &mut World, name: &str, class: &str) {
    let target = serde_json::from_value(json!({ "name": name, "class": class, "role": "primary",
        "medium": { "usb": { "uuid": "0b5f1f3c-9d0e-4a6b-8f51-1c2d3e4f5a01" } },
        "state": "attached", "label": "blue", "default": false, "schedulable": true }));
    let record = json!({ "standing": "attached", "mark": uid(9) });
    world.records.storage.push(TargetRecord {
        approval: Approval::of(&target.unwrap()),
        standing: serde_json::from_value(record["standing"].clone()).unwrap(),
        mark: serde_json::from_value(record["mark"].clone()).unwrap(),
        marked: None,
        entry: None,
    });
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
        let told = plan.verdicts.iter().flat_map(|verdict| &verdict.conditions);
        let told: Vec<_> = told.filter(|one| one.message.contains("was attached as slow")).collect();
        assert_eq!(told.len(), 1, "situation {place}: {:?}", plan.verdicts);
        assert_eq!(told[0].code, ErrorCode::Forbidden);
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
