//! Tests of suspected and remade guests.

use super::*;
use crate::model::hardware::HardwareAddress;
use crate::model::records::BackupRecord;
use crate::operation::{MissingGuest, Whence};
use crate::plan::missing_guest::{Newcomer, suspects as suspects_of};

/// Who may be gone: only a guest whose number no guest that we see has, or another guest has by mark and volumes.
#[test]
fn no_one_is_suspected_on_a_doubt() {
    let suspects = |set_up: fn(&mut World)| {
        let mut world = world(2);
        set_up(&mut world);
        suspects_of(&world.records, &world.observed).len()
    };
    assert_eq!(suspects(|_| {}), 0);
    assert_eq!(suspects(|w| drop(w.observed.guests.remove(&vmid(300)))), 1);
    assert_eq!(suspects(|w| *w.facts(300) = GuestFacts { mark: mark::Mark::None, ..facts(9, 800) }), 1);
    assert_eq!(suspects(|w| *w.facts(300) = facts(9, 800)), 1, "a sibling's mark on other volumes");
    // Volumes are named by number and place: this may be our own guest without its mark, and takes more to prove.
    let mut world = self::world(1);
    world.facts(300).mark = mark::Mark::None;
    assert_eq!(suspects_of(&world.records, &world.observed)[0].newcomer, Newcomer::SameNames);
    let doubts: [fn(&mut World); 4] = [
        |w| w.facts(300).mark = mark::Mark::Broken,
        |w| *w.facts(300) = GuestFacts { mark: mark::Mark::Broken, ..facts(9, 800) },
        |w| w.seen(300).detail = Detail::Unknown("403".to_owned()),
        |w| {
            w.observed.guests.clear();
            w.observed.sight = Sight::Unproved("/pool/holdfast".to_owned());
        },
    ];
    for (nth, doubt) in doubts.into_iter().enumerate() {
        assert_eq!(suspects(doubt), 0, "doubt {nth}");
    }
}

/// What the plan makes again in the place of a guest that was destroyed, and what it says of it.
fn made_again(set_up: fn(&mut World)) -> (MissingGuest, String) {
    let mut world = world(2);
    world.observed.guests.remove(&vmid(300));
    let mut loss = remains("backup2:backup/vzdump-lxc-300-1.tar.zst");
    loss.remains[0].backup.hardware = Some(address());
    world.observed.lost.insert(uid(1), loss);
    set_up(&mut world);
    let plan = world.plan();
    let made = plan.actions.iter().find_map(|action| match &action.operation {
        Operation::Provision(made) => Some((made.lost()?.clone(), action.reason.clone())),
        _ => None,
    });
    made.unwrap_or_else(|| panic!("{plan}"))
}

fn address() -> HardwareAddress {
    "BC:24:11:EE:25:8E".parse().unwrap()
}

fn backup(world: &mut World) -> &mut BackupRecord {
    &mut world.observed.lost.get_mut(&uid(1)).unwrap().remains[0].backup
}

#[test]
fn a_destroyed_guest_keeps_its_hardware_address() {
    let (lost, said) = made_again(|_| {});
    assert_eq!((lost.whence, lost.hardware), (Whence::ThisBox, Some(address())));
    assert!(said.contains("it keeps its hardware address BC:24:11:EE:25:8E"), "{said}");
}

/// Its own backup is all that it is made from: no image of the document's version has to be here, readable or approved.
#[test]
fn a_destroyed_guest_waits_for_no_golden_image() {
    made_again(|world| world.policy.goldens.clear());
    made_again(|world| world.observed.goldens.clear());
    made_again(|world| world.desired[0].golden = "2019.10.1".parse().unwrap());
}

/// Two of one hardware address on a bridge take each other's frames: a doubt gives a new one.
#[test]
fn an_address_that_someone_may_have_is_not_kept() {
    type Doubt = (&'static str, fn(&mut World));
    let doubts: [Doubt; 5] = [
        ("nobody saw it destroyed", |w| w.observed.lost.get_mut(&uid(1)).unwrap().proof = LossProof::Absent),
        ("its backup is of its former number", |w| backup(w).vmid = vmid(305)),
        ("another has it", |w| w.facts(301).hardware = [address()].into()),
        ("another cannot be read", |w| w.seen(301).detail = Detail::Unknown("403".to_owned())),
        ("nobody wrote it down", |w| backup(w).hardware = None),
    ];
    for (doubt, set_up) in doubts {
        let (lost, said) = made_again(set_up);
        assert_eq!(lost.hardware, None, "{doubt}");
        assert!(said.contains("its hardware address is a new one"), "{doubt}: {said}");
    }
}

/// Its disks are newer than any backup: nothing is made, and the way back is reported with the copy that a backup
/// holds.
#[test]
fn one_owner_disks_are_there_is_not_made_again() {
    let mut world = world(1);
    world.observed.guests.remove(&vmid(300));
    world.observed.orphaned.insert(uid(1), volumes(300));
    let loss = remains("backup2:backup/vzdump-lxc-300-1.tar.zst");
    world.records.backups = std::sync::Arc::new(vec![loss.remains[0].backup.clone()]);
    let plan = world.plan();
    assert!(plan.actions.is_empty(), "{plan}");
    let said = plan.to_string();
    assert!(said.contains("(a copy of it is in backup2:backup/vzdump-lxc-300-1.tar.zst)"), "{said}");
}
