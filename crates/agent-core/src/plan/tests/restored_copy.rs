//! Tests of restored copies: reported, never changed.

use super::*;
use crate::model::records::{Origin, RestoredCopyRecord};

/// A copy of the first guest under 350.
pub(super) fn copy(world: &mut World, stage: CopyStage) {
    let mut seen = world.seen(300).clone();
    (seen.vmid, seen.name, seen.run) = (vmid(350), "web-1-copy".to_owned(), Running::Stopped);
    seen.detail = Detail::Known(Box::new(GuestFacts {
        mark: mark::Mark::Copy { of: uid(1), by: op(6) },
        volumes: volumes(350),
        ..facts(1, 350)
    }));
    world.observed.guests.insert(vmid(350), seen);
    world.records.copies.push(RestoredCopyRecord {
        made_by: op(6),
        guest: uid(1),
        name: "web-1".parse().unwrap(),
        vmid: vmid(350),
        origin: Origin::Restored(VolumeId::new("local:backup/vzdump-lxc-300-2026_11_21-05_00_00.tar.zst")),
        stage,
        since: None,
    });
}

pub(super) fn made() -> CopyStage {
    CopyStage::Made { volumes: volumes(350) }
}

/// The former first guest is under 350, unplugged.
pub(super) fn demoted(world: &mut World) {
    copy(world, made());
    world.records.copies[0].origin = Origin::Demoted;
    world.seen(350).name = "web-1-former".to_owned();
}

/// In the middle of it: the guest is laid aside, and the copy has its mark.
pub(super) fn being_swapped(world: &mut World) {
    copy(world, made());
    world.facts(350).mark = mark::Mark::Of(uid(1));
    world.facts(300).mark = mark::Mark::Copy { of: uid(1), by: op(9) };
    world.records.open.push(OpenOperation { id: op(9), kind: OperationKind::SwapGuest, guest: uid(1) });
}

/// Whatever becomes of a copy: nothing is done to it, and its guest is kept as ever.
#[test]
fn a_copy_is_never_acted_on_and_changes_nothing_for_its_guest() {
    let copies: [fn(&mut World); 6] = [
        demoted,
        |w| copy(w, made()),
        |w| copy(w, CopyStage::Making),
        |w| {
            copy(w, made());
            w.seen(350).run = Running::Running;
        },
        // As if somebody had given it its guest's line and tags.
        |w| {
            copy(w, made());
            w.facts(350).mark = mark::Mark::Of(uid(1));
        },
        |w| {
            copy(w, made());
            w.records.copies.clear();
        },
    ];
    let guest_states: [fn(&mut World); 3] =
        [|_| {}, |w| w.seen(300).run = Running::Stopped, |w| drop(w.observed.guests.remove(&vmid(300)))];
    for guest in guest_states {
        let mut alone = world(2);
        guest(&mut alone);
        for copy in copies {
            let mut copy_of = world(2);
            guest(&mut copy_of);
            let found = copy_of.observed.guests.contains_key(&vmid(300));
            if !found {
                // The copy is made out of the guest's picture.
                let lost = world(2).observed.guests.remove(&vmid(300)).unwrap();
                copy_of.observed.guests.insert(vmid(300), lost);
            }
            copy(&mut copy_of);
            if !found {
                copy_of.observed.guests.remove(&vmid(300));
            }
            assert_eq!(copy_of.plan().actions, alone.plan().actions);
            let lost = |world: &World| crate::plan::missing_guest::suspects(&world.records, &world.observed);
            assert_eq!(lost(&copy_of), lost(&alone));
        }
    }
}
