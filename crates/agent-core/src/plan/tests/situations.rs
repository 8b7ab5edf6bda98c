//! What is planned in each situation, as it is printed.

use super::*;

const SITUATIONS: &[Situation] = &[
    ("nothing to do", |_| {}),
    ("a new guest", |w| w.desired.push(guest(3))),
    ("a new guest with a free number", |w| {
        w.desired.push(DesiredGuest { vmid: Some(vmid(900)), ..guest(3) });
        w.observed.vmids.insert(vmid(900), VmidFact::Free);
    }),
    ("a new guest with somebody else's number", |w| {
        w.desired.push(DesiredGuest { vmid: Some(vmid(900)), ..guest(3) });
        w.observed.vmids.insert(vmid(900), VmidFact::Taken);
    }),
    ("a new guest with a sibling's number", |w| {
        w.desired.push(DesiredGuest { vmid: Some(vmid(300)), ..guest(3) });
        w.observed.vmids.insert(vmid(300), VmidFact::Taken);
    }),
    ("a new guest with a number nobody could tell about", |w| {
        w.desired.push(DesiredGuest { vmid: Some(vmid(900)), ..guest(3) });
        w.observed.vmids.insert(vmid(900), VmidFact::Unknown);
    }),
    ("an unapproved golden", |w| {
        w.desired.push(DesiredGuest { golden: "2026.11.2".parse().unwrap(), ..guest(3) });
    }),
    ("another bridge", |w| {
        let mut other = guest(3);
        other.network.bridge = "vmbr9".parse().unwrap();
        w.desired.push(other);
    }),
    ("a guest that says it is the new one", |w| {
        w.desired.push(guest(3));
        w.records.guests.truncate(2);
        let counterpart = ObservedGuest { vmid: vmid(500), ..w.seen(300).clone() };
        w.observed.guests.insert(vmid(500), counterpart);
        w.facts(500).mark = mark::Mark::Of(uid(3));
    }),
    ("making failed a moment ago", |w| {
        w.desired.push(guest(3));
        w.records.attempts.push(Attempts {
            guest: uid(3),
            kind: OperationKind::Provision,
            failed: 2,
            last: at(-10),
            message: "no archive".to_owned(),
        });
    }),
    ("making is under way", |w| {
        w.desired.push(guest(3));
        w.records.open.push(OpenOperation { id: op(9), kind: OperationKind::Provision, guest: uid(3) });
    }),
    ("stopped by an admin", |w| w.seen(300).run = Running::Stopped),
    ("it does not stay up", |w| {
        w.seen(300).run = Running::Stopped;
        w.records.attempts.push(Attempts {
            guest: uid(1),
            kind: OperationKind::Start,
            failed: 5,
            last: at(-100),
            message: String::new(),
        });
    }),
    ("it fell over a moment ago, for the third time", |w| {
        w.seen(300).run = Running::Stopped;
        w.records.attempts.push(started(3, -20));
    }),
    ("it fell over for the third time, and has waited", |w| {
        w.seen(300).run = Running::Stopped;
        w.records.attempts.push(started(3, -61));
    }),
    ("it was left for a person, and a person started it", |w| w.records.attempts.push(started(5, -4_000))),
    ("it was left for a person, and has been up for an hour", |w| {
        w.seen(300).up_s = limits::HEALTHY_S;
        w.records.attempts.push(started(5, -4_000));
    }),
    ("it was left for a person, and the document now wants it to stand still", |w| {
        w.seen(300).run = Running::Stopped;
        w.desired[0].run = RunState::Stopped;
        w.records.attempts.push(started(5, -100));
    }),
    ("it should stand still", |w| w.desired[0].run = RunState::Stopped),
    ("memory and cores were changed by hand, and it stands still", |w| {
        w.facts(300).memory_mib = 4096;
        w.facts(300).cores = None;
        w.seen(300).run = Running::Stopped;
    }),
    ("protection was taken off", |w| w.facts(300).protection = Protection::Off),
    ("disks should be larger", |w| {
        w.desired[0].size.rootfs_gib = DiskGib::try_from(16).unwrap();
        w.desired[1].volumes[0].size_gib = DiskGib::try_from(5).unwrap();
    }),
    ("a disk should be smaller, and memory larger", |w| {
        w.desired[0].size.rootfs_gib = DiskGib::try_from(4).unwrap();
        w.desired[0].size.memory_mib = MemoryMib::try_from(1024).unwrap();
    }),
    ("the document no longer names it", |w| w.desired.truncate(1)),
    ("the document names nobody", |w| w.desired.clear()),
    ("it was destroyed by a signature, and the document still names it", |w| {
        w.records.guests[0].place = Place::Gone { by: op(8) };
        w.observed.guests.remove(&vmid(300));
    }),
    ("a copy stands beside it", |w| copy(w, made())),
    ("a copy was started by hand, and its protection taken off", |w| {
        copy(w, made());
        w.seen(350).run = Running::Running;
        w.facts(350).protection = Protection::Off;
    }),
    ("a copy is being made, and carries the tags of its guest", |w| {
        copy(w, CopyStage::Making);
        w.facts(350).mark = mark::Mark::Broken;
    }),
    ("the making of a copy was parked, and its guest fell over", |w| {
        copy(w, CopyStage::Making);
        w.seen(300).run = Running::Stopped;
        let message = "it runs: somebody started it".to_owned();
        w.records.parked.push(ParkedOperation {
            id: op(6),
            kind: OperationKind::RestoreCopy,
            guest: uid(1),
            about: uid(1),
            message,
        });
    }),
    ("a copy's number was reused", |w| {
        copy(w, made());
        *w.facts(350) = facts(9, 350);
    }),
    ("a copy is not listed", |w| {
        copy(w, made());
        w.observed.guests.remove(&vmid(350));
        w.observed.vmids.insert(vmid(350), VmidFact::Taken);
    }),
    ("a copy was destroyed by hand", |w| {
        copy(w, made());
        w.observed.guests.remove(&vmid(350));
        w.observed.vmids.insert(vmid(350), VmidFact::Free);
    }),
    ("a copy took its place, and it was laid aside", restored_copy::demoted),
    ("a copy is being put in its place", restored_copy::being_swapped),
    ("a guest's number went to a copy of it", |w| {
        w.facts(300).mark = mark::Mark::Copy { of: uid(1), by: op(6) };
    }),
    ("its mark was removed", |w| w.facts(300).mark = mark::Mark::None),
    ("its number was reused for another of ours", |w| w.facts(300).mark = mark::Mark::Of(uid(77))),
    ("its disk was exchanged", |w| w.facts(300).volumes = volumes(800)),
    ("it is locked", |w| {
        w.seen(300).lock = Some("backup".to_owned());
        w.seen(300).run = Running::Stopped;
    }),
    ("it is not listed, sight proved", |w| drop(w.observed.guests.remove(&vmid(300)))),
    ("it is not listed, sight not proved", |w| {
        w.observed.guests.clear();
        w.observed.sight = Sight::Unproved("/pool/holdfast".to_owned());
    }),
    ("its number is somebody's whom we may not see", |w| {
        w.observed.guests.remove(&vmid(300));
        w.observed.vmids.insert(vmid(300), VmidFact::Taken);
    }),
    ("it is gone, proved twice, and has a backup", |w| {
        w.observed.guests.remove(&vmid(300));
        w.observed.lost.insert(uid(1), remains("backup2:backup/vzdump-lxc-300-1.tar.zst"));
    }),
    ("it is gone, proved twice, and has no backup", |w| {
        w.observed.guests.remove(&vmid(300));
        w.observed.lost.insert(uid(1), Loss { proof: LossProof::Destroyed, remains: Vec::new() });
    }),
    ("its configuration is gone, its disks are still there", |w| {
        w.observed.guests.remove(&vmid(300));
        w.observed.orphaned.insert(uid(1), volumes(300));
    }),
    ("it is gone, and somebody else has its number", |w| {
        *w.facts(300) = GuestFacts { mark: mark::Mark::None, ..facts(9, 800) };
        w.observed.lost.insert(uid(1), remains("backup2:backup/vzdump-lxc-300-1.tar.zst"));
    }),
    ("it is gone, and the document does not name it", |w| {
        w.observed.guests.remove(&vmid(300));
        w.desired.remove(0);
        w.observed.lost.insert(uid(1), remains("backup2:backup/vzdump-lxc-300-1.tar.zst"));
    }),
    ("its configuration cannot be read", |w| {
        w.seen(300).detail = Detail::Unknown("403".to_owned());
        w.seen(300).run = Running::Stopped;
    }),
    ("a stranger in the pool", |w| {
        let mut stranger = w.seen(300).clone();
        stranger.vmid = vmid(500);
        stranger.detail = Detail::Known(Box::new(GuestFacts { mark: mark::Mark::None, ..facts(1, 500) }));
        w.observed.guests.insert(vmid(500), stranger);
    }),
    ("an operation on it was parked", |w| {
        w.seen(300).run = Running::Stopped;
        let message = "leftover lock; run `pct unlock 300` on the node".to_owned();
        w.records.parked.push(ParkedOperation {
            id: op(5),
            kind: OperationKind::Start,
            guest: uid(1),
            about: uid(1),
            message,
        });
    }),
    ("two held its claim or its token", |w| w.records.guests[0].access = Access::Frozen),
    ("a volume is not attached", |w| w.facts(300).mounts.clear()),
    ("a volume is wanted beside another, and the guest stands still", |w| {
        w.desired[0].volumes.push(volume("media", json!("hot")));
        w.seen(300).run = Running::Stopped;
    }),
    ("a bulk volume is wanted on a box without room for it", |w| {
        w.desired[0].volumes.push(volume("media", json!({ "bulk": { "none": "rebuilt" } })));
    }),
    ("attaching failed a moment ago", |w| {
        w.facts(300).mounts.clear();
        w.records.attempts.push(Attempts {
            guest: uid(1),
            kind: OperationKind::AttachVolume,
            failed: 1,
            last: at(-5),
            message: "the storage is full".to_owned(),
        });
    }),
    ("a snapshot's time is over", |w| {
        w.records.snapshots.extend([snapshot(1, "old", -60), snapshot(1, "young", 60)])
    }),
    ("a snapshot's time is over, and the guest should run first", |w| {
        w.records.snapshots.push(snapshot(1, "old", -60));
        w.seen(300).run = Running::Stopped;
    }),
];

#[test]
fn every_situation_has_its_printed_plan() {
    let mut text = String::new();
    for (name, set_up) in SITUATIONS {
        let mut world = world(2);
        set_up(&mut world);
        text.push_str(&format!("# {name}\n{}\n", world.plan()));
    }
    insta::assert_snapshot!(text);
}
