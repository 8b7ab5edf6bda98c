//! Stories of swaps.

use agentd::gate::warrant::{Allows, SignedState, Warrant};
use agentd::model::records::{BackupWhy, VolumeId};
use agentd::operation::{Backup, Operation, SwapGuest, Target};
use holdfast_protocol::id::{JobId, OperationId};

use super::Story;
use crate::controllers::Speech;
use crate::fixtures::{Kit, target, vmid};
use crate::ground::Ground;
use crate::world_template::volumes;

/// The guest and its copy.
const PAIR: [u32; 2] = [300, 301];

/// The first backup afterwards is the one that every guest gets, which is killed twice everywhere.
const SECONDS: usize = 5;

pub(super) fn stories() -> Vec<Story> {
    let apart = |story: Story| Story { never_both: Some(PAIR), second_one_in: SECONDS, ..story };
    vec![
        apart(Story::done("swap_guest", Ground::Copy, swap)),
        apart(Story { speech: Speech::Silence, ..Story::undone("swap_guest, silent", Ground::Copy, swap) }),
        apart(Story {
            refused: Some("promote_copy"),
            ..Story::undone("swap_guest, not plugged in", Ground::Copy, swap)
        }),
    ]
}

fn swap(kit: &Kit) -> Operation {
    let guest = target(1);
    let seen = SignedState { uid: guest.uid, vmid: guest.vmid, name: guest.name.clone(), volumes: volumes() };
    let copy = SignedState {
        uid: guest.uid,
        vmid: vmid(301),
        name: "web-1-copy".parse().expect("a plain name"),
        volumes: (0..2).map(|disk| VolumeId::new(format!("tank:301/vm-301-disk-{disk}.raw"))).collect(),
    };
    let leaves = [VolumeId::new("tank:300/vm-300-disk-2.raw")].into();
    let warrant = Warrant::for_tests(
        JobId::new(uuid::Uuid::from_u128(8)),
        Allows::SwapGuest { copy: Box::new(copy), leaves },
        seen,
    );
    let made_by = OperationId::new(uuid::Uuid::from_u128(u128::from(Ground::Copy.number())));
    let backup = Backup {
        target: Target { vmid: vmid(301), ..guest },
        storage: "backup2".parse().expect("a plain name"),
        why: BackupWhy::First,
        due: None,
        key: None,
        leaves_out: Vec::new(),
    };
    let swap = SwapGuest::new(warrant, made_by, kit.policy().bridge, Some(backup));
    Operation::SwapGuest(Box::new(swap.expect("it was signed for this")))
}
